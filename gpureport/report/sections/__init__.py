"""The parts of a report: each module builds its part of the model from analyses and comparisons.

Imports `model`, `runs` and `wording`; no format and no chart.
A new section: one module here that returns a `RunTable` or `RunFacts` a run, a field of `Report` with its heading,
and the call in `builder.py`. Terminal, Markdown and JSON show it without new code. A page and a PDF show it by a few
lines in `templates/report.html` and `templates/report.typ`.
`python docs/site/make_pages.py` then writes the field into `docs/reference/report-1.schema.json`.
"""
