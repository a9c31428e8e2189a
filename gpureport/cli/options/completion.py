"""What the shell offers for a source: files. The rest is click's own."""

import click
from click.shell_completion import CompletionItem


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer files."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]
