"""How a run shows each figure that may be limited: of a device, all GPUs, the run, its GPU time and its training."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import fsum, inf

from gpureport.analysis.results import LOST_CLASSES, Analysis, DeviceStatistics
from gpureport.checks.limit import (
    BEST,
    NO_REASON,
    CheckedRun,
    Limit,
    Observed,
    Why,
    explain_currency,
    measured,
    not_observed,
)
from gpureport.checks.quantities import SHARE, format_against_limit
from gpureport.comparison.comparable import COVERAGE
from gpureport.comparison.figures import SECONDS_TO_TARGET, SHORTEST_SECONDS, observed_seconds, read_run
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
from gpureport.comparison.work import build_training_curves
from gpureport.metrics import BY_NAME, Scope
from gpureport.recording import Device, Recording
from gpureport.recording_advice import choose_recording
from gpureport.report.runs.report_run import device_name
from gpureport.report.wording import display

LOST = "lost"
"""GPU time of all classes that are lost."""

BELOW = {"below_25": 0.25, "below_50": 0.5, "below_70": 0.7}
"""Statistics of a utilisation: shares of time below it."""

NO_TARGET = Why("no_target", "no target is given: --target NAME=VALUE, or target under [training]")
"""Why the time to a target is not known."""

_NO_PRICE = Why("no_price", "the price of a GPU-hour is not known: --gpu-hour-price or [prices]")
_FIELDS = {"gpu_memory_peak_bytes": "memory_peak_bytes", "gpu_memory_headroom_ratio": "memory_headroom_ratio"}
_NAMED = 6
_KINDS_BEHIND_CLASS = {
    "throttled": ("thermal_throttle", "hw_throttle"),
    "waiting_for_input": ("cpu_bound",),
    "hollow": ("hollow_util",),
}
"""Kinds that fill a class of GPU time: while they cannot be judged, the class stays empty."""

_ReadDevice = Callable[[Limit, DeviceStatistics], tuple[float | None, float]]
"""Returns a figure of a device and the seconds it is based on."""


def observe_statistic(limit: Limit, run: CheckedRun) -> Observed:
    """Return a statistic of a metric, from the device that is worst by the limit."""

    def read(limit: Limit, held: DeviceStatistics) -> tuple[float | None, float]:
        summary = held.metric(limit.name)
        if summary is None:
            return None, 0.0
        if limit.statistic in BELOW:
            return dict(summary.below).get(BELOW[limit.statistic]), summary.seconds
        return getattr(summary, limit.statistic), summary.seconds

    return _observe_worst_device(limit, run.analysis, BY_NAME[limit.name].scope, read)


def observe_device_figure(limit: Limit, run: CheckedRun) -> Observed:
    """Return a figure of one GPU, the one that is worst by the limit."""

    def read(limit: Limit, held: DeviceStatistics) -> tuple[float | None, float]:
        value = getattr(held, _FIELDS.get(limit.name, limit.name))
        return None if value is None else float(value), held.observed_seconds

    return _observe_worst_device(limit, run.analysis, Scope.GPU, read)


def _observe_worst_device(limit: Limit, analysis: Analysis, scope: Scope, read: _ReadDevice) -> Observed:
    """Return the value of the device worst by a limit; doubt about one is doubt about the result."""
    devices = [device for device in analysis.run.devices if device.scope is scope]
    if not devices:
        missing = "host" if scope is Scope.HOST else "GPU"
        return not_observed(f"no_{missing.lower()}_recorded", f"no {missing} was recorded")
    found = [_observe_device(limit, analysis, device, read) for device in devices]
    known = [each for each in found if each.value is not None]
    if not known:
        return found[0]
    choose = max if limit.is_upper else min
    worst = choose(known, key=lambda each: each.value or 0.0)
    doubt = next((each.doubt for each in found if each.doubt), NO_REASON)
    return Observed(value=worst.value, text=worst.text, doubt=doubt)


def _observe_device(limit: Limit, analysis: Analysis, device: Device, read: _ReadDevice) -> Observed:
    name = device_name(device)
    held = next((each for each in analysis.statistics if each.device == device.id), None)
    value, seconds = (None, 0.0) if held is None else read(limit, held)
    if value is None:
        hint = f"; needs {choose_recording([limit.name])}" if limit.name in BY_NAME else ""
        return not_observed("not_recorded", f"{limit.name} of {name} was not recorded{hint}")
    # of a host, the whole run counts
    length = (analysis.run.ended - analysis.run.started) / 1e6
    held_for = next((gpu.job_seconds for gpu in analysis.gpu_time if gpu.device == device.id), length)
    where = f" on {name}" if len(analysis.run.devices) > 1 else ""
    return measured(limit, value, where, _explain_low_coverage(seconds, held_for, name))


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


def _explain_short_run(analysis: Analysis) -> Why:
    """Return why less than a minute, or a handful of samples, is too little."""
    length, seconds = (analysis.run.ended - analysis.run.started) / 1e6, observed_seconds([analysis])
    if length < SHORTEST_SECONDS:
        return Why("too_short", f"the run is {display.duration(length)} long, and a minute is the least")
    if seconds < SHORTEST_SECONDS:
        return _explain_short_time(seconds, "the run")
    samples = display.plural(count_samples(analysis), "sample")
    return Why("too_few_samples", f"only {samples} with a utilisation, and {FEWEST_SAMPLES} are the least")


def observe_figure(limit: Limit, run: CheckedRun) -> Observed:
    """Return a figure over all GPUs of the run."""
    analysis, name = run.analysis, limit.name
    value = read_run(SampledRun(analysis=analysis, gpu_hour_price=mean_gpu_hour_price(analysis))).get(name)
    if value is None:
        code, why = "not_recorded", "not every GPU recorded what it rests on"
        if "cost" in name:
            code, why = "unknown_work_or_price", "say the work done with --work and the price under [prices]"
        elif "work" in name:
            code, why = "unknown_work", "say the work done with --work N:UNIT"
        return not_observed(code, f"{name} cannot be told: {why}")
    if other := explain_currency(analysis.cost.currency if analysis.cost else "", limit):
        return Observed(doubt=other)
    return measured(limit, value, doubt=_explain_unsampled_time(analysis, name))


def _explain_unsampled_time(analysis: Analysis, name: str = "") -> Why:
    """Return why too little of all GPUs was recorded to speak for the run; else false.

    Energy rests on the time its integral covers, other figures on that with a utilisation.
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


