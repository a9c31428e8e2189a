"""`gpureport analyze`."""

from pathlib import Path

import click

from gpureport.cli.options.shared_options import PriceOptions, SourceOptions, analysis_options, source_options
from gpureport.cli.results import gate
from gpureport.cli.runs import analyses, measuring, named_runs


@click.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@click.option(
    "--detail",
    type=click.Choice(["short", "full"]),
    default="short",
    help="Text with the titles of the steps to take, or with the steps in full and every kind's answer.",
)
@gate.fail_on
@analysis_options
@source_options
def analyze(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    form: str,
    detail: str,
    fail_on: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    prices: PriceOptions,
    config: Path | None,
    options: SourceOptions,
) -> int:
    """Say where the GPU time of a run went, and why.

    A SOURCE is a log, a folder of logs, or a run of the store.
    """
    policy = gate.alone(config, fail_on)
    # a limit that was asked for must not pass on logs that could not be read
    found = named_runs.recordings(source, options, tolerant=not fail_on)
    analysed = analyses.analysed(found, select, ignore, config, prices)
    if form == "json":
        click.echo(_json(analysed, options), nl=False)
        return gate.failed(gate.checks(policy, analysed, no_baseline=gate.ELSEWHERE))
    from gpureport.cli.results.report_output import report, terminal  # noqa: PLC0415 - loads the report

    checks = gate.checks(policy, analysed, no_baseline=gate.ELSEWHERE)
    terminal(report(analysed, checks=checks), full=detail == "full")
    return gate.failed(checks)


def _json(analysed: "analyses.Analysed", options: SourceOptions) -> str:
    """Return the analyses as JSON, with what several runs say together."""
    from gpureport.comparison.steps.steps import steps_of  # noqa: PLC0415 - loads numpy
    from gpureport.report.formats.json import analysis_json  # noqa: PLC0415 - as above

    several = len(analysed.runs) > 1
    measured = measuring.measured(analysed.runs, options.throughput) if several else []
    return analysis_json.render([analysis for _, analysis in analysed.runs], tuple(steps_of(measured)))
