"""`gpureport compare`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpureport.cli import output
from gpureport.cli.command import command, sources
from gpureport.cli.messages import UsageError, print_error
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs, sample_runs
from gpureport.cli.reading.steps import list_factors, read_steps

if TYPE_CHECKING:
    from gpureport.recording import Recording

_CANNOT_JUDGE = 4
"""Exit code when everything was read, and nothing of it can be compared."""
_SIDES = 2
"""Runs that a comparison takes at least."""


@command("compare", sources(metavar="[BASE NEXT...]"))
def compare(source: tuple[str, ...], options: Options) -> int:
    """Compare runs, each step with the one before it.

    Example: gpureport compare runs/base runs/workers

    Each of BASE and NEXT is a log, a folder of logs, a run of the store, or a baseline. Runs of one step are
    repetitions of it. A run without a step label is a step of its own. A folder of several recordings, named beside
    other sources, is one step. A single run against another shows at most that the two differ: repeat each step three
    times to know more. A log in a folder that cannot be read is named and left out. --where and --since
    select runs of the store instead.
    """
    from gpureport.comparison.chain import compare as compare_steps  # noqa: PLC0415 - loads numpy
    from gpureport.comparison.chain import pair_steps  # noqa: PLC0415 - as above
    from gpureport.report.formats import comparison_json  # noqa: PLC0415 - as above

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
    return _CANNOT_JUDGE


def _refuse_single_step(found: Sequence["Recording"], options: Options) -> None:
    """Refuse what makes no pair of steps.

    Raises:
        UsageError: when there are fewer than two runs, or all are of one step.
    """
    if len(found) < _SIDES:
        msg = f"a comparison needs at least two runs, and this is {len(found)}; name another"
        raise UsageError(msg, code="too_few_runs")
    steps = {one.run.step for one in found}
    if len(steps) == 1 and None not in steps:
        label = " and ".join(f"{by.kind} {by.key!r}" if by.key else by.kind for by in options.by) or "step"
        msg = f"all {len(found)} runs are of one {label} ({found[0].run.step}), which leaves nothing to compare"
        raise UsageError(msg, code="one_step")
