"""Stores runs on disk: one folder per run, replaced atomically, with series as Parquet, which many tools can read.

The module `store` needs Arrow, whereas `run_selection` does not.
"""
