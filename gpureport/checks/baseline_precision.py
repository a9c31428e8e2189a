"""What a baseline of several runs can hold: how far they differ, and the smallest change a rule may be on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, inf, isfinite, log
from statistics import stdev

from gpureport.checks.check_wording import name_figure_for_one
from gpureport.comparison.chain import Comparison, compare
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.figures import BY_METRIC, Figure, FigureRole, Resolution, observed_seconds
from gpureport.comparison.run import UTILISATION, SampledRun
from gpureport.comparison.steps import Step, find_resolution
from gpureport.comparison.verdict import (
    RunInterval,
    Verdict,
    estimate_interval_of_next_run,
    estimate_runs_for_interval,
    find_smallest_ratio,
)
from gpureport.report.wording import display
from gpureport.report.wording.reasons import describe_reason

_BASELINE, _ANOTHER = "baseline", "another run"

_ROOM = 0.9
"""Part of the wanted half-width that is aimed at: few runs tell only roughly how far runs differ (pragmatic)."""
_LARGEST = 1.0
"""Size from which a rule holds nothing worth a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """A figure of each run of a baseline that counts.

    Attributes:
        figure: the figure.
        values: one a run; of figures per unit of work their logarithms.
        resolution: how finely they are known.
    """

    figure: Figure
    values: tuple[float, ...]
    resolution: Resolution

    @property
    def is_ratio(self) -> bool:
        """Whether the values are logarithms, so that differences are relative."""
        return self.figure.role is FigureRole.WORK


def read_run_figures(step: Step, metric: str) -> RunFigures:
    """Return a figure of each run of a step, as a comparison takes it."""
    figure = BY_METRIC[metric]
    evidence = gather_evidence(step, step, figure)
    is_ratio = figure.role is FigureRole.WORK
    values = tuple(log(value) if is_ratio else value for value in evidence.figures[0])
    resolution = find_resolution(step, step, metric) if is_ratio and values else Resolution(finest=figure.finest)
    return RunFigures(figure=figure, values=values, resolution=resolution)


def list_statements(runs: Sequence[SampledRun]) -> Iterator[str]:
    """Yield what a baseline can hold, by the interval of one more run against it."""
    if len(runs) < 2:  # noqa: PLR2004 - one run has no scatter
        yield "1 run shows no spread: with three or more, a rule can hold a smaller size."
        return
    comparison = compare([*(run.in_step(_BASELINE) for run in runs), _make_another(runs).in_step(_ANOTHER)])
    delta, base = comparison.judged(_BASELINE, _ANOTHER), comparison.steps[0]
    found = read_run_figures(base, comparison.primary)
    if len(found.values) > 1 and delta is not None and delta.verdict is not Verdict.NOT_ENOUGH_DATA:
        yield _describe_size(found)
        yield from _list_unassessed_use(comparison)
        return
    why = "" if delta is None else display.clean_sentence(describe_reason(delta.reason))
    yield f"No rule on a change can be assessed against these runs. {why}".rstrip()


def _list_unassessed_use(comparison: Comparison) -> Iterator[str]:
    """Yield that no rule on a change of use can be assessed, as runs train for too short a time."""
    deltas = {delta.metric: delta for delta in comparison.between(_BASELINE, _ANOTHER)}
    use = deltas.get(UTILISATION)
    if use is not None and not use.primary and use.verdict is Verdict.NOT_ENOUGH_DATA:
        yield (
            "No rule on a change of utilisation or idle share can be assessed against them: "
            f"{display.clean_sentence(describe_reason(use.reason))}"
        )


def _make_another(runs: Sequence[SampledRun]) -> SampledRun:
    """Return the longest of runs as if it were checked against all of them."""
    longest = max(runs, key=lambda run: observed_seconds([run.analysis]))
    return replace(longest, analysis=replace(longest.analysis, run=replace(longest.analysis.run, id=_ANOTHER)))


def _describe_size(found: RunFigures) -> str:
    """Return by how much runs differ, and the size that a rule can hold."""
    known = found.resolution
    half = estimate_interval_of_next_run(found.values, known.finest, known.least)
    spread = stdev(found.values)
    count = f"{len(found.values)} runs"
    if not found.is_ratio:
        size = ceil(half * 100 - 1e-9) / 100
        held = f"{display.percentage_points(size).lstrip('+').replace('.0', '')} or more"
        spread_words = display.percentage_points(spread).lstrip("+")
        other = "; for one on GPU time per unit of work, give --work N:UNIT"
    else:
        size = find_smallest_size(half)
        held = f"{size:.0%} or more" if isfinite(size) else ""
        spread_words, other = display.percent(exp(spread) - 1), ""
    noun = name_figure_for_one(found.figure.metric)
    if size >= _LARGEST:
        return f"{count} spread by {spread_words}: too much for a rule on {noun}{other}."
    return f"{count} spread by {spread_words}: a rule on {noun} can hold a size of {held}{other}."


def advise_more_data(now: RunInterval, *, aim: float, is_near_limit: bool) -> str:
    """Return what leaves the size of a change against several runs open, and what would settle it.

    Args:
        now: the interval of the change, with the runs of the baseline first.
        aim: half-width of the interval that would settle it, as a share of the present one.
        is_near_limit: whether the change breaks the limit by very little, and not for certain.
    """
    wanted = now.half_width * aim * _ROOM
    cause = "this short" if now.least > wanted else "that differ this much"
    runs = estimate_runs_for_interval(now, wanted)
    if runs is None and is_near_limit:
        return "so close to the limit: state another size"
    return f"from runs {cause}: {f'take {runs} baseline runs' if runs else 'take longer ones, or state a larger size'}"


def find_smallest_size(half_width: float) -> float:
    """Return the smallest size of a rule that one more run keeps, in per cent; from 100% on infinite."""
    size = find_smallest_ratio(half_width)
    return ceil(size * 100 - 1e-9) / 100 if size < _LARGEST else inf
