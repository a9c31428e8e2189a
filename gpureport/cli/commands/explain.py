"""`gpureport explain`."""

import click

from gpureport.analysis import RULES
from gpureport.analysis.account.selection import apply_settings
from gpureport.cli.options import Options
from gpureport.cli.output import measure_page
from gpureport.report import explanation
from gpureport.settings import read_settings


def explain(name: str | None, options: Options) -> None:
    """Print what a name means."""
    rules = apply_settings(RULES, read_settings(options.config))
    blocks = explanation.explain(name, rules, brief=options.explained_detail == "short")
    click.echo(explanation.render(blocks, measure_page()), nl=False)
