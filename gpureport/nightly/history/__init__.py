"""Nights as they are kept: what a night records, its file, and named baselines.

Imports `checks` and what is below it.
A new figure of a night is a line in `figures.py`.
"""
