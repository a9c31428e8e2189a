"""The page on many runs as values ready to print: words are made here once, and every format sets the same.

Imports `fleet_report` and what the report has: `model`, `wording`, `sections`; reads no summary and no file.
A new part goes into `parts`; what the head says is a module here.
"""
