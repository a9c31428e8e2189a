"""`gpureport analyze`."""

import click

from gpureport.cli import gate, output
from gpureport.cli.command import command, sources
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import AnalysedRuns, analyze_runs, sample_runs
from gpureport.cli.reading.recordings import read_recordings
from gpureport.cli.reading.stored import select_sources


@command("analyze", sources())
def analyze(source: tuple[str, ...], options: Options) -> int:
    """Say where the GPU time of a run went, and why.

    Example: gpureport analyze gpu.csv

    A SOURCE is a log, a folder of logs, or a run of the store. --where and --since select runs of the store instead.
    """
    source = select_sources(source, options)
    if not source:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'SOURCE...'", param_type="argument")
    policy = gate.read_policy_without_baseline(options)
    # a limit must not pass because logs could not be read
    found = read_recordings(source, options, tolerant=not options.fail_on)
    analysed = analyze_runs(found, options)
    checks = gate.check_limits(policy, analysed, options)
    if options.form == "json":
        click.echo(_json(analysed, options), nl=False)
    else:
        output.print_report(output.build_report(analysed, options, checks=checks), options)
    return gate.report_failed_limits(checks)


def _json(analysed: AnalysedRuns, options: Options) -> str:
    """Return the analyses as JSON, with what several runs say together."""
    from gpureport.comparison.steps import build_steps  # noqa: PLC0415 - loads numpy
    from gpureport.report.formats import analysis_json  # noqa: PLC0415 - as above

    measured = sample_runs(analysed.runs, options.throughput) if len(analysed.runs) > 1 else []
    return analysis_json.render([analysis for _, analysis in analysed.runs], tuple(build_steps(measured)))
