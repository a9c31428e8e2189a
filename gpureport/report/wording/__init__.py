"""How numbers, units, terms and differences are written.

Imports the metrics; no other room of the report.
A unit, a term or a way to say how sure a figure is goes here; sentences of one section stay with it.
"""
