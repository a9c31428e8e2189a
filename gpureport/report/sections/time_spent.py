"""Bars of GPU time by class, per step or per GPU of a run, and utilisation over time."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from typing import NamedTuple, TypeVar

import numpy as np

from gpureport import number_format
from gpureport.analysis.results import LOST_CLASSES, GpuTime
from gpureport.analysis.series.device_series import build_device_series
from gpureport.columns import FloatArray
from gpureport.comparison.chain import Comparison, Mean, average, mean_over_runs
from gpureport.comparison.figures import PER_WORK, TRAINING_RATE, count_jobs, find_sampling_step
from gpureport.comparison.gains import list_unmeasured_kinds, measure_excessive_short_pauses
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.charts.elements import place_ticks, place_time_ticks
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import ClassName, SpentBar, Tick, TimeSegment, TimeSpent, UseOverTime, UseRow
from gpureport.report.runs.gpu_time import measure_own_seconds, seconds_by_cause, seconds_by_class, sum_classes
from gpureport.report.runs.over_time import Average, ClassHistory, accumulate, read_samples
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.recording_doubts import describe_drivers
from gpureport.report.wording import display
from gpureport.report.wording.differences import WHOLE_RUN_UTILISATION, build_change
from gpureport.report.wording.scales import name_work
from gpureport.report.wording.terms import PER_RUN, class_title, name_figure

_Step = TypeVar("_Step")
Causes = Mapping[str, Collection[str]]  # names of losses by class
_USED = ("computing", "throttled", "hollow", "short_pauses", "low_use")
_ORDER = (*_USED, "waiting_for_input", "startup", "idle", "tail", "unused", "held", "gpu_lost", "no_samples")
_NEGLIGIBLE = 0.002  # share of the axis below which a segment is invisible
_MOST_STEPS, _MOST_GPUS = 12, 8  # Most steps, and most GPUs with separate bars.
_ROOM = 1.25  # Longest axis with intervals, relative to the longest bar.
_APART = 0.03  # lost share above the median that needs a separate bar
_WORTH_A_COLOUR, _MUCH = 0.05, 0.1
"""Lost shares that colour a note: above the best GPU's, and of a single GPU."""
_MOST_UNKNOWN = 0.02  # Minimum unobserved share that a note mentions.
_FEWEST_ALIKE = 5  # Minimum number of GPUs with equal times that share a bar.
_MOST_DIGITS = 10_000.0
_TIMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0))
_BATCHES = ((1.0, "1,000"), (1e3, "million"), (1e6, "billion"))


def build_segments(
    amounts: Mapping[str, float], format_amount: Callable[[float], str], causes: Causes
) -> tuple[TimeSegment, ...]:
    return tuple(
        TimeSegment(
            key=key, label=class_title(key, causes.get(key, ())), value=amounts[key], text=format_amount(amounts[key])
        )
        for key in sort_classes(amounts)
        if key != "no_job" and amounts[key] > 0
    )


def sort_classes(keys: Iterable[str]) -> list[str]:
    found = set(keys)
    return [*(key for key in _ORDER if key in found), *sorted(found - set(_ORDER))]


def list_legend(bars: Sequence[SpentBar], causes: Causes, least: float = 0.0) -> tuple[ClassName, ...]:
    shown = {part.key for bar in bars for part in bar.segments if part.value > least}
    return tuple(ClassName(key=key, label=class_title(key, causes.get(key, ()))) for key in sort_classes(shown))


def describe_pauses(bars: Sequence[SpentBar]) -> str:
    has_pauses = any(part.key == "short_pauses" for bar in bars for part in bar.segments)
    return " Short pauses count as work, not as lost." if has_pauses else ""


class SpentUnit(NamedTuple):
    """The unit of bars, of `size` GPU-seconds (per 1,000 units of known work)."""

    size: float
    short: str
    name: str
    per: str

    @property
    def unit(self) -> str:
        return f"GPU-{self.short}"


def choose_unit_per_work(comparison: Comparison) -> SpentUnit:
    values = [value for step in comparison.steps if (value := step.value(PER_WORK))]
    least, most = min(values, default=1.0), max(values, default=1.0)
    factor, batch = next((entry for entry in _BATCHES if least * entry[0] >= 1), _BATCHES[-1])
    short, seconds = next((entry for entry in _TIMES if most * factor / entry[1] < _MOST_DIGITS), _TIMES[-1])
    per = f"per {batch} {name_work(comparison.steps[-1].work_unit)}"
    return SpentUnit(seconds / factor, short, name_figure(PER_WORK, per), per)


def choose_unit_per_run(seconds: float) -> SpentUnit:
    short, size = _TIMES[2 if seconds >= 36_000 else 1 if seconds >= 120 else 0]  # noqa: PLR2004 - ten hours, two minutes
    return SpentUnit(size, short, name_figure("gpu_seconds"), PER_RUN)


