"""Summarises many runs side by side: what is new in a store, on any executor.

Imports `summaries` and the standard library's executors; Dask is loaded by its one module.
A new engine is one function that opens an executor.
"""
