"""Limits that users set, and whether runs keep them, for `check`, `report` and `nightly`.

`limit` parses a limit, and `policy` collects limits. `evaluation` checks a policy on runs: figures of a run
(`figures`), findings, and changes since a baseline (`changes`). `verdict` sums up the checks and writes them in every
format. A new figure that may be limited is an entry in the tables in `limit`.
"""
