"""The parts of a report: each module builds its part of the model from analyses and comparisons.

Imports `model`, `runs` and `wording`; no format and no chart.
A new section: one module here that returns a `RunTable` or `RunFacts` a run; a field of `Report` with its heading and the
call in `builder.py`: terminal, Markdown and JSON follow from these. Then `templates/sections/NAME.html` and `NAME.typ`,
each with its line in `report.html` and `report.typ`.
"""
