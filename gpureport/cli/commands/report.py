"""`gpureport report`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_baseline_sources
from gpureport.cli.options.gate_options import fail_on_option
from gpureport.cli.options.option_values import Detail
from gpureport.cli.options.selection_options import selection_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.options.written_paths import OUTPUT, WritingCommand
from gpureport.cli.results import limit_checks, report_output
from gpureport.cli.runs import analyses
from gpureport.cli.runs.step_grouping import StepOptions, read_steps, select_steps, step_options
from gpureport.store.run_selection import RunSelection

if TYPE_CHECKING:
    from gpureport.places import Place


@click.command(cls=WritingCommand)
@click.argument("source", nargs=-1, shell_complete=complete_baseline_sources)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    multiple=True,
    required=True,
    metavar="FILE",
    help="File to write; its extension names the format (repeatable).",
)
@click.option("--title", help="Title (default: the names of the runs).")
@click.option("--templates", type=click.Path(path_type=Path), metavar="DIR", help="Folder with your own templates.")
@click.option(
    "--detail",
    type=Detail(),
    default="auto",
    help="full: everything in a PDF or text, every sample in a page; auto: what fits; a number: means over seconds.",
)
@report_output.open_option
@fail_on_option
@step_options
@selection_options
@analysis_options
@source_options
def report(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    outputs: "tuple[Place, ...]",
    title: str | None,
    templates: Path | None,
    detail: int | None,
    opened: bool,
    fail_on: tuple[str, ...],
    chain: StepOptions,
    selection: RunSelection,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Write the report of one run, or of several as steps in the order given.

    Example: gpureport report gpu.csv -o report.html --open

    A SOURCE is a log, a folder of logs, a run of the store, or a baseline. Runs of one step are repetitions of it. A
    run without a step label is a step of its own. A folder of several recordings, named beside other sources, is one
    step. The report shows whether the rules of the settings ([[policy]])
    hold. The exit code is 1 if a rule of --fail-on is broken. --where and --since select runs of the store instead.
    """
    report_output.check_outputs(outputs, templates=templates, detail=detail)
    if opened:
        report_output.check_openable(outputs)
    policy = limit_checks.read_policy_without_baseline(analysis.config, fail_on)
    source = select_steps(source, selection, chain, options)
    found = read_steps(source, chain, options, tolerant=not fail_on)
    report_output.check_outputs(outputs, [each.locator for recording in found for each in recording.run.sources])
    analysed = analyses.analyze_runs(found, analysis)
    checks = limit_checks.check_limits(policy, analysed, throughput=options.tracker.throughput)
    content = report_output.build_report(
        analysed, title, by=chain.factors, throughput=options.tracker.throughput, checks=checks
    )
    report_output.write_report(content, outputs, templates, detail, opened=opened)
    return limit_checks.report_failed_limits(checks)
