"""A step of an optimization: its runs, their figures, and how they were set up.

Imports `training`, `statistics` and the analysis.
A new figure that steps are compared by is a line in `compared_figures.py`.
"""
