"""Limits that a person set, and whether runs keep them; used by `check`, `report` and `nightly`.

Imports the comparison and what is below it.
A new thing that may be limited is a line in `limit.py`. How results are shown belongs to formats and commands.
"""
