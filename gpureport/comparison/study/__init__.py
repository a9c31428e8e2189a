"""Groups by one or two settings: their order, the best of them, and the effect of each setting that varied.

Imports every room of the comparison but `across_runs`.
A new way to group runs is a kind of `Factor`; a new statement on all groups is a module that `study.py` calls.
"""
