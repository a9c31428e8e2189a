"""The parts of the page below its head: a table, bars or statements each, with the line that stands beside its heading.

Imports the rest of `page` but `page_building`; no part imports another.
A new part is a module here that returns a `PagePart`, and one line in `page_building`.
"""
