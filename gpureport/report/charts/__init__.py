"""Figures as SVG, drawn once for every format: a page, a PDF, and a picture in a file of its own.

`palette` has the colours, `elements` what every figure is made of, `rows` the figures that a page lays out itself with
names and figures beside them, `strips` those that stand alone. Imports `model`, `runs` and `wording`.
"""
