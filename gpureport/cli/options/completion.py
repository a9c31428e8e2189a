"""What the shell offers for the name of a run: stored runs, or files. The rest is click's own."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gpureport.store.stored_names import find_store_folder, list_stored_names

if TYPE_CHECKING:
    from gpureport.places import Place


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer files."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the runs of the store that --store names, else of the nearest one; none of a store in a bucket."""
    del param
    chosen: Place | None = ctx.params.get("store") or (ctx.parent.params.get("store") if ctx.parent else None)
    store = chosen or find_store_folder(Path.cwd())
    runs = list_stored_names(store) if isinstance(store, Path) else []
    return [CompletionItem(run.word) for run in reversed(runs) if run.word.startswith(incomplete)]
