"""What else changed from the first step to the last, in words."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import COST_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.wording.differences import difference_wording


def list_other_changes(comparison: Comparison) -> Iterator[str]:
    """Yield the other figures that are worse or better, then those moved without a verdict."""
    first, last = comparison.steps[0], comparison.steps[-1]
    judged = comparison.judged(first.label, last.label)
    if judged is None or judged.difference is None:
        return
    others = [delta for delta in comparison.between(first.label, last.label) if not _says_the_same(delta, judged)]
    currency, units = spending.currency(last.analyses), figure_formats.gather_work_units(comparison)
    shown = {
        delta.metric: figure_formats.choose_format(delta.metric, last.work_unit, currency, units=units)
        for delta in others
    }
    for verdict in (Verdict.WORSE, Verdict.BETTER):
        moved = [_describe_move(delta, shown[delta.metric]) for delta in others if delta.verdict is verdict]
        if moved:
            yield f"Also {verdict.value}: {'; '.join(moved)}."
    rest = [
        _describe_move(delta, shown[delta.metric])
        for delta in others
        if (delta.verdict is Verdict.DIFFERS and not _repeats_sm_clock(delta, others))
        and not _prints_the_same(delta, shown[delta.metric])
    ]
    if rest:
        yield f"Also changed: {'; '.join(rest)}."


def _says_the_same(other: Delta, judged: Delta) -> bool:
    """Return whether a figure is the one judged or equivalent; cost where prices are equal."""
    covered = {WORK_RATE, TRAINING_RATE, "gpu_seconds", "energy_joules"} if judged.metric == PER_WORK else set()
    if other.metric == COST_PER_WORK and other.verdict is judged.verdict:
        return judged.metric == PER_WORK
    return other.metric in {judged.metric, *covered}


def _repeats_sm_clock(delta: Delta, others: Sequence[Delta]) -> bool:
    """Return whether a figure is the graphics clock and moved as the SM clock beside it did."""
    if delta.metric != "gpu_graphics_clock_hertz":
        return False
    clocks = [other for other in others if other.metric == "gpu_sm_clock_hertz" and other.verdict is delta.verdict]
    shown = figure_formats.choose_format(delta.metric, None)
    return any(
        shown.format_pair(each.before, each.after) == shown.format_pair(delta.before, delta.after) for each in clocks
    )


def _prints_the_same(delta: Delta, shown: difference_wording.FigureFormat) -> bool:
    """Return whether a figure differs by less than is printed of it."""
    before, after = shown.format_pair(delta.before, delta.after)
    return before == after


def _describe_move(delta: Delta, shown: difference_wording.FigureFormat) -> str:
    before, after = shown.format_pair(delta.before, delta.after)
    moved = f"still {after}" if before == after else f"{before} to {after}"
    # the tile and the table beside it are of whole recordings
    settled = " in steady state" if delta.window == "steady" else ""
    return f"{shown.noun}{settled} {moved}"
