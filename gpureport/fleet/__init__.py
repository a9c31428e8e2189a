"""Reports on many runs: each run is summarised separately, and the summaries are added up into one report.

`summarise` builds and stores the rows of one run, and `running` does so for many runs, here
or on a cluster. `totals` and `cards` build the report, `page` words it, and `formats`
writes it. Nothing here reads a log by itself.
"""
