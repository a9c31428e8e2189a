"""Sentences about lost GPU time and its classes, the computing share, and money saved."""

from collections.abc import Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple

from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.results import Analysis
from gpureport.analysis.rules.low_use import BELOW
from gpureport.analysis.series import UTILISATION
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison, find_work_contradiction
from gpureport.comparison.figures import COST_PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.head import VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head.recording_doubts import UNTIMED, list_rejections
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.wording import display, terms

_UNKNOWN = "No {} was recorded, so GPU time cannot be assessed."
_NAMED = 3
LOSSES = {
    "waiting_for_input": "waiting for data",
    "idle": "idle",
    "unused": "unused GPUs",
    "held": "GPUs held without work",
    "hollow": "busy at low power",
    "startup": "start-up",
    "tail": "after the work",
    "gpu_lost": "lost GPUs",
    "low_use": "low use",
}
_SLOWED = {frozenset({"thermal_throttle"}): "heat", frozenset({"hw_throttle"}): "slowed by hardware"}


class Findings(NamedTuple):
    """Numbers of kinds assessed and not assessed, and the size of the last step's recording."""

    judged: int
    missing: int
    samples: int
    seconds: float
    is_mean: bool = False

    @property
    def too_short(self) -> bool:
        return not self.is_mean and gains.is_too_short(self.seconds, self.samples)


def explain_unknown_loss(step: Step, findings: Findings) -> tuple[str, VerdictCode] | None:
    if not any(analysis.run.gpus for analysis in step.analyses):
        return _UNKNOWN.format("GPU"), VerdictCode.NO_GPU
    if findings.too_short:
        if untimed := [each for each in list_rejections([each.run for each in step.analyses]) if UNTIMED in each]:
            return untimed[0], VerdictCode.TOO_SHORT
        statistics = [each for analysis in step.analyses for each in analysis.statistics]
        counts = {max((metric.samples for metric in each.metrics), default=0) for each in statistics}
        count = "one sample" if findings.samples == 1 else display.plural(findings.samples, "sample")
        length = f" in {display.duration(findings.seconds)}" if findings.seconds > 0 else ""
        whose = " of each GPU" if max(len(analysis.run.gpus) for analysis in step.analyses) > 1 else ""
        shown = f"At most {count} per GPU" if len(counts) > 1 else f"Only {count}{whose}"
        return f"{shown}{length}: too little to assess.", VerdictCode.TOO_SHORT
    if gpu_time.unobserved_ratio(step.analyses) >= 1 - gains.NEGLIGIBLE_RATIO:
        return _UNKNOWN.format("utilisation"), VerdictCode.NO_UTILISATION
    return None


def name_loss(name: str, analyses: Sequence[Analysis]) -> str:
    if name != "throttled":
        return LOSSES.get(name, name.replace("_", " "))
    kinds = {found.kind for analysis in analyses for found in analysis.findings}
    return _SLOWED.get(frozenset(kinds & {"thermal_throttle", "hw_throttle"}), "slowed clocks")


def explain_lower_bound(analyses: Sequence[Analysis]) -> str:
    """Return why more GPU time may have been lost than is known, or "" if all losses are known."""
    pauses = gpu_time.excessive_short_pauses(analyses)
    if pauses is not None:
        return f"short pauses took {display.percent(pauses)}"
    kinds = gains.list_unmeasured_kinds(each for analysis in analyses for each in analysis.findings)
    return display.join_words([display.lower_first(terms.kind_title(kind)) for kind in kinds])


def describe_loss(analyses: Sequence[Analysis]) -> str:
    """Return `4.7% of 49.9 GPU-min was lost: start-up 2.1%, heat 1.9%`."""
    unseen = gpu_time.unobserved_ratio(analyses)
    if not gpu_time.job_gpu_seconds(analyses) or unseen >= 1 - gains.NEGLIGIBLE_RATIO:
        return ""
    lost = gpu_time.lost_ratios(analyses)
    ratio, unknown = sum(lost.values()), explain_lower_bound(analyses)
    if ratio >= gains.NOTABLE_RATIO:
        of = gpu_time.format_base(analyses)
        of += "" if unknown or unseen > gains.MOST_UNSEEN_RATIO else _describe_cost(analyses)
        share = f"{'At least ' if unknown else ''}{display.percent(ratio)}"
        losses = list_losses(lost, analyses)
        said = f"{share} of {of} was lost: {losses.removeprefix('all of it ') if unknown else losses}."
    else:
        said = f"The lost GPU time is not known: {unknown}." if unknown else "Hardly any GPU time was lost."
    return said + (f" Another {display.percent(unseen)} has no data." if is_partly_unseen(analyses) else "")


def is_display_alone(analyses: Sequence[Analysis]) -> bool:
    return all(any(each.code == "only_a_display" for each in analysis.not_judged) for analysis in analyses)


def is_partly_unseen(analyses: Sequence[Analysis]) -> bool:
    return gains.UNSEEN_RATIO < gpu_time.unobserved_ratio(analyses) <= gains.MOST_UNSEEN_RATIO


def _describe_cost(analyses: Sequence[Analysis]) -> str:
    totals = [analysis.cost.total for analysis in analyses if analysis.cost and analysis.cost.total is not None]
    lost, currency = spending.lost_cost(analyses), spending.currency(analyses)
    if lost is None or len(totals) < len(analyses) or len({one.cost.currency for one in analyses if one.cost}) > 1:
        return ""
    of_lost, of_all = (display.money(amount / len(analyses), currency) for amount in (lost, sum(totals)))
    return f" ({'' if currency else 'cost '}{of_lost} of {of_all})"


