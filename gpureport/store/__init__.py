"""Stores each run in its own folder, which is replaced atomically. Series are Parquet, which many tools can read.

The module `store` needs Arrow, whereas `run_selection` does not.
"""
