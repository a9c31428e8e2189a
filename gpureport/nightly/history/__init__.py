"""The history of nights: what is recorded of a night, its file, and named baselines.

Imports `checks` and what is below it.
A new figure of a night is a line in `night_figures.py`.
"""
