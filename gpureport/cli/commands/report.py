"""`gpureport report`."""

from pathlib import Path

import click

from gpureport.cli.options.option_values import Detail
from gpureport.cli.options.shared_options import PriceOptions, SourceOptions, analysis_options, source_options
from gpureport.cli.results import limit_checks, report_output
from gpureport.cli.runs import analyses
from gpureport.cli.runs.step_grouping import StepOptions, read_steps, step_options


@click.command()
@click.argument("source", nargs=-1)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="FILE",
    help="File to write, its kind by its extension (repeatable; one analysis for all).",
)
@click.option("--title", help="Title instead of the runs' names.")
@click.option(
    "--templates", type=click.Path(path_type=Path), metavar="DIR", help="Templates that replace the shipped ones."
)
@click.option(
    "--detail",
    type=Detail(),
    default="auto",
    help="Samples in the charts of a page: all (full), all while they fit (auto), or buckets of so many seconds.",
)
@limit_checks.fail_on
@step_options
@analysis_options
@source_options
def report(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    outputs: tuple[Path, ...],
    title: str | None,
    templates: Path | None,
    detail: int | None,
    fail_on: tuple[str, ...],
    chain: StepOptions,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    prices: PriceOptions,
    config: Path | None,
    options: SourceOptions,
) -> int:
    """Write the report of one run, or of several as steps in the order given.

    A SOURCE is a log, a folder of logs, or a run of the store. Runs of one step are repetitions of it; a run without
    a step label is a step of its own. Limits of the settings ([[policy]]) are printed with what became of them; a
    broken one of --fail-on ends it with 1.
    """
    report_output.check_outputs(outputs, templates=templates, detail=detail)
    policy = limit_checks.read_policy_without_baseline(config, fail_on)
    found = read_steps(source, chain, options, tolerant=not fail_on)
    report_output.check_outputs(outputs, [each.locator for recording in found for each in recording.run.sources])
    analysed = analyses.analyze_runs(found, select, ignore, config, prices)
    checks = limit_checks.check_limits(policy, analysed, no_baseline=limit_checks.NO_BASELINE_HERE)
    content = report_output.build_report(
        analysed, title, grouped=chain.grouped, throughput=options.throughput, checks=checks
    )
    report_output.write_report(content, outputs, templates, detail)
    return limit_checks.report_failed_limits(checks)
