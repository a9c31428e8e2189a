"""Measures the gain from each step, whether a finding had recommended it, and the remaining losses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum, inf, isfinite

from gpureport.analysis.advice.choose import STEPS, SettingChange
from gpureport.analysis.job.params import read_params
from gpureport.analysis.results import LOST_CLASSES, Analysis, measure_pauses_ratio, sum_seconds_by_class
from gpureport.analysis.rules import RULES
from gpureport.analysis.rules.low_use import BELOW
from gpureport.comparison import figures
from gpureport.comparison.chain import Comparison, StepPair, pair_steps
from gpureport.comparison.changes import FindingChange, RemainingLoss, SetupChange, has_params, list_distinct_changes
from gpureport.comparison.evidence import Reason
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.findings import Finding

SHORTEST_SECONDS, FEWEST_SAMPLES = 10.0, 5
"""Minimum seconds and samples for which shares of a GPU's time are meaningful."""
NOTABLE_RATIO = 0.005  # Minimum share of GPU time for a loss to be mentioned.
NEGLIGIBLE_RATIO = 0.0005  # Share of GPU time that would print as less than 0.1%.
UNSEEN_RATIO = 0.05  # Unobserved share of GPU time above which it is reported.
MOST_UNSEEN_RATIO = 0.5  # Unobserved share above which no lost share is reported.
_OF_THE_RECORDING = ("gpu_count", "gpu_memory", "power_limit")  # Settings that every log contains.


def is_too_short(seconds: float, samples: int) -> bool:
    return seconds < SHORTEST_SECONDS or samples < FEWEST_SAMPLES


def list_unmeasured_kinds(findings: Iterable[Finding]) -> list[str]:
    unmeasured = {one.kind for one in findings if one.lost_gpu_seconds is None and one.root is None}
    # these kinds always lose GPU time, so a missing amount is unknown rather than zero
    return sorted(unmeasured & {kind.name for rule in RULES for kind in rule.descriptions if kind.always_loses_time})


def measure_excessive_short_pauses(seconds: Mapping[str, float]) -> float | None:
    # short pauses count as used time, but if they exceed what good utilisation allows, all may be lost
    ratio = measure_pauses_ratio(seconds)
    return ratio if ratio > 1 - BELOW.value else None


def list_possible_waits(analysis: Analysis) -> dict[str, float]:
    unexplained = [each.devices for each in analysis.findings if each.kind == "low_util_cause_unknown"]
    low_use = fsum(
        dict(gpu.seconds).get("low_use", 0.0)
        for gpu in analysis.gpu_time
        if any(not devices or gpu.device in devices for devices in unexplained)
    )
    seconds = sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time)
    pauses = 0.0 if measure_excessive_short_pauses(seconds) is None else seconds["short_pauses"]
    return {"low use of unknown cause": low_use, "short pauses": pauses}


def measure_lost_ratio(analysis: Analysis) -> float | None:
    """Return the share of GPU time lost, or None if most time was not observed or more may be lost."""
    held = analysis.job_gpu_seconds
    seconds = sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time)
    if not held or is_recording_too_short(analysis) or seconds.get("no_samples", 0.0) > MOST_UNSEEN_RATIO * held:
        return None
    is_unknown = list_unmeasured_kinds(analysis.findings) or measure_excessive_short_pauses(seconds) is not None
    return None if is_unknown else fsum(seconds.get(name, 0.0) for name in LOST_CLASSES) / held


def is_recording_too_short(analysis: Analysis) -> bool:
    return is_too_short((analysis.run.ended - analysis.run.started) / 1e6, count_samples(analysis))


