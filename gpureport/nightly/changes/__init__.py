"""When a figure changed over the nights, and by how much it differs when nothing changed.

Imports `history`.
A new judgement over nights is a module here.
"""
