"""Static pages made from the history alone.

Imports `changes` and `history`.
A new page is a function in `page_building.py` and a template.
"""
