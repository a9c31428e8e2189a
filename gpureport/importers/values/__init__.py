"""One cell or a column of cells to values in base units: numbers, units, time stamps.

Imports no other room of the importers.
A new way to write a number or a stamp is read here.
"""
