"""Checks whether runs meet the limits that users set, for `check`, `report` and `nightly`.

`limit` parses a limit, and `policy` collects limits. `evaluation` applies a policy to runs: to their figures
(`figures`), findings, and changes since a baseline (`changes`). `verdict` reports the results and the exit
code. To allow limits on another figure, add it to the tables in `limit`.
"""
