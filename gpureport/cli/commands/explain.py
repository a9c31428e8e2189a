"""`gpureport explain`."""

import click

from gpureport.cli.command import command
from gpureport.cli.options import Options
from gpureport.cli.output import measure_page


@command("explain", click.Argument(["name"], metavar="[CHECK|CLASS|METRIC|FIGURE|recording]", required=False))
def explain(name: str | None, options: Options) -> None:
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

    rules = apply_settings(RULES, read_settings(options.config))
    blocks = explanation.explain(name, rules, brief=options.explained_detail == "short")
    click.echo(explanation.render(blocks, measure_page()), nl=False)
