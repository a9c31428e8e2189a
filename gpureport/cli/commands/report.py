"""`gpureport report`."""

from gpureport.cli import gate, output
from gpureport.cli.command import command, sources
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs
from gpureport.cli.reading.steps import list_factors, read_steps


@command("report", sources())
def report(source: tuple[str, ...], options: Options) -> int:
    """Write the report of one run, or of several as steps in the order given.

    Example: gpureport report gpu.csv -o report.html --open

    A SOURCE is a log, a folder of logs, a run of the store, or a baseline. Runs of one step are repetitions of it. A
    run without a step label is a step of its own. A folder of several recordings, named beside other sources, is one
    step. The report shows whether the rules of the settings ([[policy]])
    hold. The exit code is 1 if a rule of --fail-on is broken. --where and --since select runs of the store instead.
    """
    from gpureport.report.formats.branding import read_brand  # noqa: PLC0415 - loads the report
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    brand = read_brand(read_settings(options.config))
    output.check_outputs(options, [*map(str, brand.files)])
    policy = gate.read_policy_without_baseline(options)
    found = read_steps(source, options, tolerant=not options.fail_on)
    output.check_outputs(options, [each.locator for recording in found for each in recording.run.sources])
    analysed = analyze_runs(found, options)
    checks = gate.check_limits(policy, analysed, options)
    content = output.build_report(analysed, options, by=list_factors(options), checks=checks)
    output.write_report(content, options, brand)
    return gate.report_failed_limits(checks)
