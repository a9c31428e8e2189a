"""Reports on many runs: summarises each run, and combines the summaries into one report.

`summarise` builds and stores the rows of one run, and `running` does so for many runs, locally
or on a cluster. `totals` and `cards` build the report, `page` and `page_parts` put it into words,
and `formats` writes it. Nothing here reads a log directly.
"""
