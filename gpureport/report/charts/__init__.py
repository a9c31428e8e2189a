"""Figures as SVG, drawn once for every format.

Imports `model`, `runs`, `wording` and matplotlib.
A new chart is a module here, listed in `report_figures.py`.
"""
