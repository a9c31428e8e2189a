"""Measures the figures in limits: for a device, all GPUs, the run or its training."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import fsum, inf

from gpureport.analysis.results import LOST_CLASSES, Analysis, DeviceStatistics
from gpureport.checks.limit import (
    BELOW,
    BEST,
    LOST,
    MONEY,
    NO_REASON,
    SHARE,
    Limit,
    Subject,
    Why,
    format_against_limit,
)
from gpureport.comparison.comparable import COVERAGE
from gpureport.comparison.figures import SECONDS_TO_TARGET, SHORTEST_SECONDS, TRAINING_RATE, observed_seconds, read_run
from gpureport.comparison.gains import FEWEST_SAMPLES, count_samples, is_recording_too_short, list_possible_waits
from gpureport.comparison.quality import (
    MissingTarget,
    find_full_scale,
    measure_run_quality,
    measure_run_time_to_target,
    seconds_since_job_start,
)
from gpureport.comparison.run import SampledRun, count_work, mean_gpu_hour_price
from gpureport.comparison.steps import TrainingBasis, training_rate
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.comparison.work import build_training_curves
from gpureport.findings import Confidence, Finding
from gpureport.metrics import BY_NAME, Scope
from gpureport.recording import Device, Recording
from gpureport.recording_advice import choose_recording
from gpureport.report.runs.report_run import device_name
from gpureport.report.wording import display, terms

_TOTALS = {"duration", "cost", "idle_cost", "carbon", "gpu_seconds", "energy_joules"}
_SHARES = {"idle_ratio", "gpu_utilization_ratio"}
JOB_FAILED = "the job failed (exit "
_UNKNOWN_WORK = {"unknown_work", "unknown_work_or_price"}
NO_TARGET = Why("no_target", "no target was given: use --target NAME=VALUE, or set target under [training]")
_NO_PRICE = Why("no_price", "the price of a GPU-hour is not known: use --gpu-hour-price or [prices]")
_COSTS = {
    "cost": ("total", _NO_PRICE),
    "idle_cost": (
        "idle",
        Why("not_recorded", "the utilisation of a GPU was not recorded, so its idle time is not known"),
    ),
    "carbon": (
        "carbon_grams",
        Why("no_carbon", "carbon requires the power of every GPU and an intensity (--carbon-intensity or [carbon])"),
    ),
}
_FIELDS = {"gpu_memory_peak_bytes": "memory_peak_bytes", "gpu_memory_headroom_ratio": "memory_headroom_ratio"}
_NAMED = 6
_KINDS_BEHIND_CLASS = {
    "throttled": ("thermal_throttle", "hw_throttle"),
    "waiting_for_input": ("cpu_bound",),
    "hollow": ("hollow_util",),
}
"""Kinds of findings that put GPU time in a class; if they cannot be assessed, it stays empty."""


def join_reasons(*reasons: Why) -> Why:
    known = [reason for reason in reasons if reason]
    return Why(known[0].code, "; ".join(reason.text for reason in known)) if known else NO_REASON


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A run's observed value for a limit.

    `value` is in the unit of the limit. If part of the value (`open_part`) is unknown, the true value lies within
    `ends`. `doubt` explains why there is no value, or why it cannot show that the run meets the limit.
    """

    value: float | None = None
    text: str = ""
    ends: tuple[float, float] | None = None
    doubt: Why = NO_REASON
    note: Why = NO_REASON
    open_part: str = "time without samples"

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest possible values, or None if exact or unknown."""
        return self.ends if self.ends and self.ends[0] < self.ends[1] else None

    def breaks(self, limit: Limit) -> bool:
        return self.value is not None and not any(map(limit.holds, self.bounds or (self.value,)))

    def keeps(self, limit: Limit) -> bool:
        if self.value is None or self.doubt:
            return False
        return limit.subject is Subject.CHANGE or all(map(limit.holds, self.bounds or (self.value,)))


def not_observed(code: str, text: str) -> Observed:
    return Observed(doubt=Why(code, text))


def measured(limit: Limit, value: float, where: str = "", doubt: Why = NO_REASON) -> Observed:
    return Observed(value=value, text=f"{format_against_limit(value, limit.threshold)}{where}", doubt=doubt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """A run and the findings that count: those with this `confidence` that are in `only` and not acknowledged."""

    sampled: SampledRun
    analysis: Analysis
    selected_kinds: Collection[str]
    goals: TrainingGoals = NO_GOALS
    confidence: Confidence = Confidence.MEDIUM
    acknowledged: Collection[Finding] = ()
    only: Collection[str] | None = None


def explain_failure(run: SampledRun) -> Why:
    if run.exit_code:
        return Why("job_failed", f"{JOB_FAILED}{run.exit_code})")
    return Why("damaged_archive", "the compressed log is damaged") if run.is_damaged else NO_REASON


def doubt_partial_run(limit: Limit, run: CheckedRun, seen: Observed) -> Observed:
    """Return the figure with a caveat if it is a share of too few samples, or depends on how much work was done."""
    is_unknown = seen.doubt.code in _UNKNOWN_WORK and not run.sampled.info.work
    if (failure := explain_failure(run.sampled)) and (limit.name in _TOTALS or is_unknown):
        return replace(seen, doubt=failure)
    few = explain_few_samples(run.analysis) if limit.name in _SHARES else NO_REASON
    return Observed(doubt=few) if few and seen.value is not None else seen


def explain_currency(currency: str, limit: Limit) -> Why:
    asked = limit.threshold.currency
    if limit.threshold.unit != MONEY or currency == asked:
        return NO_REASON
    if currency:
        return Why("other_currency", f"prices are given in {currency}, not in {asked}")
    return Why("no_currency", f'the price has no currency: write currency = "{asked}" under [prices]')


def observe_device(limit: Limit, run: CheckedRun) -> Observed:
    """Return the figure of the worst device. A caveat about one device applies to the run."""
    scope = BY_NAME[limit.name].scope if limit.subject is Subject.STATISTIC else Scope.GPU
    devices = [device for device in run.analysis.run.devices if device.scope is scope]
    if not devices:
        missing = "host" if scope is Scope.HOST else "GPU"
        return not_observed(f"no_{missing.lower()}_recorded", f"no {missing} was recorded")
    found = [_observe_one(limit, run.analysis, device) for device in devices]
    known = [each for each in found if each.value is not None]
    if not known:
        return found[0]
    worst = (max if limit.is_upper else min)(known, key=lambda each: each.value or 0.0)
    return replace(worst, doubt=next((each.doubt for each in found if each.doubt), NO_REASON))


def _observe_one(limit: Limit, analysis: Analysis, device: Device) -> Observed:
    name = device_name(device)
    held = next((each for each in analysis.statistics if each.device == device.id), None)
    value, seconds = (None, 0.0) if held is None else _read_device(limit, held)
    if value is None:
        hint = f"; needs {choose_recording([limit.name])}" if limit.name in BY_NAME else ""
        return not_observed("not_recorded", f"{limit.name} of {name} was not recorded{hint}")
    # for a host, the whole run counts
    jobs = (gpu.job_seconds for gpu in analysis.gpu_time if gpu.device == device.id)
    held_for = next(jobs, (analysis.run.ended - analysis.run.started) / 1e6)
    where = f" on {name}" if len(analysis.run.devices) > 1 else ""
    return measured(limit, value, where, _explain_low_coverage(seconds, held_for, name))


def _read_device(limit: Limit, held: DeviceStatistics) -> tuple[float | None, float]:
    if limit.subject is not Subject.STATISTIC:
        value = getattr(held, _FIELDS.get(limit.name, limit.name))
        return None if value is None else float(value), held.observed_seconds
    summary = held.metric(limit.name)
    if summary is None:
        return None, 0.0
    below = BELOW.get(limit.statistic)
    return getattr(summary, limit.statistic) if below is None else dict(summary.below).get(below), summary.seconds


def explain_short_time(seconds: float, name: str) -> Why:
    length = display.duration_below(seconds, SHORTEST_SECONDS)
    why = Why("too_short", f"only {length} of {name} were recorded; at least a minute is needed")
    return why if seconds < SHORTEST_SECONDS else NO_REASON


def explain_few_samples(analysis: Analysis) -> Why:
    if not is_recording_too_short(analysis):
        return NO_REASON
    samples = f"only {display.plural(count_samples(analysis), 'sample')} with utilisation"
    few = Why("too_few_samples", f"{samples}; at least {FEWEST_SAMPLES} are needed")
    return explain_short_time(observed_seconds([analysis]), "the run") or few


def _explain_low_coverage(seconds: float, whole: float, name: str) -> Why:
    share = min(seconds / whole, 1.0) if whole else 0.0
    if (short := explain_short_time(seconds, name)) or share >= COVERAGE:
        return short
    return Why("covers_too_little", f"only {display.percent(share)} of the time on {name} was recorded")


def observe_figure(limit: Limit, run: CheckedRun) -> Observed:
    analysis, name = run.analysis, limit.name
    value = read_run(SampledRun(analysis=analysis, gpu_hour_price=mean_gpu_hour_price(analysis))).get(name)
    if value is None:
        code, why = "not_recorded", "it was not recorded for every GPU"
        if "cost" in name:
            code, why = "unknown_work_or_price", "give the work with --work, and the price under [prices]"
        elif "work" in name:
            code, why = "unknown_work", "give the work with --work N:UNIT"
        return not_observed(code, f"{name} is not known: {why}")
    if other := explain_currency(analysis.cost.currency if analysis.cost else "", limit):
        return Observed(doubt=other)
    # unlike this figure, the class `idle` excludes start-up and end, so it is usually smaller
    counted = ", start-up and end included" if name == "idle_ratio" and not limit.holds(value) else ""
    return measured(limit, value, counted, _explain_unsampled_time(analysis, name))


def _explain_unsampled_time(analysis: Analysis, name: str = "") -> Why:
    """Return a reason if too little power data (for energy and carbon) or utilisation was recorded."""
    whole, count = analysis.job_gpu_seconds, max(len(analysis.gpu_time), 1)
    if (short := explain_short_time(observed_seconds([analysis]), "the run")) or not whole:
        return short
    seen = whole - fsum(_class_seconds(analysis, "no_samples", "gpu_lost"))
    if name.startswith(("energy", "carbon")):
        seen = fsum(each.energy_seconds or 0.0 for each in analysis.statistics)
    return _explain_low_coverage(max(seen / count, SHORTEST_SECONDS), whole / count, "all GPUs")


def _class_seconds(analysis: Analysis, *names: str) -> Iterator[float]:
    return (seconds for gpu in analysis.gpu_time for name, seconds in gpu.seconds if name in names)


def observe_run(limit: Limit, run: CheckedRun) -> Observed:
    analysis, name = run.analysis, limit.name
    if name in _COSTS:
        return _observe_cost(limit, analysis)
    if name == "rejected":
        rows = sum(entry.rows for entry in analysis.run.quality.rejected)
        return Observed(value=float(rows), text=display.plural(rows, "line"))
    if name == "not_judged":
        kinds = len({entry.kind for entry in analysis.not_judged})
        return Observed(value=float(kinds), text=display.plural(kinds, "kind"))
    value = run.sampled.lasted if name == "duration" else analysis.coverage_ratio
    if value is None:
        return not_observed("no_length", f"the {name} of a log without timestamps, or with one sample, is not known")
    return measured(limit, value)


def _observe_cost(limit: Limit, analysis: Analysis) -> Observed:
    cost, name = analysis.cost, limit.name
    field, unknown = _COSTS[name]
    if cost is None or (cost.total is None and limit.threshold.unit == MONEY):
        return Observed(doubt=unknown if name == "carbon" else _NO_PRICE)
    amount: float | None = getattr(cost, field)
    other = explain_currency(cost.currency, limit)
    if amount is None or other:
        return Observed(doubt=unknown if amount is None else other)
    # time without samples costs money, but may have been idle
    return measured(limit, amount, doubt=NO_REASON if name == "cost" else _explain_unsampled_time(analysis, name))


def observe_gpu_time(limit: Limit, run: CheckedRun) -> Observed:
    """Unsampled time may belong to any class, and low use of unknown cause or many short pauses may be waits."""
    analysis, name, is_share = run.analysis, limit.name, limit.threshold.unit == SHARE
    whole = analysis.job_gpu_seconds + (analysis.no_job_gpu_seconds if name == "no_job" else 0.0)
    if not analysis.gpu_time or whole <= 0 or len(analysis.gpu_time) < len(analysis.run.gpus):
        return not_observed("no_gpu_time", "the utilisation of every GPU is needed")
    if few := explain_few_samples(analysis):
        return Observed(doubt=few)
    seconds = fsum(_class_seconds(analysis, *(LOST_CLASSES if name == LOST else [name])))
    open_parts = {} if name == "no_samples" else {"time without samples": fsum(_class_seconds(analysis, "no_samples"))}
    if name == "waiting_for_input":
        open_parts |= list_possible_waits(analysis)
    parts = {part: held for part, held in open_parts.items() if held}
    scale = whole if is_share else 1.0
    value, most = seconds / scale, (seconds + fsum(parts.values())) / scale
    text = format_against_limit(value, limit.threshold, display.percent if is_share else display.gpu_time)
    if parts:
        listed = (f"{display.percent(held / whole)} {part}" for part, held in parts.items())
        text += f", perhaps more: {', '.join(listed)}"
    unjudged = {entry.kind for entry in analysis.not_judged if name == LOST}
    hidden = [f"“{terms.class_title(each)}”" for each, kinds in _KINDS_BEHIND_CLASS.items() if unjudged & {*kinds}]
    unknown = Why("losses_not_known", f"not fully assessed: {display.join_words(hidden)}")
    return Observed(
        value=value,
        text=text,
        ends=(value, most),
        doubt=explain_class_doubt(name, analysis),
        note=unknown if hidden else NO_REASON,
        open_part=display.join_words(list(parts)),
    )


def explain_class_doubt(name: str, analysis: Analysis) -> Why:
    if short := explain_short_time(observed_seconds([analysis]), "the run"):
        return short
    entry = next((each for each in analysis.not_judged if each.kind in _KINDS_BEHIND_CLASS.get(name, ())), None)
    return Why("kind_not_judged", f"{entry.kind} could not be judged ({entry.reason})") if entry else NO_REASON


def read_training(recording: Recording, analysis: Analysis, throughput: str | None = None) -> SampledRun:
    return replace(
        count_work(recording, analysis, throughput),
        training=build_training_curves(recording.training),
        gpu_hour_price=mean_gpu_hour_price(analysis),
    )


def observe_training(limit: Limit, run: CheckedRun) -> Observed:
    if limit.statistic:
        return _observe_training_metric(limit, run)
    if limit.name != TRAINING_RATE:
        return _observe_time_to_target(limit, run)
    bases = (TrainingBasis.SERIES, TrainingBasis.STEADY_PHASE)
    value = next((rate for basis in bases if (rate := training_rate(run.sampled, basis)) is not None), None)
    if value is None:
        return not_observed("unknown_work", f"{limit.name} is not known: log a throughput, or give --work N:UNIT")
    return measured(limit, value)


def _observe_training_metric(limit: Limit, run: CheckedRun) -> Observed:
    curve = next((each for each in run.sampled.training if each.name == limit.name), None)
    if curve is None:
        return _miss_metric(limit.name, run.sampled)
    higher = run.goals.is_higher_better(limit.name)
    if limit.statistic == BEST and higher is None:
        hint = f"use --better {limit.name}=higher or {limit.name}=lower"
        return not_observed("unknown_direction", f"it is not known whether a higher {limit.name} is better: {hint}")
    found = measure_run_quality(run.sampled, curve, higher_is_better=higher)
    value = found.best if limit.statistic == BEST else found.final
    if value is None:
        return observe_divergence(limit, "the last value is not a number")
    if limit.threshold.unit == SHARE:
        # many tools log accuracy as a percentage
        value /= find_full_scale([value], higher_is_better=higher) or 1.0
    return measured(limit, value)


def observe_divergence(limit: Limit, why: str) -> Observed:
    return Observed(value=inf if limit.is_upper else -inf, text=f"diverged: {why}")


def _miss_metric(name: str, run: SampledRun) -> Observed:
    known, text = [curve.name for curve in run.training], f"{name} was not recorded"
    if not known:
        return not_observed("not_recorded", f"{text}: no training metrics were found; add them with --training FILE")
    listed = display.join_words(known[:_NAMED]) + (" and others" if len(known) > _NAMED else "")
    return not_observed("not_recorded", f"{text}; the run recorded {listed}")


def _observe_time_to_target(limit: Limit, run: CheckedRun) -> Observed:
    target, cost = run.goals.target, run.analysis.cost
    if target is None:
        return Observed(doubt=NO_TARGET)
    found = measure_run_time_to_target(run.sampled, run.goals)
    if found.missing is MissingTarget.NOT_RECORDED:
        return _miss_metric(target.name, run.sampled)
    if found.missing is MissingTarget.NOT_REACHED and limit.name == SECONDS_TO_TARGET:
        # the time is unknown, but longer than the training
        curve = next(each for each in run.sampled.training if each.name == target.name)
        seconds = seconds_since_job_start(run.sampled, curve, -1)
        trained = display.duration(seconds)
        doubt = Why("target_not_reached", f"the run trained for {trained}, less than the limit")
        return Observed(
            value=inf,
            text=f"{target.text} was not reached in {trained}",
            ends=(seconds, inf),
            doubt=doubt if limit.is_upper else NO_REASON,
        )
    if found.missing:
        return not_observed(found.missing.name.lower(), f"{target.text}: {found.missing.value}")
    spent = {SECONDS_TO_TARGET: found.seconds, "gpu_seconds_to_target": found.gpu_seconds, "cost_to_target": found.cost}
    value = spent[limit.name]
    doubt = _NO_PRICE if value is None else explain_currency(cost.currency if cost else "", limit)
    return Observed(doubt=doubt) if value is None or doubt else measured(limit, value, f" to {target.text}")
