"""`gpureport explain`."""

from pathlib import Path

import click

from gpureport.cli import output
from gpureport.cli.options import config_option


@click.command()
@click.argument("name", metavar="[KIND|METRIC|recording]", required=False)
@config_option
def explain(*, name: str | None, config: Path | None) -> None:
    """Explain a kind of finding, a metric, or what to record.

    A kind comes with its condition, its limits and where they come from, what it needs, and advice; a metric with
    what it means and what records it (the name of the nvidia-smi field does as well). `recording` prints the
    commands whose logs let every kind be judged. Without a name, all there is to explain is listed.
    """
    from gpureport.analysis import RULES  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.analysis.selection import configured  # noqa: PLC0415 - as above
    from gpureport.report import explanation  # noqa: PLC0415 - as above
    from gpureport.settings import read  # noqa: PLC0415 - only here

    output.explanation(explanation.explain(name, configured(RULES, read(config))))
