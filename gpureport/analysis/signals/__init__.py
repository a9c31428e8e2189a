"""Patterns in series that several families of rules and the attribution share: idle runs, low use, clocks held down.

Imports `series`, `job` and `rules`; no detector.
A pattern that only one family reads stays in that family's folder.
"""
