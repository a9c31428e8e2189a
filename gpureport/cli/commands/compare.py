"""`gpureport compare`."""

from collections.abc import Sequence

import click

from gpureport.cli import output
from gpureport.cli.messages import Exit, UsageError, print_error
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs, sample_runs
from gpureport.cli.reading.steps import list_factors, read_steps
from gpureport.comparison.chain import compare as compare_steps
from gpureport.comparison.chain import pair_steps
from gpureport.recording import Recording
from gpureport.report.formats import comparison_json

_SIDES = 2
"""Runs that a comparison takes at least."""


def compare(source: tuple[str, ...], options: Options) -> int:
    """Print the comparison of runs; 4 where nothing of what was read can be compared."""
    found = read_steps(source, options, tolerant=True)
    _refuse_single_step(found, options)
    analysed, by = analyze_runs(found, options, fewest_runs=_SIDES), list_factors(options)
    comparison = compare_steps(sample_runs(analysed.runs, options.throughput), goals=analysed.goals)
    if options.form == "json":
        click.echo(comparison_json.render(comparison, by), nl=False)
    else:
        output.print_report(output.build_report(analysed, options, by=by), options)
    if any(link.comparable for link in pair_steps(comparison)):
        return 0
    named = ", ".join(recording.run.name for recording, _ in analysed.runs)
    print_error(f"{named}: nothing can be compared; record at least 20 s of the GPUs in each step")
    return Exit.UNASSESSED


def _refuse_single_step(found: Sequence[Recording], options: Options) -> None:
    if len(found) < _SIDES:
        msg = f"a comparison needs at least two runs, and this is {len(found)}; name another"
        raise UsageError(msg, code="too_few_runs")
    steps = {one.run.step for one in found}
    if len(steps) == 1 and None not in steps:
        label = " and ".join(f"{by.kind} {by.key!r}" if by.key else by.kind for by in options.by) or "step"
        msg = f"all {len(found)} runs are of one {label} ({found[0].run.step}), which leaves nothing to compare"
        raise UsageError(msg, code="one_step")
