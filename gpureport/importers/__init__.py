"""Sources to recordings: the one place that runs importers. Callers import from the modules.

`sources` says which files are logs, and `refusals` what others are; `runs` which logs are one run, by what `surveys`
learn of them, `nodes` says of their machines and `grouping` makes of it. `reading` reads a run: its only log as it
comes, several as `joining` puts them together. `run_facts` and `labels` hold what is known beside the rows,
`time_window` reads a part of a run, `tracked` a run of a tracker.
`protocol` is what an importer and a tracker are; to follow one log, start at `extraction.py` and `nvidia_smi/query.py`.
"""
