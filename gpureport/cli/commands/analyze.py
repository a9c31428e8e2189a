"""`gpureport analyze`."""

import click

from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.gate_options import fail_on_option
from gpureport.cli.options.selection_options import selection_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.results import limit_checks, report_output
from gpureport.cli.runs import analyses, named_runs, run_sampling, stored_runs
from gpureport.store.run_selection import RunSelection


@click.command()
@click.argument("source", nargs=-1, shell_complete=complete_files)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@report_output.text_detail_option
@fail_on_option
@selection_options
@analysis_options
@source_options
def analyze(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    form: str,
    detail: str,
    fail_on: tuple[str, ...],
    selection: RunSelection,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Say where the GPU time of a run went, and why.

    Example: gpureport analyze gpu.csv

    A SOURCE is a log, a folder of logs, or a run of the store. --where and --since select runs of the store instead.
    """
    source = stored_runs.select_sources(source, selection, options)
    if not source:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'SOURCE...'", param_type="argument")
    policy = limit_checks.read_policy_without_baseline(analysis.config, fail_on)
    # a limit must not pass because logs could not be read
    found = named_runs.read_recordings(source, options, tolerant=not fail_on)
    analysed = analyses.analyze_runs(found, analysis)
    checks = limit_checks.check_limits(policy, analysed, throughput=options.tracker.throughput)
    if form == "json":
        click.echo(_json(analysed, options), nl=False)
    else:
        report_output.print_report(report_output.build_report(analysed, checks=checks), full=detail == "full")
    return limit_checks.report_failed_limits(checks)


def _json(analysed: "analyses.AnalysedRuns", options: SourceOptions) -> str:
    """Return the analyses as JSON, with what several runs say together."""
    from gpureport.comparison.steps import build_steps  # noqa: PLC0415 - loads numpy
    from gpureport.report.formats import analysis_json  # noqa: PLC0415 - as above

    several = len(analysed.runs) > 1
    measured = run_sampling.sample_runs(analysed.runs, options.tracker.throughput) if several else []
    return analysis_json.render([analysis for _, analysis in analysed.runs], tuple(build_steps(measured)))
