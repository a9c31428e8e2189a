"""Limits that a person set, and whether runs keep them; used by `check`, `report` and `nightly`.

Text becomes a `limit`, limits become a `policy`, and a policy held against runs (`evaluation`) becomes checks: figures
of a run (`figures`), findings, and changes since a baseline (`changes`). A `verdict` sums checks up and says them in
every format. A new thing that may be limited is a line in the table of `limit`.
"""
