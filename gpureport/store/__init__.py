"""Stores runs on disk, with one folder per run, replaced atomically. Series are Parquet, which many tools can read.

The module `store` needs Arrow, whereas `run_selection` does not.
"""