def _class_seconds(analysis: Analysis, *names: str) -> Iterator[float]:
    """Yield the seconds of classes, GPU by GPU."""
    return (seconds for gpu in analysis.gpu_time for name, seconds in gpu.seconds if name in names)


def observe_run(limit: Limit, run: CheckedRun) -> Observed:
    """Return a figure of the run as a whole: its length, what was read and judged."""
    analysis = run.analysis
    if limit.name in _COUNTS:
        count, noun = _COUNTS[limit.name](analysis), _NOUNS[limit.name]
        return Observed(value=float(count), text=display.plural(count, noun))
    length = (analysis.run.ended - analysis.run.started) / 1e6
    value = length if limit.name == "duration" else analysis.coverage_ratio
    if value is None:
        text = f"the {limit.name} of a log without time stamps, or of one sample, is not known"
        return not_observed("no_length", text)
    return measured(limit, value)


_NOUNS = {"rejected": "line", "not_judged": "kind"}
_COUNTS: dict[str, Callable[[Analysis], int]] = {
    "rejected": lambda analysis: sum(entry.rows for entry in analysis.run.quality.rejected),
    "not_judged": lambda analysis: len({entry.kind for entry in analysis.not_judged}),
}


def observe_cost(limit: Limit, run: CheckedRun) -> Observed:
    """Return what a run cost by stated prices, or what of that was idle."""
    cost = run.analysis.cost
    if cost is None or cost.total is None:
        return Observed(doubt=_NO_PRICE)
    amount = cost.idle if limit.name == "idle_cost" else cost.total
    if amount is None:
        text = "the utilisation of a GPU was not recorded, so what was idle is not known"
        return not_observed("not_recorded", text)
    if other := explain_currency(cost.currency, limit):
        return Observed(doubt=other)
    # time without samples is paid for too, but may have been idle
    doubt = _explain_unsampled_time(run.analysis) if limit.name == "idle_cost" else NO_REASON
    return measured(limit, amount, doubt=doubt)


