"""The store that `--store` names, for commands on stored runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.place_type import PLACE
from gpureport.errors import StoreError

if TYPE_CHECKING:
    from gpureport.places import Place
    from gpureport.store.store import Store

store_option = click.option("--store", type=PLACE, metavar="DIR", help="The store: a folder, or s3://BUCKET/FOLDER.")
"""The option that names the store."""


def open_store(folder: "Place | None") -> "Store":
    """Return the store a person named, else the nearest one."""
    from gpureport.store.store import Store  # noqa: PLC0415 - loads pyarrow

    if folder is None:
        above = click.get_current_context().find_root().params.get("store")
        parent = click.get_current_context().parent
        folder = above or (parent.params.get("store") if parent else None)
    if folder is None:
        return Store.find(Path.cwd())
    if not folder.is_dir():
        raise StoreError(str(folder), "no such store", "check the path, or ingest into it first", code="no_such_store")
    return Store(folder)
