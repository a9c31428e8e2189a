"""The parts of a report. Each module builds its part of the model from analyses and comparisons.

A new section needs a module here that returns a `RunTable` or `RunFacts` per run, a field in `Report`, a call in
`builder.py`, and a line in `blocks.py`. `python docs/site/make_pages.py` then adds the field to
`docs/reference/report-2.schema.json`.
"""
