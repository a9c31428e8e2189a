"""Figures written as SVG by hand: sharp at any width of a page, in points on paper. A new one is a module here."""
