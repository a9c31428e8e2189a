"""How numbers, units, terms and differences are written.

Imports the metrics; no other room of the report.
A unit or a term goes here, a way to say how sure a figure is into `differences`; sentences of one section stay with it.
"""
