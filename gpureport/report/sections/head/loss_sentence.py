"""How much of the GPU time of a step was lost and to what, in one sentence, or why nothing can be said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpureport.analysis.results import Analysis, DeviceStatistics
from gpureport.comparison import gains
from gpureport.comparison.steps import Step
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.head import VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display

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
"""What GPU time was lost to, by class; that of slowed clocks depends on what slowed them."""
_SLOWED = {frozenset({"thermal_throttle"}): "heat", frozenset({"hw_throttle"}): "slowed by hardware"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known of the findings of a report.

    Attributes:
        cards: the findings.
        judged: how many kinds could be judged.
        missing: how many could not.
        samples: samples of one GPU in the last step.
        seconds: time from first to last sample of the last step.
        is_mean: whether the last step is known by means of whole runs alone.
    """

    cards: tuple[FindingCard, ...]
    judged: int
    missing: int
    samples: int
    seconds: float
    is_mean: bool = False

    @property
    def too_short(self) -> bool:
        """Whether the last step is too short for a share of it to mean anything."""
        return not self.is_mean and gains.is_too_short(self.seconds, self.samples)

    @property
    def open(self) -> list[FindingCard]:
        """Open cards that are more than information, without those that follow from one of them."""
        called = [card for card in self.cards if card.is_open and card.severity != "info"]
        named = {card.id for card in called}
        return [card for card in called if card.root not in named]


class UnknownLoss(NamedTuple):
    """Why nothing can be said about GPU time: in words, and in one word."""

    sentence: str
    code: VerdictCode


def explain_unknown_loss(step: Step, findings: Findings) -> UnknownLoss | None:
    """Return why nothing can be said about GPU time; None when something can."""
    if not any(analysis.run.gpus for analysis in step.analyses):
        sentence = "No GPU was recorded, so nothing can be said about GPU time."
        return UnknownLoss(sentence, VerdictCode.NO_GPU)
    if findings.too_short:
        whose = " of each GPU" if max(len(analysis.run.gpus) for analysis in step.analyses) > 1 else ""
        count = "one sample" if findings.samples == 1 else display.plural(findings.samples, "sample")
        length = f" in {display.duration(findings.seconds)}" if findings.seconds > 0 else ""
        several = len({_count_samples(each) for analysis in step.analyses for each in analysis.statistics}) > 1
        shown = f"At most {count} per GPU" if several else f"Only {count}{whose}"
        sentence = f"{shown}{length}: too little to assess."
        return UnknownLoss(sentence, VerdictCode.TOO_SHORT)
    if gpu_time.unobserved_ratio(step.analyses) >= 1 - gains.NEGLIGIBLE_RATIO:
        sentence = "No utilisation was recorded, so nothing can be said about GPU time."
        return UnknownLoss(sentence, VerdictCode.NO_UTILISATION)
    return None


def _count_samples(statistics: DeviceStatistics) -> int:
    return max((metric.samples for metric in statistics.metrics), default=0)


def name_loss(name: str, analyses: Sequence[Analysis]) -> str:
    """Return what a class of GPU time was lost to: slowed clocks by what slowed them."""
    if name != "throttled":
        return LOSSES.get(name, name.replace("_", " "))
    kinds = {found.kind for analysis in analyses for found in analysis.findings}
    return _SLOWED.get(frozenset(kinds & {"thermal_throttle", "hw_throttle"}), "slowed clocks")


def describe_short_pauses(ratio: float) -> str:
    """Return that the loss is not known where pauses took some share of the time, as a sentence without full stop."""
    return f"not known: short pauses took {display.percent(ratio)}"


def describe_loss(analyses: Sequence[Analysis]) -> str:
    """Return how much GPU time some runs lost and to what, `4.7% of 49.9 GPU-min was lost: start-up 2.1%, heat 1.9%`.

    With a price in a currency, what the lost time and the whole run cost follows the GPU time. Of several runs both are
    of one run, their mean.

    Empty where GPU time is not known. Time that holds no utilisation is named; where it is most of the time, the share
    is of the rest.
    """
    held = gpu_time.job_gpu_seconds(analyses)
    unseen = gpu_time.unobserved_ratio(analyses)
    if not held or unseen >= 1 - gains.NEGLIGIBLE_RATIO:
        return ""
    is_mostly_unseen = unseen > gains.MOST_UNSEEN_RATIO
    if is_mostly_unseen:
        # what nobody saw may all have been lost: a share of all time is no bound
        held *= 1 - unseen
    return _describe_seen_loss(analyses, held, is_all=not is_mostly_unseen) + (
        f" Another {display.percent(unseen)} holds no data." if is_partly_unseen(analyses) else ""
    )


def is_partly_unseen(analyses: Sequence[Analysis]) -> bool:
    """Return whether a notable part of the GPU time, but not most of it, holds no utilisation."""
    return gains.UNSEEN_RATIO < gpu_time.unobserved_ratio(analyses) <= gains.MOST_UNSEEN_RATIO


def _describe_seen_loss(analyses: Sequence[Analysis], held: float, *, is_all: bool) -> str:
    """Return how much of some GPU time was lost; `is_all` says whether it is all that jobs held."""
    lost = gpu_time.lost_seconds_by_class(analyses)
    ratio = sum(lost.values()) / held
    is_lower_bound = gpu_time.is_lower_bound(analyses)
    pauses = gpu_time.excessive_short_pauses(analyses)
    if ratio < gains.NOTABLE_RATIO and pauses is not None:
        return f"How much GPU time was lost is {describe_short_pauses(pauses)}."
    if ratio < gains.NOTABLE_RATIO:
        return "GPU time was lost; how much is not known." if is_lower_bound else "Hardly any GPU time was lost."
    of = gpu_time.format_held(held, len(analyses))
    if not is_all:
        of = f"the {of} observed"
    elif not is_lower_bound:
        of += _describe_cost(analyses)
    share = f"{'At least ' if is_lower_bound else ''}{display.percent(ratio)}"
    return f"{share} of {of} was lost: {list_losses(lost, held, analyses)}."


def _describe_cost(analyses: Sequence[Analysis]) -> str:
    """Return what the lost time and all time cost, a mean over the runs as the GPU time is.

    Empty where a price is not stated, or currencies differ.
    """
    totals = [analysis.cost.total for analysis in analyses if analysis.cost and analysis.cost.total is not None]
    lost, currency = spending.lost_cost(analyses), spending.currency(analyses)
    if lost is None or len(totals) < len(analyses) or len({one.cost.currency for one in analyses if one.cost}) > 1:
        return ""
    of_lost, of_all = (display.money(amount / len(analyses), currency) for amount in (lost, sum(totals)))
    return f" ({'' if currency else 'cost '}{of_lost} of {of_all})"


def list_losses(lost: Mapping[str, float], held: float, analyses: Sequence[Analysis]) -> str:
    """Return the largest losses with their shares, and what the others come to."""
    if len(lost) == 1:
        return f"all of it {name_loss(next(iter(lost)), analyses)}"
    named = [name for name in lost if lost[name] / held >= gains.NOTABLE_RATIO][:_NAMED]
    parts = [(name_loss(name, analyses), lost[name] / held) for name in named]
    others = [name for name in lost if name not in named]
    rest = sum(lost[name] for name in others) / held
    if rest >= gains.NEGLIGIBLE_RATIO:
        parts.append((name_loss(others[0], analyses) if len(others) == 1 else "other", rest))
    return display.join_words([f"{name} {display.percent(share)}" for name, share in parts])