def count_samples(analysis: Analysis) -> int:
    whole = analysis.whole_statistics or analysis.statistics
    return max((found.samples for each in whole if (found := each.metric("gpu_utilization_ratio"))), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PotentialLoss:
    name: str
    lost_ratio: float
    at_most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Potential:
    """The most that a step can still gain. `at_most` is None if unknown."""

    step: str
    lost_ratio: float | None
    at_most: float | None
    losses: tuple[PotentialLoss, ...]
    unseen_ratio: float
    pauses_ratio: float
    unmeasured: tuple[str, ...]


def estimate_potential(left: RemainingLoss, analyses: Sequence[Analysis]) -> Potential:
    """Return the largest possible speed-up of the whole job."""
    unmeasured = list_unmeasured_kinds(finding for analysis in analyses for finding in analysis.findings)
    held = left.held_gpu_seconds
    unseen, pauses = (left.unseen_gpu_seconds / held, left.pause_gpu_seconds / held) if held else (1.0, 0.0)
    is_seen = unseen <= MOST_UNSEEN_RATIO and not all(map(is_recording_too_short, analyses))
    lost = left.lost / held if is_seen else None
    return Potential(
        step=left.step,
        lost_ratio=lost,
        at_most=None if lost is None or unmeasured else _bound_speedup(lost + unseen + pauses),
        losses=tuple(
            PotentialLoss(name=name, lost_ratio=amount / held, at_most=_bound_speedup(amount / held))
            for name, amount in (left.lost_gpu_seconds if is_seen else ())
        ),
        unseen_ratio=unseen,
        pauses_ratio=pauses,
        unmeasured=tuple(unmeasured),
    )


def _bound_speedup(share: float) -> float | None:
    return 1 / (1 - share) if share < 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedChange:
    """A change that was made after findings had recommended it, most recently in step `advised_in`."""

    name: str
    setting: str
    advised_in: str
    kind: str
    cause: str | None


def _list_advised(
    earlier: Sequence[Step], step: Step, shows: Callable[[SettingChange, float | None, float | None], bool]
) -> Iterator[AdvisedChange]:
    for name, advised in STEPS.items():
        for change in advised.changes:
            before, after = (_read_setting(each, change.setting) for each in (earlier[-1], step))
            if before is not None and after is not None and shows(change, before[0], after[0]):
                found = [
                    (each.label, finding)
                    for each in earlier
                    for analysis in each.analyses
                    for finding in analysis.findings
                    if name in {advised.name for advised in finding.steps}
                ]
                if found:
                    label = found[-1][0]
                    latest = [finding for each, finding in found if each == label]
                    most = max(latest, key=lambda finding: (finding.lost_gpu_seconds or 0.0, finding.kind))
                    yield AdvisedChange(
                        name=name, setting=change.setting, advised_in=label, kind=most.kind, cause=most.cause
                    )
                break


def _read_setting(step: Step, setting: str) -> tuple[float | None] | None:
    # a step's setting is known if all runs agree on it, or all list settings and none includes it
    values: set[tuple[float | None] | None] = set()
    for run in (analysis.run for analysis in step.analyses):
        if setting == "gpu_count":
            values.add((float(len(run.gpus)),))
        elif setting in _OF_THE_RECORDING:
            sizes = {gpu.memory_total_bytes if setting == "gpu_memory" else gpu.power_limit_watts for gpu in run.gpus}
            values.add((sizes.pop(),) if len(sizes) == 1 else None)
        else:
            found = getattr(read_params(run.params_and_tags), setting)
            values.add((found and found.value,) if run.states_setup else None)
    unnamed: tuple[float | None] = (None,)
    if unnamed in values and None not in values:
        return unnamed
    return values.pop() if len(values) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeChange:
    metric: str
    ratio: float
    interval: tuple[float, float] | None
    verdict: Verdict
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GainSince:
    base: str
    whole_job: RelativeChange | None
    training: RelativeChange | None
    gpu_time: RelativeChange | None
    cost: RelativeChange | None
    energy: RelativeChange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGain:
    step: Step
    params_recorded: bool
    since_before: GainSince | None = None
    since_first: GainSince | None = None
    changes: tuple[SetupChange, ...] = ()
    advised: tuple[AdvisedChange, ...] = ()
    possibly_advised: tuple[AdvisedChange, ...] = ()  # for settings that some runs do not list
    findings: tuple[FindingChange, ...] = ()
    quality: tuple[QualityChange, ...] = ()
    quality_since_first: tuple[QualityChange, ...] = ()


def build_gains(comparison: Comparison, pairs: Sequence[StepPair] | None = None) -> tuple[StepGain, ...]:
    steps = comparison.steps
    pairs = pair_steps(comparison) if pairs is None else pairs
    rows = [StepGain(step=steps[0], params_recorded=has_params(steps[0], steps[0]))]
    for place, ((base, step), pair) in enumerate(zip(pairwise(steps), pairs, strict=True), start=1):
        perhaps = _list_advised(steps[:place], step, SettingChange.may_be_made)
        rows.append(
            StepGain(
                step=step,
                since_before=_measure_gain(comparison, base, step),
                since_first=_measure_gain(comparison, steps[0], step),
                params_recorded=has_params(base, step),
                changes=list_distinct_changes(pair.changes),
                advised=tuple(_list_advised(steps[:place], step, SettingChange.is_made)),
                possibly_advised=tuple(each for each in perhaps if each.setting not in _OF_THE_RECORDING),
                findings=pair.finding_changes,
                quality=tuple(change for change in pair.quality if change.leading),
                quality_since_first=tuple(each for each in pair.quality_since_first or pair.quality if each.leading),
            )
        )
    return tuple(rows)


def _measure_gain(comparison: Comparison, base: Step, step: Step) -> GainSince:
    ratios = {delta.metric: _express_as_ratio(delta) for delta in comparison.between(base.label, step.label)}
    gpu_time, whole_job = ratios.get(figures.PER_WORK), ratios.get(figures.WORK_RATE)
    if gpu_time and base.gpu_count is not None and base.gpu_count == step.gpu_count:
        # with the same number of GPUs, both ratios are equal, but only the verdict on GPU time is corrected
        low, high = gpu_time.interval or (0.0, inf)
        interval = (1 / high, 1 / low) if low > 0 else None
        whole_job = replace(gpu_time, metric=figures.WORK_RATE, ratio=1 / gpu_time.ratio, interval=interval)
    return GainSince(
        base=base.label,
        whole_job=whole_job,
        training=ratios.get(figures.TRAINING_RATE),
        gpu_time=gpu_time,
        cost=ratios.get(figures.COST_PER_WORK),
        energy=ratios.get(figures.ENERGY_PER_WORK),
    )


def _express_as_ratio(delta: Delta) -> RelativeChange | None:
    if not delta.before or delta.before < 0 or delta.difference is None or delta.difference <= -delta.before:
        return None
    low, high = (1 + end / delta.before for end in delta.interval or (-inf, inf))
    return RelativeChange(
        metric=delta.metric,
        ratio=1 + delta.difference / delta.before,
        interval=(low, high) if isfinite(low) and isfinite(high) else None,
        verdict=delta.verdict,
        reason=delta.reason,
    )
