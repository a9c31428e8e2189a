"""Many runs at once: each is summarised by itself, then the summaries are added up into one report.

Imports everything below `checks`; nothing here reads a log by itself. `gpu_summary` and `fleet_report` are the types at
its borders. A new figure of a run goes into `summaries`, a new figure of all runs into `totals`.
"""