def build_time_spent(comparison: Comparison, runs: Sequence[ReportRun], study: Study | None = None) -> TimeSpent | None:
    if len(comparison.steps) == 1 and len(runs) == 1:
        return _build_gpu_bars(runs[0])
    steps = [step for step in comparison.steps if _sum_classes(step)]
    if not steps:
        return None
    units = {step.work_unit for step in comparison.steps}
    is_per_work = all(average(step, PER_WORK) for step in steps) and len(units) == 1 and None not in units
    held = max(_mean_gpu_seconds(step).value for step in steps)
    unit = choose_unit_per_work(comparison) if is_per_work else choose_unit_per_run(held)
    causes = seconds_by_cause(time for step in steps for each in step.analyses for time in each.gpu_time)
    is_chain = study is None and is_per_work
    bars = [_build_step_bar(comparison, step, unit, causes, is_chain=is_chain) for step in choose_steps(steps)]
    longest = max(fsum(part.value for part in bar.segments) for bar in bars)
    # fit intervals, unless they dwarf the bars
    furthest = max((bar.interval[1] for bar in bars if bar.interval), default=0.0)
    end = max(longest, min(furthest * 1.01, _ROOM * longest))
    about = "; shorter is better." if is_per_work else ". If the work is not known, a faster run can look worse."
    interval = " Line below the end of a bar: 95% interval." if any(bar.interval for bar in bars) else ""
    rate = "Training alone" if is_per_work else WHOLE_RUN_UTILISATION
    # with two steps, the previous step is the first one
    is_long = is_chain and len(comparison.steps) > 2  # noqa: PLR2004 - a pair
    undrawn = len(steps) - len(bars)
    return TimeSpent(
        caption=f"{unit.name}{about}{describe_pauses(bars)}{interval}",
        columns=(f"{unit.unit} {unit.per}", rate if any(bar.beside for bar in bars) else ""),
        bars=tuple(bars),
        end=end,
        ticks=place_ticks(end, unit.short),
        legend=list_legend(bars, causes, _NEGLIGIBLE * end),
        since_first=_change(comparison, 0, -1, PER_WORK) if is_long else None,
        beside_since_first=_change(comparison, 0, -1, TRAINING_RATE) if is_long else None,
        rest=f"This figure omits {display.plural(undrawn, 'step')} listed in the table." if undrawn else "",
    )


def choose_steps(steps: Sequence[_Step]) -> list[_Step]:
    return list(steps) if len(steps) <= _MOST_STEPS else [steps[0], *steps[1 - _MOST_STEPS :]]


def _sum_classes(step: Step) -> dict[str, float]:
    seconds = sum_classes(run.analysis for run in count_jobs(step.runs).counted)
    return {name: amount for name, amount in seconds.items() if name != "no_job"}


def _mean_gpu_seconds(step: Step) -> Mean:
    runs = count_jobs(step.runs).counted
    held = [run.analysis.job_gpu_seconds for run in runs]
    return Mean(value=held[0]) if len(held) == 1 else mean_over_runs(held, find_sampling_step(runs) * max(held))


def _build_step_bar(comparison: Comparison, step: Step, unit: SpentUnit, causes: Causes, *, is_chain: bool) -> SpentBar:
    place = next(at for at, each in enumerate(comparison.steps) if each.label == step.label)
    is_per_work, is_later = unit.per != PER_RUN, is_chain and place > 0
    mean = (average(step, PER_WORK) if is_per_work else None) or _mean_gpu_seconds(step)
    classes = _sum_classes(step)
    # figures per work are geometric means, but classes are arithmetic means
    share = mean.value / unit.size / fsum(classes.values())
    ends = mean.interval and (max(mean.interval[0], 0.0) / unit.size, mean.interval[1] / unit.size)
    decimals = number_format.count_decimals(mean.value / unit.size)
    # training rate, or utilisation if the work is unknown
    metric = TRAINING_RATE if is_per_work else UTILISATION
    value, work = step.value(metric), display.shorten(display.clean(step.work_unit or "units"), 24)
    rate = "" if value is None else f"{display.number(value)}{display.GAP}{work}/s"
    return SpentBar(
        label=display.clean(step.label),
        small=display.plural(len(step.runs), "run") if len({len(each.runs) for each in comparison.steps}) > 1 else "",
        segments=build_segments(
            {key: amount * share for key, amount in classes.items()}, f"{{:,.{decimals}f}}".format, causes
        ),
        total=display.number(mean.value / unit.size),
        interval=ends,
        interval_text=display.format_interval(ends, display.number) if ends else "",
        change=_change(comparison, place - 1, place, PER_WORK) if is_later else None,
        note="first step" if is_chain and place == 0 else "",
        beside=rate if is_per_work or value is None else display.percent(value),
        beside_change=_change(comparison, place - 1, place, metric) if is_later else None,
    )


