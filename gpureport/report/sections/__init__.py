"""The parts of a report: each module builds its part of the model from analyses and comparisons.

Imports `model`, `runs` and `wording`; no format and no chart.
A new section: one module here, one line in `builder.py`, one partial in each template that shows it.
"""
