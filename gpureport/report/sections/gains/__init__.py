"""The table of gains: what each step was worth, what it changed, and what the last step could still gain.

Imports the comparison, `sections.comparison`, the model of the report and its wording; no format and no chart.
A new column is a line in `gain_table.py`, a new statement on a step a fact in `gain_facts.py`.
"""