def _change(comparison: Comparison, base: int, place: int, metric: str) -> Change | None:
    first, last = comparison.steps[base].label, comparison.steps[place].label
    change = build_change(next((delta for delta in comparison.between(first, last) if delta.metric == metric), None))
    return change if change and change.arrow else None


def _build_gpu_bars(run: ReportRun) -> TimeSpent | None:
    times = [time for time in run.analysis.gpu_time if time.job_seconds > 0]
    if not times:
        return None
    shares_bar, longest = _find_alike(times), max(time.job_seconds for time in times)
    others = [time for time, shares in zip(times, shares_bar, strict=True) if shares]
    groups = [*([time] for time in times if time not in others), *([others] if others else [])]
    causes, losses = seconds_by_cause(times), [_lost_ratio(*group) for group in groups]
    # flag GPUs that lost more than the best, or a single GPU that lost a lot
    least = min(losses) if len(losses) > 1 else _MUCH - _WORTH_A_COLOUR
    bars = []
    for group, lost in zip(groups, losses, strict=True):
        classes = {name: amount / len(group) for name, amount in seconds_by_class(group).items()}
        whole = fsum(time.job_seconds for time in group) / len(group)
        devices = [time.device for time in group]
        own = [each for each in run.analysis.findings if not each.devices or {*devices} & {*each.devices}]
        unnamed = "loss not known" if list_unmeasured_kinds(own) else "nothing lost"
        ratios = [dict(time.seconds).get("computing", 0.0) / time.job_seconds for time in group]
        bar = SpentBar(
            label=_name_gpus(run, devices, is_rest=len(groups) > 1),
            small=f"{display.format_range(ratios, display.percent)} computing" if len(group) > 1 else "",
            segments=build_segments(
                classes, partial(lambda whole, amount: display.percent(amount / whole), whole), causes
            ),
            total="",
            note=_describe_loss(classes, fsum(map(measure_own_seconds, group)) / len(group), causes) or unnamed,
            is_bad=lost >= least + _WORTH_A_COLOUR,
            beside=_describe_power(run, devices),
        )
        bars.append(bar)
    quarters = tuple(Tick(at=longest * part / 4, text=display.percent(part / 4)) for part in range(5))
    is_uneven = min(time.job_seconds for time in times) < (1 - _NEGLIGIBLE) * longest
    return TimeSpent(
        caption=f"Each bar shows the time of one GPU.{describe_pauses(bars)}",
        columns=("", "Mean power" if any(bar.beside for bar in bars) else ""),
        bars=tuple(bars),
        end=longest,
        # bars of equal length are shares; a time axis would suggest points in time
        ticks=place_time_ticks(0.0, longest) if is_uneven else quarters,
        legend=list_legend(bars, causes, _NEGLIGIBLE * longest),
    )


