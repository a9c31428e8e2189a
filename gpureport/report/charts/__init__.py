"""Figures as SVG, drawn once for every format.

Imports `model`, `runs`, `wording` and matplotlib.
A new chart of matplotlib is a module here, listed in `report_figures.py`; one written by hand goes into `vector`.
"""
