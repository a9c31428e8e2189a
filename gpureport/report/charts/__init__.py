"""Figures as SVG, drawn once for every format. Imports `model`, `runs` and `wording`."""
