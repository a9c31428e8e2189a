"""Limits that a person set, held against runs; used by `check`, `report` and `nightly`.

Imports the comparison and what is below it.
What may be limited is a line in `subjects.py`; how limits are told belongs to formats and commands.
"""
