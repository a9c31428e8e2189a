"""Logs that are no tables: lines, JSON documents, and rows gathered with every line accounted for.

Imports `devices`, `delimited`, `decoding` and `values`.
What several importers of such logs need goes here.
"""
