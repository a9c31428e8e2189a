"""`gpureport analyze`."""

import click

from gpureport.cli import gate, output
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs, sample_runs
from gpureport.cli.reading.recordings import read_recordings
from gpureport.cli.reading.words import select_sources
from gpureport.comparison.steps import build_steps
from gpureport.report.formats import analysis_json


def analyze(source: tuple[str, ...], options: Options) -> int:
    """Print the analysis of runs."""
    source = select_sources(source, options)
    if not source:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'SOURCE...'", param_type="argument")
    policy = gate.read_policy_without_baseline(options)
    # a limit must not pass because logs could not be read
    found = read_recordings(source, options, tolerant=not options.fail_on)
    analysed = analyze_runs(found, options)
    checks = gate.check_limits(policy, analysed, options)
    if options.form == "json":
        # with what several runs say together
        measured = sample_runs(analysed.runs, options.throughput) if len(analysed.runs) > 1 else []
        analyses = [analysis for _, analysis in analysed.runs]
        click.echo(analysis_json.render(analyses, tuple(build_steps(measured))), nl=False)
    else:
        output.print_report(output.build_report(analysed, options, checks=checks), options)
    return gate.report_failed_limits(checks)