def observe_carbon(limit: Limit, run: CheckedRun) -> Observed:
    """Return the carbon dioxide behind the energy of a run."""
    cost = run.analysis.cost
    if cost is None or cost.carbon_grams is None:
        text = "carbon needs the power of every GPU and an intensity: --carbon-intensity or [carbon]"
        return not_observed("no_carbon", text)
    return measured(limit, cost.carbon_grams, doubt=_explain_unsampled_time(run.analysis, "energy"))


def observe_gpu_time(limit: Limit, run: CheckedRun) -> Observed:
    """Return the GPU time of a class, as a share or in hours; unsampled time may be of any class.

    Low use of unknown cause may be waits for input. So may short pauses over 30% of the time.
    Shares are of the time in which a job held a GPU; the share without a job is of all time.
    """
    analysis, name, is_share = run.analysis, limit.name, limit.threshold.unit == SHARE
    whole = analysis.job_gpu_seconds + (analysis.no_job_gpu_seconds if name == "no_job" else 0.0)
    if not analysis.gpu_time or whole <= 0 or len(analysis.gpu_time) < len(analysis.run.gpus):
        text = "GPU time could not be divided: the utilisation of every GPU is needed over some time"
        return not_observed("no_gpu_time", text)
    if is_recording_too_short(analysis):
        return Observed(doubt=_explain_short_run(analysis))
    seconds = fsum(_class_seconds(analysis, *(LOST_CLASSES if name == LOST else [name])))
    open_parts = {} if name == "no_samples" else {"time without samples": fsum(_class_seconds(analysis, "no_samples"))}
    if name == "waiting_for_input":
        open_parts |= list_possible_waits(analysis)
    parts = {part: held for part, held in open_parts.items() if held}
    scale = whole if is_share else 1.0
    value, most = seconds / scale, (seconds + fsum(parts.values())) / scale
    text = format_against_limit(value, limit.threshold, display.percent if is_share else display.gpu_time)
    if parts:
        text += (
            f", perhaps more: {', '.join(f'{display.percent(held / whole)} {part}' for part, held in parts.items())}"
        )
    return Observed(
        value=value,
        text=text,
        ends=(value, most),
        doubt=_explain_class_doubt(name, analysis),
        note=_name_hidden_losses(analysis) if name == LOST else NO_REASON,
        open_part=display.join_words(list(parts)),
    )


def _explain_class_doubt(name: str, analysis: Analysis) -> Why:
    if observed_seconds([analysis]) < SHORTEST_SECONDS:
        return _explain_short_run(analysis)
    entry = next((each for each in analysis.not_judged if each.kind in _KINDS_BEHIND_CLASS.get(name, ())), None)
    return Why("kind_not_judged", f"{entry.kind} could not be judged ({entry.reason})") if entry else NO_REASON


def _name_hidden_losses(analysis: Analysis) -> Why:
    unjudged = {entry.kind for entry in analysis.not_judged}
    hidden = sorted(name.replace("_", " ") for name, kinds in _KINDS_BEHIND_CLASS.items() if unjudged & {*kinds})
    return (
        Why("losses_not_known", f"what was lost to {display.join_words(hidden)} could not be told in full")
        if hidden
        else NO_REASON
    )


def read_training(recording: Recording, analysis: Analysis, throughput: str | None = None) -> SampledRun:
    """Return a run with its work, training metrics and price, without the series of comparisons.

    A training metric of any name may count its work.
    """
    return replace(
        count_work(recording, analysis, throughput),
        training=build_training_curves(recording.training),
        gpu_hour_price=mean_gpu_hour_price(analysis),
    )


