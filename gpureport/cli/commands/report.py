"""`gpureport report`."""

from gpureport.cli import gate, output
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs
from gpureport.cli.reading.steps import list_factors, read_steps
from gpureport.report.formats.branding import read_brand
from gpureport.settings import read_settings


def report(source: tuple[str, ...], options: Options) -> int:
    """Write the report of runs to every file that is named."""
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
