"""`gpureport explain`."""

from pathlib import Path

import click

from gpureport.cli.options.analysis_options import config_option
from gpureport.cli.results import report_output


@click.command()
@click.argument("name", metavar="[CHECK|CLASS|METRIC|FIGURE|recording]", required=False)
@click.option(
    "--detail",
    type=click.Choice(["short", "full"]),
    default="short",
    help="A check on one page, or with all its limits, advice and steps.",
)
@config_option
def explain(*, name: str | None, detail: str, config: Path | None) -> None:
    """Explain a check, a class of GPU time, a metric, a figure, or what to record.

    Example: gpureport explain idle_gap

    For a check it prints the condition, what it needs and the steps to take; with --detail full also its limits, their
    sources and all advice. For a class of GPU time, such as short_pauses, it prints what the class holds. For a metric,
    or a field of nvidia-smi, it prints what it means and what records it; for a figure of a run, such as idle_ratio,
    what it means and a rule on it. `recording` prints the commands whose logs let every check be made. Without a name
    it lists all that can be explained.
    """
    from gpureport.analysis import RULES  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.analysis.account.selection import apply_settings  # noqa: PLC0415 - as above
    from gpureport.report import explanation  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    blocks = explanation.explain(name, apply_settings(RULES, read_settings(config)), brief=detail == "short")
    click.echo(explanation.render(blocks, report_output.measure_page()), nl=False)
