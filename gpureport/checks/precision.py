"""What a baseline of several runs can hold: how far they differ, and the smallest change a rule may be on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, exp, log
from statistics import stdev

from gpureport.checks.wording import name_figure_for_one
from gpureport.comparison.chain import compare
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.figures import BY_METRIC, FigureRole, Resolution, observed_seconds
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


def list_statements(runs: Sequence[SampledRun]) -> Iterator[str]:
    """Yield what a baseline can hold, by the interval of one more run against it."""
    if len(runs) == 1:
        yield "1 run shows no spread: with three or more, a rule can hold a smaller size."
        return
    longest = max(runs, key=lambda run: observed_seconds([run.analysis]))
    another = replace(longest, analysis=replace(longest.analysis, run=replace(longest.analysis.run, id=_ANOTHER)))
    comparison = compare([*(run.in_step(_BASELINE) for run in runs), another.in_step(_ANOTHER)])
    delta, base = comparison.judged(_BASELINE, _ANOTHER), comparison.steps[0]
    size = _describe_size(base, comparison.primary)
    if not size or delta is None or delta.verdict is Verdict.NOT_ENOUGH_DATA:
        why = "" if delta is None else display.clean_sentence(describe_reason(delta.reason))
        yield f"No rule on a change can be assessed against these runs. {why}".rstrip()
        return
    yield size
    use = next((each for each in comparison.between(_BASELINE, _ANOTHER) if each.metric == UTILISATION), None)
    if use is not None and not use.primary and use.verdict is Verdict.NOT_ENOUGH_DATA:
        # runs that train for too short a time
        why = display.clean_sentence(describe_reason(use.reason))
        yield f"No rule on a change of utilisation or idle share can be assessed against them: {why}"


def _describe_size(base: Step, metric: str) -> str:
    """Return by how much runs differ, and the size that a rule can hold; empty without two runs that count."""
    figure = BY_METRIC[metric]
    is_ratio = figure.role is FigureRole.WORK
    values = [log(value) if is_ratio else value for value in gather_evidence(base, base, figure).figures[0]]
    if len(values) < 2:  # noqa: PLR2004 - one run has no scatter
        return ""
    known = find_resolution(base, base, metric) if is_ratio else Resolution(finest=figure.finest)
    half, spread = estimate_interval_of_next_run(values, known.finest, known.least), stdev(values)
    size = ceil(min(find_smallest_ratio(half) if is_ratio else half, _LARGEST) * 100 - 1e-9) / 100
    if is_ratio:
        held, spread_words, other = f"{size:.0%} or more", display.percent(exp(spread) - 1), ""
    else:
        other = "; for one on GPU time per unit of work, give --work N:UNIT"
        held = f"{display.percentage_points(size).lstrip('+').replace('.0', '')} or more"
        spread_words = display.percentage_points(spread).lstrip("+")
    noun, spreads = name_figure_for_one(metric), f"{len(values)} runs spread by {spread_words}"
    if size >= _LARGEST:
        return f"{spreads}: too much for a rule on {noun}{other}."
    return f"{spreads}: a rule on {noun} can hold a size of {held}{other}."


def advise_more_data(now: RunInterval, *, aim: float, is_near_limit: bool) -> str:
    """Return what leaves the size of a change against several runs open, and what would settle it.

    An interval of the part `aim` of its half-width, with the runs of the baseline first, would. So would another size,
    where a change breaks the limit by very little and not for certain.
    """
    wanted = now.half_width * aim * _ROOM
    runs = estimate_runs_for_interval(now, wanted)
    if runs is None and is_near_limit:
        return "so close to the limit: state another size"
    cause = "this short" if now.least > wanted else "that differ this much"
    return f"from runs {cause}: {f'take {runs} baseline runs' if runs else 'take longer ones, or state a larger size'}"
