"""Evidence on one figure in two steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, expm1, fsum, inf, isfinite, log

from gpureport.comparison import estimate, figures
from gpureport.comparison.estimate import DifferenceEstimate, MeanEstimate, estimate_between_runs, estimate_within_runs
from gpureport.comparison.figures import LONG_SECONDS, Figure, FigureRole, ShortRun, count_jobs, count_runs
from gpureport.comparison.run import SampledRun, coarsest_interval
from gpureport.comparison.steps import Step, TrainingBasis, find_resolution

_PER_SAMPLE = 5.0  # maximum seconds that one sample represents, however sparse samples are
_FEWEST_BINS = round(LONG_SECONDS / _PER_SAMPLE)


class ReasonKind(StrEnum):
    NOT_RECORDED = "not_recorded"
    NO_PRICE = "no_price"
    OTHER_WORK_UNIT = "other_work_unit"
    UNKNOWN_WORK = "unknown_work"
    UNFINISHED = "unfinished"
    JOB_FAILED = "job_failed"
    DAMAGED_ARCHIVE = "damaged_archive"
    UNEQUAL_WORK = "unequal_work"
    ZERO = "zero"
    SINGLE_FIGURE = "single_figure"
    SHORT_STEADY_STATE = "short_steady_state"
    SHORT_RUN = "short_run"
    FEW_SAMPLES = "few_samples"
    FEW_RATES = "few_rates"
    FEW_BATCHES = "few_batches"
    NOT_COMPARABLE = "not_comparable"
    SAME_RECORDING = "same_recording"
    MANY_COMPARISONS = "many_comparisons"
    WITHIN_USUAL_NOISE = "within_usual_noise"
    NOT_REPEATED = "not_repeated"
    DRIFT = "drift"
    TARGET_NOT_REACHED = "target_not_reached"


_SURE_WITHOUT_FIGURES = {
    ReasonKind.OTHER_WORK_UNIT,
    ReasonKind.UNFINISHED,
    ReasonKind.JOB_FAILED,
    ReasonKind.DAMAGED_ARCHIVE,
    ReasonKind.NO_PRICE,
    ReasonKind.TARGET_NOT_REACHED,
}
"""Reasons that apply even if a figure is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    kind: ReasonKind
    run: str = ""  # The run that is too short or unfinished.
    # The run's seconds or samples, the number of comparisons, the largest relative difference in work, or the rise in
    # start temperature.
    amount: float = 0.0
    least: float = 0.0  # The seconds, samples or batches that the run needs; for drift, the ratio of clock rates.
    check: str = ""  # The check that failed.


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRecordingFigure:
    """A figure for whole recordings, including start-up and shutdown; not comparable if work units differ."""

    before: float | None
    after: float | None
    comparable: bool = True

    @property
    def difference(self) -> float | None:
        if self.before is None or self.after is None or not self.comparable:
            return None
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The mean of a figure over the runs that count, and its value in each of them."""

    figure: Figure
    before: float | None
    after: float | None
    whole: WholeRecordingFigure
    steady: bool = False
    contrast: DifferenceEstimate | None = None  # None if `reason` rules it out
    reason: Reason | None = None
    figures: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    seconds: float | None = None  # Settled seconds of the shorter run, if each side has one run.
    lone: bool = False  # Whether each side has a single value of unknown scatter.
    unseen: float | None = None  # Settled seconds of the shortest run without gaps.
    left_out: tuple[ShortRun, ...] = ()
    brief: Reason | None = None  # why a single value per run is unreliable

    @property
    def difference(self) -> float | None:
        return replace(self.whole, before=self.before, after=self.after).difference


def compare_whole_recordings(base: Step, step: Step, figure: Figure, reason: Reason | ReasonKind) -> Evidence:
    reason = reason if isinstance(reason, Reason) else Reason(kind=reason)
    before, after = (side.value(figure.metric) for side in (base, step))
    whole = WholeRecordingFigure(before=before, after=after, comparable=reason.kind is not ReasonKind.OTHER_WORK_UNIT)
    if None in {before, after} and reason.kind not in _SURE_WITHOUT_FIGURES:
        reason = Reason(kind=ReasonKind.NOT_RECORDED)
    return Evidence(figure=figure, before=before, after=after, whole=whole, reason=reason)


def gather_evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    if figure.role is FigureRole.MEAN:
        return _gather_means(base, step, figure)
    if figure.role is not FigureRole.WORK:
        return _gather_figures(base, step, figure)
    (before, short), (after, other) = (count_jobs(side.runs) for side in (base, step))
    found = _gather_figures(replace(base, runs=before), replace(step, runs=after), figure)
    return replace(found, left_out=(*short, *other))


def _gather_means(base: Step, step: Step, figure: Figure) -> Evidence:
    metric, runs = figure.metric, (*base.runs, *step.runs)
    interval = coarsest_interval(runs)
    if any(run.recorded_seconds(metric, interval) <= 0 for run in runs):
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    sides = [count_runs(side.runs, metric, interval) for side in (base, step)]
    if empty := next((side for side in sides if not side.counted), None):
        longest = max(empty.left_out, key=lambda run: (run.seconds, run.run))
        kind = ReasonKind.SHORT_STEADY_STATE
        reason = Reason(kind=kind, run=longest.run, amount=longest.seconds, least=longest.least)
        return compare_whole_recordings(base, step, figure, reason)
    before, after = (tuple(run.steady_mean(metric, interval) for run in side.counted) for side in sides)
    found = Evidence(
        figure=figure,
        before=fsum(before) / len(before),
        after=fsum(after) / len(after),
        whole=WholeRecordingFigure(before=base.value(metric), after=step.value(metric)),
        steady=True,
        figures=(before, after),
        left_out=(*sides[0].left_out, *sides[1].left_out),
    )
    if len(before) + len(after) > 2:  # noqa: PLR2004 - one on each side
        return replace(found, contrast=estimate_between_runs(before, after, figure.finest))
    return _compare_pair(found, [side.counted[0] for side in sides], interval)


def _compare_pair(found: Evidence, pair: Sequence[SampledRun], interval: float) -> Evidence:
    metric = found.figure.metric
    held = [run.steady_seconds(metric, interval) for run in pair]
    before, after = (run.estimate(metric, interval, found.figure.finest) for run in pair)
    unseen = min((each for each, mean in zip(held, (before, after), strict=True) if mean.seen == 0), default=None)
    found = replace(found, seconds=min(held), unseen=unseen)
    if not before.degrees or not after.degrees:
        return replace(found, reason=Reason(kind=ReasonKind.FEW_BATCHES, least=estimate.FEWEST_BATCHES), unseen=None)
    widths = [series.width for run in pair if (series := run.at(interval))]
    recorded = [run.recorded_seconds(metric, interval) for run in pair]
    short = _find_short_run(pair, recorded, widths, ReasonKind.FEW_SAMPLES)
    floor = _allow_slow_change(found.figure, held, widths) if short else 0.0
    if not found.figure.is_share:
        floor = expm1(floor) * min(abs(before.mean), abs(after.mean))
    return replace(found, contrast=estimate_within_runs(before, after, floor), reason=short)


def _allow_slow_change(figure: Figure, steady: Sequence[float], widths: Sequence[float]) -> float:
    shorter = min(min(seconds, _PER_SAMPLE * seconds / width) for seconds, width in zip(steady, widths, strict=True))
    return figure.allow_slow_change(shorter)


def _find_short_run(
    pair: Sequence[SampledRun], recorded: Sequence[float], widths: Sequence[float], few: ReasonKind
) -> Reason | None:
    for run, seconds, width in zip(pair, recorded, widths, strict=True):
        if seconds < LONG_SECONDS - width / 2:
            # bins extend beyond the first and last samples
            amount = min(seconds, run.lasted)
            return Reason(kind=ReasonKind.SHORT_RUN, run=run.info.name, amount=amount, least=LONG_SECONDS)
        if (bins := round(seconds / width)) < _FEWEST_BINS:
            return Reason(kind=few, run=run.info.name, amount=bins, least=_FEWEST_BINS)
    return None


def _gather_figures(base: Step, step: Step, figure: Figure) -> Evidence:
    is_work, runs = figure.role is FigureRole.WORK, (*base.runs, *step.runs)
    if figure.role is not FigureRole.PEAK and (obstacle := _find_obstacle(base, step, figure)):
        return compare_whole_recordings(base, step, figure, obstacle)
    before, after = sides = [[value for value in side.read(figure) if value is not None] for side in (base, step)]
    if len(before) + len(after) < len(runs):
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    if not is_work:
        return _compare_figures(base, step, figure, sides, estimate_between_runs(before, after, figure.finest))
    if 0 in (*before, *after):
        return compare_whole_recordings(base, step, figure, ReasonKind.ZERO)
    source = base.training_source if figure.metric == figures.TRAINING_RATE else None
    if source is not None and source.basis is TrainingBasis.SERIES and len(runs) == 2:  # noqa: PLR2004 - one on each side
        return _compare_logged_rates(base, step, figure)
    return compare_ratios(base, step, figure, sides, find_resolution(base, step, figure.metric))


def _find_obstacle(base: Step, step: Step, figure: Figure) -> Reason | ReasonKind | None:
    runs = (*base.runs, *step.runs)
    works = [run.info.work for run in runs]
    for run in runs:
        if (run.exit_code or run.is_damaged) and not run.info.work:
            kind = ReasonKind.JOB_FAILED if run.exit_code else ReasonKind.DAMAGED_ARCHIVE
            return Reason(kind=kind, run=run.info.name, amount=run.exit_code)
    if figure.role is FigureRole.TOTAL:
        amounts = [work.amount for work in works if work is not None and work.amount > 0]
        if len(amounts) < len(works) or len({work.unit for work in works if work is not None}) > 1:
            return ReasonKind.UNKNOWN_WORK
        least, most = min(amounts), max(amounts)
        return None if least == most else Reason(kind=ReasonKind.UNEQUAL_WORK, amount=most / least - 1)
    cut = next((run.info.name for run in runs if run.info.work is None and run.info.quality.unfinished), None)
    if cut is not None and any(works):
        return Reason(kind=ReasonKind.UNFINISHED, run=cut)
    if None in {base.work_unit, step.work_unit}:
        return ReasonKind.NOT_RECORDED
    is_priced = figure.metric != figures.COST_PER_WORK or all(run.gpu_hour_price is not None for run in runs)
    is_alike = base.work_unit == step.work_unit
    return ReasonKind.OTHER_WORK_UNIT if not is_alike else None if is_priced else ReasonKind.NO_PRICE


def compare_ratios(
    base: Step, step: Step, figure: Figure, sides: Sequence[Sequence[float]], resolution: figures.Resolution
) -> Evidence:
    """Compare the logarithms of values, so that the means are geometric."""
    logs = [[log(value) for value in side] for side in sides]
    before, after = (exp(fsum(side) / len(side)) for side in logs)
    contrast = estimate_between_runs(logs[0], logs[1], *resolution, ratio_of=before)
    return replace(_compare_figures(base, step, figure, sides, contrast), before=before, after=after)


def _compare_figures(
    base: Step, step: Step, figure: Figure, sides: Sequence[Sequence[float]], contrast: DifferenceEstimate | None
) -> Evidence:
    before, after = map(tuple, sides)
    least = figures.SHORTEST_SECONDS
    runs = [(figures.observed_seconds([run.analysis]), run.info.name) for run in (*base.runs, *step.runs)]
    seconds, name = min(runs)
    brief = Reason(kind=ReasonKind.SHORT_RUN, run=name, amount=seconds, least=least) if seconds < least else None
    return replace(
        compare_whole_recordings(base, step, figure, ReasonKind.SINGLE_FIGURE),
        before=fsum(before) / len(before),
        after=fsum(after) / len(after),
        contrast=contrast,
        reason=None if contrast else Reason(kind=ReasonKind.SINGLE_FIGURE),
        figures=(before, after),
        lone=contrast is None,
        brief=brief,
    )


def _compare_logged_rates(base: Step, step: Step, figure: Figure) -> Evidence:
    pair = base.runs[0], step.runs[0]
    logged = [each for run in pair if (each := run.logged_work)]
    widths, held, logs = [each.width for each in logged], [each.seconds for each in logged], []
    for each in logged:
        # a slow start is included in the rate, but not in its scatter
        speed, value = estimate.batch_means(each.rates[estimate.count_unsettled(each.rates) :]), each.work.rate
        error = speed.error / speed.mean if speed.mean > 0 else inf
        logs.append(MeanEstimate(mean=log(value) if value else -inf, error=error, degrees=speed.degrees))
    first, second = logs
    before, after, contrast = exp(first.mean), exp(second.mean), None
    reason = _find_short_run(pair, held, widths, ReasonKind.FEW_RATES)
    if all(mean.degrees and isfinite(mean.mean) for mean in (first, second)):
        floor = _allow_slow_change(figure, held, widths) if reason else 0.0
        contrast = estimate_within_runs(first, second, floor, before)
    reason = reason or (None if contrast else Reason(kind=ReasonKind.FEW_BATCHES, least=estimate.FEWEST_BATCHES))
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        whole=WholeRecordingFigure(before=base.value(figure.metric), after=step.value(figure.metric)),
        contrast=contrast,
        reason=reason,
        figures=((before,), (after,)),
        seconds=min(held),
        lone=contrast is None,
        brief=reason,
    )
