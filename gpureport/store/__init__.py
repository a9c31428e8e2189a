"""Runs on disk: one folder a run, Parquet that any tool reads, replaced whole or not at all.

`Store` is loaded when it is asked for, since it needs Arrow, and `stored_names` does not.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpureport.store.store import Entry, Store

__all__ = ["Entry", "Store"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from gpureport.store import store  # noqa: PLC0415 - loads pyarrow

    return getattr(store, name)