def list_losses(lost: Mapping[str, float], analyses: Sequence[Analysis]) -> str:
    if len(lost) == 1:
        return f"all of it {name_loss(next(iter(lost)), analyses)}"
    named = [name for name in lost if lost[name] >= gains.NOTABLE_RATIO][:_NAMED]
    parts = {name_loss(name, analyses): lost[name] for name in named}
    others = [name for name in lost if name not in named]
    rest = sum(lost[name] for name in others)
    if rest >= gains.NEGLIGIBLE_RATIO:
        parts[name_loss(others[0], analyses) if len(others) == 1 else "other"] = rest
    return display.join_words([f"{name} {display.percent(share)}" for name, share in parts.items()])


def is_low_mid_job(analyses: Sequence[Analysis]) -> bool:
    summaries = [use for each in analyses for gpu in each.statistics if (use := gpu.metric(UTILISATION)) is not None]
    seconds = fsum(summary.seconds for summary in summaries) - _measure_use(analyses)[2]
    return seconds > 0 and fsum(summary.mean * summary.seconds for summary in summaries) < BELOW.value * seconds


def _measure_use(analyses: Sequence[Analysis]) -> tuple[float, float, float]:
    """Return the GPU-seconds of computing, of known utilisation, and outside the work."""
    times = [time for analysis in analyses for time in analysis.gpu_time]
    seconds = gpu_time.seconds_by_class(times)
    idle = gpu_time.seconds_by_cause(times).get("idle", {})
    seen = gpu_time.job_gpu_seconds(analyses) - seconds.get("no_samples", 0.0)
    outside = fsum((seconds.get("startup", 0.0), seconds.get("tail", 0.0), idle.get(OUTSIDE, 0.0)))
    return seconds.get("computing", 0.0), seen, outside


def measure_mid_job(analyses: Sequence[Analysis]) -> float:
    computing, seen, outside = _measure_use(analyses)
    return computing / (seen - outside) if seen > outside else 0.0


def describe_computing(analyses: Sequence[Analysis], *, mid_job: bool = False) -> str:
    """Return the share of time spent computing, in words. `mid_job` leaves out start-up and tail."""
    computing, seen, outside = _measure_use(analyses)
    outside = outside if mid_job and gains.NOTABLE_RATIO * seen <= outside < seen else 0.0
    gpus, seconds = max(len(analysis.run.gpus) for analysis in analyses), seen - outside
    who = {1: "The GPU", 2: "Both GPUs"}.get(gpus, f"All {gpus} GPUs")
    of = display.rough_duration(seconds, 300) if mid_job and gpus == len(analyses) == 1 else "the time"
    share = display.percent(computing / seconds if seconds else 0.0)
    said = f"{who} spent {'only ' if mid_job else ''}{share} of {of} computing"
    return f"Mid-job, {display.lower_first(said)}" if outside else said


_NOTABLE = 0.05  # share outside training from which its cost is stated


def describe_saving(comparison: Comparison) -> str:
    """Return `Saves $3.28 per million images`, or "" if the saving is doubtful."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = Figures(comparison).delta(COST_PER_WORK)
    is_unconfirmed = delta is not None and delta.verdict is Verdict.UNCONFIRMED
    if delta is None or not delta.difference or not (delta.verdict.is_established or is_unconfirmed):
        return ""
    if any(find_work_contradiction(run) for step in comparison.steps for run in step.runs):
        return ""
    currency, scale = spending.currency([*first.analyses, *last.analyses]), Figures(comparison).cost

    def show(size: float) -> str:
        return display.money(abs(size) * scale.factor, currency)

    amount, ends = show(delta.difference), delta.interval
    # an interval around 0 does not show the size
    if ends is not None and all(map(isfinite, ends)) and ends[0] * ends[1] > 0:
        low, high = map(show, sorted(ends, key=abs))
        amount += "" if low == high else f" ({low} to {high})"
    falls, per = delta.difference < 0, f"{scale.per}{'' if currency else ', no currency given'}"
    if is_unconfirmed:
        return f"Costs {amount} {'less' if falls else 'more'} {per}, unconfirmed."
    return f"Saves {amount} {per}." if falls else f"Costs {amount} more {per}."


def explain_missing_cost(comparison: Comparison) -> str:
    priced = [run.gpu_hour_price is not None for step in comparison.steps for run in step.runs]
    costs = {end.value(COST_PER_WORK) for end in (comparison.steps[0], comparison.steps[-1])}
    if len(comparison.steps) == 1 or not any(priced) or None not in costs:
        return ""
    if not all(priced):
        return "No cost per unit of work: not every GPU has a price."
    is_known = all(step.work_unit is not None for step in comparison.steps)
    return "" if is_known else "No cost per unit of work: specify the work (--work 9600:images)."


def format_training_cost(comparison: Comparison) -> str:
    last = comparison.steps[-1]
    cost, whole, training = (last.value(each) for each in (COST_PER_WORK, WORK_RATE, TRAINING_RATE))
    if not cost or not whole or not training or 1 - whole / training < _NOTABLE:
        return ""
    return display.money(cost * whole / training * Figures(comparison).cost.factor, spending.currency(last.analyses))
