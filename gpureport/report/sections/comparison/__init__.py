"""Steps of an optimization side by side: their tables, charts and training metrics.

Imports the comparison, the model of the report and its wording; no format and no chart.
A new statement on steps is a module here that returns rows, facts or a table, and a call in `comparison_content.py`.
What each step was worth belongs to `gains`, what is said of groups to `study`.
"""
