"""Runs on disk: one folder per run, in Parquet that any tool reads, replaced atomically.

`store` needs Arrow and `run_selection` does not.
"""