def observe_training_rate(limit: Limit, run: CheckedRun) -> Observed:
    """Return how fast training alone went, as its loop logged, else over the steady phase."""
    bases = (TrainingBasis.SERIES, TrainingBasis.STEADY_PHASE)
    value = next((rate for basis in bases if (rate := training_rate(run.sampled, basis)) is not None), None)
    if value is None:
        text = f"{limit.name} cannot be told: log a throughput, or say the work done with --work N:UNIT"
        return not_observed("unknown_work", text)
    return measured(limit, value)


def observe_training_metric(limit: Limit, run: CheckedRun) -> Observed:
    """Return a training metric at the end of a run, or at best."""
    curve = next((each for each in run.sampled.training if each.name == limit.name), None)
    if curve is None:
        return _miss_metric(limit.name, run.sampled)
    higher = run.goals.is_higher_better(limit.name)
    if limit.statistic == BEST and higher is None:
        text = (
            f"whether a higher {limit.name} is better is not known: --better {limit.name}=higher or {limit.name}=lower"
        )
        return not_observed("unknown_direction", text)
    found = measure_run_quality(run.sampled, curve, higher_is_better=higher)
    value = found.best if limit.statistic == BEST else found.final
    if value is None:
        return observe_divergence(limit, "the last value is not a number")
    if limit.threshold.unit == SHARE:
        # many log an accuracy in per cent
        value /= find_full_scale([value], higher_is_better=higher) or 1.0
    return measured(limit, value)


def observe_divergence(limit: Limit, why: str) -> Observed:
    """Return a value that breaks every limit, for training that diverged."""
    return Observed(value=inf if limit.is_upper else -inf, text=f"diverged: {why}")


def _miss_metric(name: str, run: SampledRun) -> Observed:
    known: Sequence[str] = [curve.name for curve in run.training]
    text = "no training metrics are known; give them with --training FILE or a tracker"
    if known:
        listed = display.join_words([*known[:_NAMED]]) + (" and others" if len(known) > _NAMED else "")
        return not_observed("not_recorded", f"{name} was not recorded; recorded were {listed}")
    return not_observed("not_recorded", f"{name} was not recorded: {text}")


def observe_time_to_target(limit: Limit, run: CheckedRun) -> Observed:
    """Return what a run spent until a training metric first reached the target."""
    target, cost = run.goals.target, run.analysis.cost
    if target is None:
        return Observed(doubt=NO_TARGET)
    found = measure_run_time_to_target(run.sampled, run.goals)
    if found.missing is MissingTarget.NOT_RECORDED:
        return _miss_metric(target.name, run.sampled)
    if found.missing is MissingTarget.NOT_REACHED and limit.name == SECONDS_TO_TARGET:
        return _observe_missed_target(limit, run)
    if found.missing:
        return not_observed(found.missing.name.lower(), f"{target.text}: {found.missing.value}")
    spent = {SECONDS_TO_TARGET: found.seconds, "gpu_seconds_to_target": found.gpu_seconds, "cost_to_target": found.cost}
    value = spent[limit.name]
    doubt = _NO_PRICE if value is None else explain_currency(cost.currency if cost else "", limit)
    return Observed(doubt=doubt) if value is None or doubt else measured(limit, value, f" to {target.text}")


def _observe_missed_target(limit: Limit, run: CheckedRun) -> Observed:
    """Return the time for which a run trained without reaching the target: it is longer than that, and not known."""
    target = run.goals.target
    curve = next(each for each in run.sampled.training if target is not None and each.name == target.name)
    seconds = seconds_since_job_start(run.sampled, curve, -1)
    trained = display.duration(seconds)
    doubt = Why("target_not_reached", f"the run trained for {trained}, less than the limit")
    return Observed(
        value=inf,
        text=f"{target.text if target else ''} was never reached in {trained}",
        ends=(seconds, inf),
        doubt=doubt if limit.is_upper else NO_REASON,
    )
