"""Checks whether runs keep the limits that users set, for `check`, `report` and `nightly`.

`limit` parses a limit, and `policy` collects limits. `evaluation` checks a policy on runs: figures of a run
(`figures`), findings, and changes since a baseline (`changes`). `verdict` sums up the checks and writes them in every
format. To add a figure that may be limited, add it to the tables in `limit`.
"""
