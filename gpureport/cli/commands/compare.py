"""`gpureport compare`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.selection_options import selection_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.options.usage_errors import UsageError
from gpureport.cli.results import report_output
from gpureport.cli.runs import run_sampling
from gpureport.cli.runs.analyses import analyze_runs
from gpureport.cli.runs.step_grouping import StepOptions, read_steps, select_steps, step_options
from gpureport.store.run_selection import RunSelection

if TYPE_CHECKING:
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.comparison.chain import Comparison
    from gpureport.comparison.factors import Factor
    from gpureport.recording import Recording

_CANNOT_JUDGE = 4
"""Exit code when everything was read, and nothing of it can be compared."""
_SIDES = 2
"""Runs that a comparison takes at least."""


@click.command()
@click.argument("source", metavar="[BASE NEXT...]", nargs=-1, shell_complete=complete_files)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@report_output.text_detail_option
@step_options
@selection_options
@analysis_options
@source_options
def compare(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    form: str,
    detail: str,
    chain: StepOptions,
    selection: RunSelection,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Compare runs, each step with the one before it.

    Example: gpureport compare runs/base runs/workers

    Each of BASE and NEXT is a log, a folder of logs, a run of the store, or a baseline. Runs of one step are
    repetitions of it. A run without a step label is a step of its own. A folder of several recordings, named beside
    other sources, is one step. A single run against another shows at most that the two differ: repeat each step three
    times to know more. A log in a folder that cannot be read is named and left out. --where and --since
    select runs of the store instead.
    """
    source = select_steps(source, selection, chain, options)
    found = read_steps(source, chain, options, tolerant=True)
    _refuse_single_step(found, chain)
    analysed = analyze_runs(found, analysis, fewest_runs=_SIDES)
    return _show(analysed, options.tracker.throughput, chain.factors, form=form, full=detail == "full")


def _show(
    analysed: "AnalysedRuns",
    throughput: str | None,
    by: "Sequence[Factor]",
    *,
    form: str,
    full: bool,
) -> int:
    """Print the comparison, and return the exit code."""
    from gpureport.comparison.chain import compare as compared  # noqa: PLC0415 - loads numpy

    measured = run_sampling.sample_runs(analysed.runs, throughput)
    comparison = compared(measured, goals=analysed.goals)
    if form == "json":
        from gpureport.report.formats import comparison_json  # noqa: PLC0415 - loads numpy

        click.echo(comparison_json.render(comparison, by), nl=False)
    else:
        content = report_output.build_report(analysed, by=by, throughput=throughput)
        report_output.print_report(content, full=full)
    return _code(analysed, comparison)


def _code(analysed: "AnalysedRuns", comparison: "Comparison") -> int:
    """Return the exit code, and say on standard error when nothing can be judged."""
    from gpureport.comparison.chain import pair_steps  # noqa: PLC0415 - loads numpy

    if any(link.comparable for link in pair_steps(comparison)):
        return 0
    named = ", ".join(make_printable(recording.run.name) for recording, _ in analysed.runs)
    click.echo(
        f"gpureport: {named}: nothing can be compared; record at least 20 s of the GPUs in each step",
        err=True,
    )
    return _CANNOT_JUDGE


def _refuse_single_step(found: Sequence["Recording"], chain: StepOptions) -> None:
    """Refuse what makes no pair of steps.

    Raises:
        UsageError: when there are fewer than two runs, or all are of one step.
    """
    if len(found) < _SIDES:
        msg = f"a comparison needs at least two runs, and this is {len(found)}; name another"
        raise UsageError(msg, click.get_current_context(), code="too_few_runs")
    steps = {one.run.step for one in found}
    if len(steps) == 1 and None not in steps:
        msg = f"all {len(found)} runs are of one {chain.label} ({found[0].run.step}), which leaves nothing to compare"
        raise UsageError(msg, click.get_current_context(), code="one_step")
