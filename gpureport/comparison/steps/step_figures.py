"""What one step comes to: a few figures over all GPUs of all its runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from gpureport.analysis.results import Analysis, DeviceStatistics

WORK_BATCH = 1000
"""Units of work that GPU-hours are set in relation to."""

PER_WORK = f"gpu_seconds_per_{WORK_BATCH}_work"
"""Name of the figure that sets GPU time in relation to work."""

ENERGY_PER_WORK = f"energy_joules_per_{WORK_BATCH}_work"
"""Name of the figure that sets energy in relation to work."""

COST_PER_WORK = f"cost_per_{WORK_BATCH}_work"
"""Name of the figure that sets money in relation to work."""

HOUR = 3600.0
"""Seconds that a price of a GPU-hour is for."""

WORK_RATE = "work_rate_hertz"
"""Name of the figure that says how fast the whole job went: units of work a second, all GPUs together."""

TRAINING_RATE = "training_rate_hertz"
"""Name of the figure that says how fast training alone went, without start-up and tail."""

SECONDS_TO_TARGET = "seconds_to_target"
"""Name of the figure that says when runs first reached the quality that a person named."""

SHORTEST_SECONDS = 60.0
"""Time below which shares of a run say nothing, and only a large change of a single run can be seen."""

SHORTEST_REPETITION_SECONDS = 20.0
"""Time below which a run cannot be compared: a second that samples miss at both ends is a tenth of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure of a step.

    Attributes:
        metric: name with the base unit as suffix; a column name where the figure is one column's.
        unit: base unit (`1`, `s`, `W`, `By`, `Hz`, `J`); `1/s` is units of work a second, `currency` that of prices.
        value: None where it was not recorded.
    """

    metric: str
    unit: str
    value: float | None


def _gpus(analyses: Iterable[Analysis]) -> list[DeviceStatistics]:
    found: list[DeviceStatistics] = []
    for analysis in analyses:
        gpus = {gpu.id for gpu in analysis.run.gpus}
        found += [statistics for statistics in analysis.statistics if statistics.device in gpus]
    return found


def _weighted_mean(gpus: Sequence[DeviceStatistics], metric: str) -> float | None:
    """Return the mean over all GPUs, each weighted with the time its figure rests on."""
    summaries = [summary for gpu in gpus if (summary := gpu.metric(metric)) is not None and summary.seconds > 0]
    seconds = fsum(summary.seconds for summary in summaries)
    return fsum(summary.mean * summary.seconds for summary in summaries) / seconds if seconds else None


def utilisation(analyses: Sequence[Analysis]) -> float | None:
    """Return the time-weighted mean GPU utilisation as a ratio."""
    return _weighted_mean(_gpus(analyses), "gpu_utilization_ratio")


def below_ratios(analyses: Sequence[Analysis]) -> dict[float, float]:
    """Return the share of the time that GPUs spent below each reported level of utilisation, lowest level first."""
    summaries = [summary for gpu in _gpus(analyses) if (summary := gpu.metric("gpu_utilization_ratio")) is not None]
    seconds: dict[float, list[float]] = {}
    for summary in summaries:
        for limit, ratio in summary.below:
            seconds.setdefault(limit, []).append(ratio * summary.seconds)
    observed = fsum(summary.seconds for summary in summaries)
    return {limit: fsum(each) / observed for limit, each in sorted(seconds.items())} if observed else {}


def power(analyses: Sequence[Analysis]) -> float | None:
    """Return the time-weighted mean power of one GPU in watts."""
    return _weighted_mean(_gpus(analyses), "gpu_power_watts")


def idle_ratio(analyses: Sequence[Analysis]) -> float | None:
    """Return idle time as a share of the time that utilisation was observed."""
    known = [
        (gpu.idle_seconds, summary.seconds)
        for gpu in _gpus(analyses)
        if gpu.idle_seconds is not None and (summary := gpu.metric("gpu_utilization_ratio")) is not None
    ]
    observed = fsum(seconds for _, seconds in known)
    return fsum(idle for idle, _ in known) / observed if observed else None


def memory_peak(analyses: Sequence[Analysis]) -> float | None:
    """Return the highest memory in use on any GPU, in bytes."""
    return max((gpu.memory_peak_bytes for gpu in _gpus(analyses) if gpu.memory_peak_bytes is not None), default=None)


def observed_seconds(analyses: Sequence[Analysis]) -> float:
    """Return the time that samples of the best covered GPU stand for, within the length of its run."""
    return max(
        (
            min(statistics.observed_seconds, (analysis.run.ended - analysis.run.started) / 1e6)
            for analysis in analyses
            for statistics in _gpus([analysis])
        ),
        default=0.0,
    )


def recorded_seconds(analyses: Sequence[Analysis]) -> float:
    """Return the time that is known of a step: that of its run, or of its repetitions together."""
    each = [observed_seconds([analysis]) for analysis in analyses]
    return max(fsum(one for one in each if one >= SHORTEST_REPETITION_SECONDS), *each, 0.0)


def energy(analyses: Sequence[Analysis]) -> float | None:
    """Return the energy of all GPUs in joules, a mean over the runs; None unless every GPU logged its power."""
    used = [gpu.energy_joules for gpu in _gpus(analyses)]
    known = [joules for joules in used if joules is not None]
    return fsum(known) / len(analyses) if known and len(known) == len(used) else None


def gpu_seconds(analyses: Sequence[Analysis]) -> float | None:
    """Return the GPU-seconds that jobs held, a mean over the runs."""
    held = fsum(analysis.job_gpu_seconds for analysis in analyses)
    return held / len(analyses) if held else None


def _per_batch(analyses: Sequence[Analysis], totals: Iterable[float | None]) -> float | None:
    """Return a total for WORK_BATCH units of work; None unless every run says its work in one unit.

    Of several runs it is the geometric mean, by which verdicts compare such figures: no other mean of them is shown.

    Args:
        analyses: the runs.
        totals: of each run.
    """
    works = [analysis.run.work for analysis in analyses]
    known = [(total, work.amount) for total, work in zip(totals, works, strict=True) if total is not None and work]
    units = {work.unit for work in works if work is not None}
    if len(known) < len(works) or len(units) != 1 or min(amount for _, amount in known) <= 0:
        return None
    each = [total / amount * WORK_BATCH for total, amount in known]
    return exp(fsum(map(log, each)) / len(each)) if len(each) > 1 and min(each) > 0 else fsum(each) / len(each)


def gpu_seconds_per_batch(analyses: Sequence[Analysis]) -> float | None:
    """Return the GPU-seconds that WORK_BATCH units of work took."""
    return _per_batch(analyses, (gpu_seconds([analysis]) for analysis in analyses))


def energy_per_batch(analyses: Sequence[Analysis]) -> float | None:
    """Return the joules that WORK_BATCH units of work took."""
    return _per_batch(analyses, (energy([analysis]) for analysis in analyses))


def work_rate(analyses: Sequence[Analysis]) -> float | None:
    """Return units of work a second, over the time of the jobs; None unless every run says its work."""
    each = _per_batch(analyses, (analysis.seconds for analysis in analyses))
    return WORK_BATCH / each if each else None


def cost_per_batch(analyses: Sequence[Analysis], prices: Sequence[float | None]) -> float | None:
    """Return the money that WORK_BATCH units of work took; None unless the price of every run is known.

    Args:
        analyses: the runs.
        prices: of a GPU-hour in each run.
    """
    costs = [
        None if price is None or held is None else held / HOUR * price
        for price, held in zip(prices, (gpu_seconds([analysis]) for analysis in analyses), strict=True)
    ]
    return _per_batch(analyses, costs)


def sm_clock(analyses: Sequence[Analysis]) -> float | None:
    """Return the time-weighted mean clock of the multiprocessors."""
    return _weighted_mean(_gpus(analyses), "gpu_sm_clock_hertz")


def graphics_clock(analyses: Sequence[Analysis]) -> float | None:
    """Return the time-weighted mean graphics clock."""
    return _weighted_mean(_gpus(analyses), "gpu_graphics_clock_hertz")


_MEASURES: tuple[tuple[str, str, Callable[[Sequence[Analysis]], float | None]], ...] = (
    (WORK_RATE, "1/s", work_rate),
    (PER_WORK, "s", gpu_seconds_per_batch),
    ("gpu_seconds", "s", gpu_seconds),
    (ENERGY_PER_WORK, "J", energy_per_batch),
    ("energy_joules", "J", energy),
    ("idle_ratio", "1", idle_ratio),
    ("gpu_utilization_ratio", "1", utilisation),
    ("gpu_power_watts", "W", power),
    ("gpu_sm_clock_hertz", "Hz", sm_clock),
    ("gpu_graphics_clock_hertz", "Hz", graphics_clock),
    ("gpu_memory_used_bytes", "By", memory_peak),
)


def measures(analyses: Sequence[Analysis], prices: Sequence[float | None] = ()) -> tuple[Measure, ...]:
    """Return every figure of the runs of one step, in the order shown.

    Args:
        analyses: the runs.
        prices: of a GPU-hour in each run, None where not known; nothing where none is.
    """
    found = [Measure(metric=metric, unit=unit, value=figure(analyses)) for metric, unit, figure in _MEASURES]
    cost = cost_per_batch(analyses, prices) if prices else None
    return (*found, Measure(metric=COST_PER_WORK, unit="currency", value=cost))
