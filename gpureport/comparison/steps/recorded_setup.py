"""What was recorded of a step, and how: the values that checks of comparability look at."""

from collections.abc import Iterable
from statistics import mean, median

from gpureport.analysis.results import Analysis
from gpureport.comparison.steps.step_figures import recorded_seconds
from gpureport.comparison.steps.steps import Step
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST, Device

Value = str | float | None
"""Text, a number in a base unit, or None when not recorded."""

SAME_MEMORY = 1.05
"""Ratio of two totals up to which they are of GPUs with as much memory."""

_POWER = ("gpu_power_watts", "gpu_power_instant_watts")


def _joined(values: Iterable[str | None]) -> str | None:
    """Return different values as one text; None when there is none, or one of them was not recorded."""
    different = set(values)
    return ", ".join(sorted(map(str, different))) if different and None not in different else None


def _gpus(step: Step) -> Iterable[Device]:
    return (gpu for analysis in step.analyses for gpu in analysis.run.gpus)


def models(step: Step) -> Value:
    """Return the models of its GPUs."""
    return _joined(gpu.model for gpu in _gpus(step))


def drivers(step: Step) -> Value:
    """Return the driver versions of its GPUs."""
    return _joined(gpu.driver for gpu in _gpus(step))


def power_limits(step: Step) -> Value:
    """Return the power limits of its GPUs."""
    limits = (gpu.power_limit_watts for gpu in _gpus(step))
    return _joined(None if limit is None else f"{_watts(limit)} W" for limit in limits)


def _watts(limit: float) -> str:
    """Return watts in three digits or whole: one derived from power and its share is not exact."""
    return f"{limit:.3g}" if limit < 100 else f"{limit:.0f}"  # noqa: PLR2004 - three digits


def gpu_count(step: Step) -> Value:
    """Return how many GPUs a run of it has."""
    return _joined(str(len(analysis.run.gpus)) for analysis in step.analyses)


def run_ids(step: Step) -> Value:
    """Return the identities of its runs."""
    return _joined(analysis.run.id for analysis in step.analyses)


def power_fields(step: Step) -> Value:
    """Return the fields power was read from, the averaged one with its windows."""
    return _joined(" and ".join(map(_power_field, _power(analysis))) or None for analysis in step.analyses)


def power_readings(step: Step) -> set[tuple[str, tuple[str, ...]]] | None:
    """Return field and averaging windows of the readings that figures rest on; None where a run has none."""
    each = [_power(analysis) for analysis in step.analyses]
    return {readings[0] for readings in each} if all(each) else None


def _power(analysis: Analysis) -> list[tuple[str, tuple[str, ...]]]:
    """Return the fields of power that a run holds with the windows they average over, the averaged one first."""
    recorded = {summary.metric for device in analysis.statistics for summary in device.metrics}
    windows = tuple(sorted({gpu.power_window for gpu in analysis.run.gpus}))
    return [(BY_NAME[name].recorded_by, windows if name == _POWER[0] else ()) for name in _POWER if name in recorded]


def _power_field(reading: tuple[str, tuple[str, ...]]) -> str:
    field, windows = reading
    return f"{field} ({', '.join(windows)})" if windows else field


def interval(step: Step) -> Value:
    """Return the seconds between samples, a median over its runs."""
    known = [analysis.run.interval for analysis in step.analyses if analysis.run.interval]
    return median(known) if known else None


def duration(step: Step) -> Value:
    """Return the seconds from first to last sample, a mean over its runs."""
    return mean((analysis.run.ended - analysis.run.started) / 1e6 for analysis in step.analyses)


def observed(step: Step) -> Value:
    """Return the seconds that samples stand for, over all its runs."""
    return recorded_seconds(step.analyses)


def work_unit(step: Step) -> Value:
    """Return the unit its work is counted in."""
    return step.work_unit


def shortest(step: Step) -> float:
    """Return the seconds from first to last sample of its shortest run."""
    return min((analysis.run.ended - analysis.run.started) / 1e6 for analysis in step.analyses)


def memory_totals(step: Step) -> Value:
    """Return the memory installed in its GPUs."""
    totals = (gpu.memory_total_bytes for gpu in _gpus(step))
    return _joined(None if total is None else f"{total / 2**30:.0f} GiB" for total in totals)


def has_same_memory(base: Step, step: Step) -> bool | None:
    """Return whether GPUs of as much memory ran both; None when that was not recorded.

    Trackers log a share of the memory beside the bytes in use, so that the total of one GPU differs by some per cent.
    """
    sides = [{gpu.memory_total_bytes for gpu in _gpus(each)} for each in (base, step)]
    if None in sides[0] | sides[1] or not all(sides):
        return None
    low, high = ([pick(total for total in side if total is not None) for side in sides] for pick in (min, max))
    return max(low) <= SAME_MEMORY * min(low) and max(high) <= SAME_MEMORY * min(high)


def source_kinds(step: Step) -> Value:
    """Return the kinds of recorders its GPU series come from."""
    return _joined(", ".join(sorted(_recorders(analysis))) or None for analysis in step.analyses)


def _recorders(analysis: Analysis) -> set[str]:
    kinds = {source.kind for source in analysis.run.sources}
    return kinds - {HOST} or kinds


def coverage(step: Step) -> Value:
    """Return the share of the time that was sampled, of the run with the least."""
    known = [analysis.coverage_ratio for analysis in step.analyses]
    return None if None in known else min(ratio for ratio in known if ratio is not None)


def start_temperature(step: Step) -> Value:
    """Return the temperature of the first readings, a mean over its runs."""
    known = [run.start_celsius for run in step.runs]
    return None if None in known else mean(sorted(celsius for celsius in known if celsius is not None))


def timezone(step: Step) -> Value:
    """Return the time zones of its logs."""
    return _joined(analysis.run.timezone for analysis in step.analyses)
