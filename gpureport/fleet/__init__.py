"""Many runs at once: each is summarised by itself, then the summaries are added up into one report.

`summarise` makes the rows of a run and keeps them; `running` does so for many runs, here or on a cluster; `totals` and
`cards` add up the report, `page` words it, `formats` set the page. Nothing here reads a log by itself.
"""
