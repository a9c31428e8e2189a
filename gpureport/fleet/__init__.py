"""Reports on many runs: each run is summarised separately, and the summaries are combined into one report.

`summarise` builds and stores the rows of one run, and `running` does so for many runs, locally
or on a cluster. `totals` and `cards` build the report, `page` and `page_parts` put it into words,
and `formats` writes it. Nothing here reads a log directly.
"""
