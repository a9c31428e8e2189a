"""The values of a run that limits are checked against."""

from collections.abc import Callable, Iterator
from math import fsum

from gpureport.analysis.results import LOST_CLASSES, Analysis, DeviceStatistics
from gpureport.checks import limit_units
from gpureport.checks.limit import BELOW, LOST, Limit
from gpureport.checks.limit_units import COUNT, MONEY, SHARE, TIME
from gpureport.checks.observed_value import NO_REASON, ObservedValue, Why, not_observed, select_worst_device
from gpureport.comparison.comparable import COVERAGE
from gpureport.comparison.figures import SHORTEST_SECONDS, observed_seconds, read_run
from gpureport.comparison.gains import (
    FEWEST_SAMPLES,
    count_samples,
    is_recording_too_short,
    list_possible_waits,
)
from gpureport.comparison.run import SampledRun, mean_gpu_hour_price
from gpureport.metrics import BY_NAME, Scope
from gpureport.recording import Device
from gpureport.recording_advice import choose_recording
from gpureport.report.runs.report_run import device_name
from gpureport.report.wording import display

_KINDS_BEHIND_CLASS = {
    "throttled": ("thermal_throttle", "hw_throttle"),
    "waiting_for_input": ("cpu_bound",),
    "hollow": ("hollow_util",),
}
"""Kinds that fill a class of GPU time: while they cannot be judged, the class stays empty."""


def observe_statistic(limit: Limit, analysis: Analysis) -> ObservedValue:
    """Return a statistic of a metric, from the device that is worst by the limit."""
    scope = BY_NAME[limit.name].scope
    devices = [device for device in analysis.run.devices if device.scope is scope]
    if not devices:
        missing = "host" if scope is Scope.HOST else "GPU"
        return not_observed(f"no_{missing.lower()}_recorded", f"no {missing} was recorded")
    return select_worst_device(limit, [_observe_device(limit, analysis, device, _read_statistic) for device in devices])


def observe_device_figure(limit: Limit, analysis: Analysis) -> ObservedValue:
    """Return a figure of one GPU, the one that is worst by the limit."""
    if not analysis.run.gpus:
        return not_observed("no_gpu_recorded", "no GPU was recorded")
    return select_worst_device(
        limit, [_observe_device(limit, analysis, device, _read_figure) for device in analysis.run.gpus]
    )


def _observe_device(
    limit: Limit,
    analysis: Analysis,
    device: Device,
    read: Callable[[Limit, DeviceStatistics], tuple[float | None, float]],
) -> ObservedValue:
    name = device_name(device)
    held = next((each for each in analysis.statistics if each.device == device.id), None)
    value, seconds = (None, 0.0) if held is None else read(limit, held)
    if value is None:
        hint = f"; needs {choose_recording([limit.name])}" if limit.name in BY_NAME else ""
        return not_observed("not_recorded", f"{limit.name} of {name} was not recorded{hint}")
    several = len(analysis.run.devices) > 1
    shown = limit_units.format_against_limit(value, limit.threshold)
    return ObservedValue(
        value=value,
        unit=limit.threshold.unit,
        text=f"{shown} on {name}" if several else shown,
        doubt=_explain_low_coverage(seconds, _job_seconds(analysis, device), name),
    )


def _job_seconds(analysis: Analysis, device: Device) -> float:
    """Return how long jobs held a device; for a host, the whole run."""
    length = (analysis.run.ended - analysis.run.started) / 1e6
    return next((gpu.job_seconds for gpu in analysis.gpu_time if gpu.device == device.id), length)


def _read_statistic(limit: Limit, held: DeviceStatistics) -> tuple[float | None, float]:
    """Return the statistic of a device and the seconds it is based on."""
    summary = held.metric(limit.name)
    if summary is None:
        return None, 0.0
    if limit.statistic in BELOW:
        return dict(summary.below).get(BELOW[limit.statistic]), summary.seconds
    value: float = getattr(summary, limit.statistic)
    return value, summary.seconds


def _read_figure(limit: Limit, held: DeviceStatistics) -> tuple[float | None, float]:
    """Return a figure of a device and the seconds it is based on."""
    field = {"gpu_memory_peak_bytes": "memory_peak_bytes", "gpu_memory_headroom_ratio": "memory_headroom_ratio"}
    value = getattr(held, field.get(limit.name, limit.name))
    return None if value is None else float(value), held.observed_seconds


