"""Runs on disk: one folder a run, Parquet that any tool reads, replaced whole or not at all."""

from gpureport.store.store import Entry, Store

__all__ = ["Entry", "Store"]
