"""Stores runs on disk: one folder per run, replaced atomically, with series as Parquet, which any tool reads.

The module `store` needs Arrow, whereas `run_selection` does not.
"""