def _explain_low_coverage(seconds: float, whole: float, name: str) -> Why:
    """Return why too little of a device was recorded to speak for the run; else false."""
    if seconds < SHORTEST_SECONDS:
        return _explain_short_time(seconds, name)
    share = min(seconds / whole, 1.0) if whole else 0.0
    if share >= COVERAGE:
        return NO_REASON
    return Why("covers_too_little", f"only {display.percent(share)} of the time of {name} was recorded")


def _explain_short_time(seconds: float, name: str) -> Why:
    return Why("too_short", f"only {display.duration(seconds)} of {name} were recorded, and a minute is the least")


def observe_figure(limit: Limit, analysis: Analysis) -> ObservedValue:
    """Return a figure over all GPUs of the run."""
    value = read_run(SampledRun(analysis=analysis, gpu_hour_price=mean_gpu_hour_price(analysis))).get(limit.name)
    if value is None:
        why = _explain_missing_figure(limit.name)
        return not_observed(why.code, f"{limit.name} cannot be told: {why.text}")
    currency = analysis.cost.currency if analysis.cost and limit.threshold.unit == MONEY else ""
    if limit.threshold.unit == MONEY and currency != limit.threshold.currency:
        return ObservedValue(missing=explain_currency(currency, limit))
    return ObservedValue(
        value=value,
        unit=limit.threshold.unit,
        text=limit_units.format_against_limit(value, limit.threshold),
        doubt=_explain_unsampled_time(analysis, limit.name),
    )


def explain_currency(currency: str, limit: Limit) -> Why:
    """Return why a cost does not compare with a limit in another currency, and what to do."""
    asked = limit.threshold.currency
    if currency:
        return Why("other_currency", f"prices are stated in {currency}, not in {asked}")
    words = f'the price names no currency, and the limit is in {asked}: write currency = "{asked}" under [prices]'
    return Why("no_currency", words)


def _explain_missing_figure(name: str) -> Why:
    if "cost" in name:
        return Why("unknown_work_or_price", "say the work done with --work and the price under [prices]")
    if "work" in name:
        return Why("unknown_work", "say the work done with --work N:UNIT")
    return Why("not_recorded", "not every GPU recorded what it rests on")


def _explain_unsampled_time(analysis: Analysis, name: str = "") -> Why:
    """Return why too little of all GPUs was recorded to speak for the run; else false.

    Args:
        analysis: the run.
        name: the figure. Energy rests on the time its integral covers, others on that with a utilisation.
    """
    if observed_seconds([analysis]) < SHORTEST_SECONDS:
        return _explain_short_run(analysis)
    whole = analysis.job_gpu_seconds
    seen = whole - fsum(_class_seconds(analysis, "no_samples", "gpu_lost"))
    if name.startswith("energy"):
        seen = fsum(each.energy_seconds or 0.0 for each in analysis.statistics)
    count = max(len(analysis.gpu_time), 1)
    if not whole:
        return NO_REASON
    return _explain_low_coverage(max(seen / count, SHORTEST_SECONDS), whole / count, "all GPUs")


def _explain_short_run(analysis: Analysis) -> Why:
    """Return why less than a minute, or a handful of samples, is too little."""
    length, seconds = (analysis.run.ended - analysis.run.started) / 1e6, observed_seconds([analysis])
    if length < SHORTEST_SECONDS:
        return Why("too_short", f"the run is {display.duration(length)} long, and a minute is the least")
    if seconds < SHORTEST_SECONDS:
        return _explain_short_time(seconds, "the run")
    samples = display.plural(count_samples(analysis), "sample")
    return Why("too_few_samples", f"only {samples} with a utilisation, and {FEWEST_SAMPLES} are the least")


def _class_seconds(analysis: Analysis, *names: str) -> Iterator[float]:
    """Yield the seconds of classes, GPU by GPU."""
    return (seconds for gpu in analysis.gpu_time for name, seconds in gpu.seconds if name in names)