def _find_alike(times: Sequence[GpuTime]) -> list[bool]:
    """Return which GPUs share a bar: equal ones or, if there are many, all but the worst."""
    if len(times) <= _MOST_GPUS:
        shares = [{name: amount / time.job_seconds for name, amount in time.seconds} for time in times]
        spent = [{name: display.percent(each) for name, each in own.items() if each >= _NEGLIGIBLE} for own in shares]
        alike = [each == max(spent, key=spent.count) for each in spent]
        return alike if _FEWEST_ALIKE <= sum(alike) < len(times) else [False] * len(times)
    lost = [_lost_ratio(time) for time in times]
    worst = sorted(range(len(lost)), key=lambda at: -lost[at])[: _MOST_GPUS - 1]
    median = sorted(lost)[len(lost) // 2]
    return [at not in worst or each <= median + _APART for at, each in enumerate(lost)]


def _lost_ratio(*times: GpuTime) -> float:
    lost = fsum(amount for time in times for name, amount in time.seconds if name in LOST_CLASSES)
    return lost / fsum(map(measure_own_seconds, times))


def _name_gpus(run: ReportRun, devices: Sequence[str], *, is_rest: bool) -> str:
    names = [run.device(device) for device in devices]
    if len(names) == 1:
        return names[0]
    numbers = [int(number) for name in names if (number := name.removeprefix("GPU ")).isdigit()]
    if is_rest and len(names) <= _MOST_GPUS and numbers and numbers == list(range(numbers[0], numbers[0] + len(names))):
        return f"GPUs {numbers[0]} to {numbers[-1]}"
    # GPUs of several machines do not belong to one job
    whole = "GPUs from several machines" if describe_drivers(run.analysis) else f"All {len(names)} GPUs"
    return f"{len(names)} other GPUs" if is_rest else whole


def _describe_loss(classes: Mapping[str, float], seen: float, causes: Causes) -> str:
    share, name = max((classes.get(name, 0.0) / seen, name) for name in LOST_CLASSES)
    if share >= _NEGLIGIBLE:
        return f"{display.percent(share)} {display.lower_first(class_title(name, causes.get(name, ())))}"
    if (pauses := measure_excessive_short_pauses(classes)) is not None:
        return f"{display.percent(pauses)} short pauses"
    unknown = classes.get("no_samples", 0.0) / fsum(classes.values())
    if unknown >= 1 - _NEGLIGIBLE:
        return "not recorded"
    return f"{display.percent(unknown)} not recorded" if unknown >= _MOST_UNKNOWN else ""


def _describe_power(run: ReportRun, devices: Sequence[str]) -> str:
    figures = [each for each in run.analysis.statistics if each.device in devices]
    means = [summary.mean for each in figures if (summary := each.metric("gpu_power_watts"))]
    limits = {summary.max for each in figures if (summary := each.metric("gpu_power_limit_watts"))}
    if not means:
        return ""
    mean = display.integer(fsum(means) / len(means))
    most = f" of {display.integer(limits.pop())}" if len(limits) == 1 else ""
    return f"{mean}{most}{display.GAP}W"


_BUCKETS = 240


def build_use_over_time(
    comparison: Comparison, runs: Sequence[ReportRun], histories: Mapping[int, ClassHistory]
) -> UseOverTime | None:
    if len(runs) == 1:
        return None
    places, typical = {run.run.id: place for place, run in enumerate(runs)}, list[tuple[Step, int]]()
    for step in comparison.steps:
        held = [each.analysis for each in count_jobs(step.runs).counted if each.info.gpus and each.lasted > 0]
        held.sort(key=lambda analysis: analysis.job_gpu_seconds)
        # choose the run with the (lower) median GPU time
        typical += [(step, places[each.run.id]) for each in held[(len(held) - 1) // 2 :][:1]]
    chosen = choose_steps(typical)
    seconds = max((runs[place].seconds for _, place in chosen), default=0.0)
    if seconds <= 0:
        return None
    several = any(len(step.runs) > 1 for step in comparison.steps)
    undrawn = len(typical) - len(chosen)
    return UseOverTime(
        caption=f"{'The median run of each' if several else 'Each'} step. The band uses the colours above.",
        rows=tuple(_build_row(step, runs[place], histories[place], seconds) for step, place in chosen),
        seconds=seconds,
        ticks=place_time_ticks(0.0, seconds),
        rest=f"{display.plural(undrawn, 'step')} not drawn." if undrawn else "",
    )


def _build_row(step: Step, run: ReportRun, history: ClassHistory, axis: float) -> UseRow:
    # the last bucket ends with the run
    count = max(int(np.ceil(run.seconds / max(axis / _BUCKETS, run.run.interval or 0.0) - 1e-9)), 1)
    series = (build_device_series(run.recording, gpu) for gpu in run.run.gpus)
    averages = [accumulate(*read_samples(run, each, UTILISATION)) for each in series]
    number = [each.analysis.run.id for each in step.runs].index(run.run.id) + 1
    return UseRow(
        label=display.clean(step.label),
        small=f"run {number} of {len(step.runs)}" if len(step.runs) > 1 else "",
        mean=_average(averages, np.arange(count + 1, dtype=np.float64) * (run.seconds / count)),
        bucket_seconds=run.seconds / count,
        band=history.list_stretches([gpu.id for gpu in run.run.gpus]),
        band_seconds=history.bucket_seconds,
        total=display.duration(run.seconds),
        text=_describe(run, averages),
    )


def _average(averages: Sequence[Average], edges: FloatArray) -> FloatArray:
    means = np.array([average(edges) for average in averages]).reshape(-1, len(edges) - 1)
    count = (~np.isnan(means)).sum(axis=0)
    averaged: FloatArray = np.where(count, np.nansum(means, axis=0) / np.maximum(count, 1), np.nan)
    return np.clip(averaged, 0.0, 1.0)


def _describe(run: ReportRun, averages: Sequence[Average]) -> str:
    steady = [phase.interval for phase in run.analysis.phases if phase.kind == "steady"]
    lengths = [part.seconds for part in steady]
    if not any(lengths):
        return "no sustained GPU work"
    edges = ([run.since_start(part.start), run.since_start(part.end)] for part in steady)
    means = [_average(averages, np.array(each))[0] for each in edges]
    busy = float(np.average(means, weights=lengths))
    if np.isnan(busy):
        return "utilisation not recorded"
    return f"{'GPUs' if len(run.run.gpus) > 1 else 'GPU'} {display.percent(busy)} busy mid-job"