def observe_gpu_time(limit: Limit, analysis: Analysis) -> ObservedValue:
    """Return the GPU time of a class, as a share or in hours; unsampled time may be of any class.

    Low use of unknown cause may be waits for input. So may short pauses over 30% of the time.
    Shares are of the time in which a job held a GPU; the share without a job is of all time.
    """
    whole = analysis.job_gpu_seconds
    if limit.name == "no_job":
        whole += analysis.no_job_gpu_seconds
    if not analysis.gpu_time or whole <= 0 or len(analysis.gpu_time) < len(analysis.run.gpus):
        text = "GPU time could not be divided: the utilisation of every GPU is needed over some time"
        return not_observed("no_gpu_time", text)
    if is_recording_too_short(analysis):
        return ObservedValue(missing=_explain_short_run(analysis))
    seconds = fsum(_class_seconds(analysis, *(LOST_CLASSES if limit.name == LOST else [limit.name])))
    open_parts = _list_open_time(limit.name, analysis)
    unknown = fsum(open_parts.values())
    share = limit.threshold.unit == SHARE
    scale = whole if share else 1.0
    shown = limit_units.format_against_limit(
        seconds / scale, limit.threshold, display.percent if share else display.gpu_time
    )
    shown_parts = [f"{display.percent(part / whole)} {name}" for name, part in open_parts.items() if part]
    return ObservedValue(
        value=seconds / scale,
        unit=limit.threshold.unit,
        text=f"{shown}, perhaps more: {', '.join(shown_parts)}" if shown_parts else shown,
        low=seconds / scale,
        high=(seconds + unknown) / scale,
        doubt=_explain_class_doubt(limit.name, analysis),
        note=_name_hidden_losses(analysis) if limit.name == LOST else NO_REASON,
        unknown_part=display.join_words([name for name, part in open_parts.items() if part]),
    )


def _list_open_time(limited: str, analysis: Analysis) -> dict[str, float]:
    """Return the GPU-seconds that may belong to a limited class, by what they are."""
    if limited == "no_samples":
        return {}
    parts = {"time without samples": fsum(_class_seconds(analysis, "no_samples"))}
    return parts | list_possible_waits(analysis) if limited == "waiting_for_input" else parts


def _explain_class_doubt(name: str, analysis: Analysis) -> Why:
    if observed_seconds([analysis]) < SHORTEST_SECONDS:
        return _explain_short_run(analysis)
    entry = next((each for each in analysis.not_judged if each.kind in _KINDS_BEHIND_CLASS.get(name, ())), None)
    if entry is None:
        return NO_REASON
    return Why("kind_not_judged", f"{entry.kind} could not be judged ({entry.reason})")


def _name_hidden_losses(analysis: Analysis) -> Why:
    hidden = {name for name, kinds in _KINDS_BEHIND_CLASS.items() for each in analysis.not_judged if each.kind in kinds}
    names = display.join_words(sorted(name.replace("_", " ") for name in hidden))
    return Why("losses_not_known", f"what was lost to {names} could not be told in full") if hidden else NO_REASON


def observe_run(limit: Limit, analysis: Analysis) -> ObservedValue:
    """Return a figure of the run as a whole: cost, length, what was read and judged."""
    if limit.name in {"cost", "idle_cost", "carbon"}:
        return _observe_cost(limit, analysis)
    quality, run = analysis.run.quality, analysis.run
    values: dict[str, float | None] = {
        "duration": (run.ended - run.started) / 1e6,
        "coverage": analysis.coverage_ratio,
        "rejected": float(sum(entry.rows for entry in quality.rejected)),
        "not_judged": float(len({entry.kind for entry in analysis.not_judged})),
    }
    value = values[limit.name]
    if value is None:
        text = f"the {limit.name} of a log without time stamps, or of one sample, is not known"
        return not_observed("no_length", text)
    unit = {"duration": TIME, "coverage": SHARE}.get(limit.name, COUNT)
    noun = {"rejected": "line", "not_judged": "kind"}.get(limit.name)
    text = display.plural(round(value), noun) if noun else limit_units.format_against_limit(value, limit.threshold)
    return ObservedValue(value=value, unit=unit, text=text)


def _observe_cost(limit: Limit, analysis: Analysis) -> ObservedValue:
    cost = analysis.cost
    if limit.name == "carbon":
        grams = None if cost is None else cost.carbon_grams
        if grams is None:
            text = "carbon needs the power of every GPU and an intensity: --carbon-intensity or [carbon]"
            return not_observed("no_carbon", text)
        text = limit_units.format_against_limit(grams, limit.threshold)
        return ObservedValue(value=grams, unit="g", text=text, doubt=_explain_unsampled_time(analysis, "energy"))
    amount = None if cost is None else cost.idle if limit.name == "idle_cost" else cost.total
    if cost is not None and cost.total is not None and amount is None:
        text = "the utilisation of a GPU was not recorded, so what was idle is not known"
        return not_observed("not_recorded", text)
    if cost is None or amount is None:
        return not_observed("no_price", "the price of a GPU-hour is not known: --gpu-hour-price or [prices]")
    if cost.currency != limit.threshold.currency:
        return ObservedValue(missing=explain_currency(cost.currency, limit))
    # time without samples is paid for too, but may have been idle
    doubt = _explain_unsampled_time(analysis) if limit.name == "idle_cost" else NO_REASON
    return ObservedValue(
        value=amount, unit=MONEY, text=limit_units.format_against_limit(amount, limit.threshold), doubt=doubt
    )
