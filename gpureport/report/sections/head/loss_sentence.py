"""The GPU time that the last step lost, in one sentence."""

from dataclasses import dataclass

from gpureport.comparison.steps.steps import Step
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.runs import gpu_time
from gpureport.report.sections.findings import loss_wording
from gpureport.report.sections.head import low_use_sentences
from gpureport.report.wording import display

_SHORTEST, _FEWEST = 10.0, 5
"""Seconds and samples below which no share is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the sentence rests on.

    Attributes:
        cards: the findings.
        judged: how many kinds could be judged.
        missing: how many could not.
        samples: samples of one GPU in the last step.
        seconds: time from first to last sample of the last step.
    """

    cards: tuple[FindingCard, ...]
    judged: int
    missing: int
    samples: int
    seconds: float

    @property
    def too_short(self) -> bool:
        """Whether the last step is too short for a share of it to mean anything."""
        return self.seconds < _SHORTEST or self.samples < _FEWEST

    @property
    def open(self) -> list[FindingCard]:
        """Open cards that are more than information, without those that follow from one of them."""
        called = [card for card in self.cards if card.is_open and card.severity != "info"]
        named = {card.id for card in called}
        return [card for card in called if card.root not in named]


def explain_unknown_loss(step: Step, findings: Findings) -> str:
    """Return why nothing can be said about GPU time; empty when something can."""
    if not any(analysis.run.gpus for analysis in step.analyses):
        return "No GPU was recorded, so nothing can be said about GPU time."
    if findings.too_short:
        whose = " of each GPU" if max(len(analysis.run.gpus) for analysis in step.analyses) > 1 else ""
        count = display.plural(findings.samples, "sample")
        length = f"in {display.duration(findings.seconds)}" if findings.seconds > 0 else "in all"
        return f"Too short to judge: {count}{whose} {length}."
    if gpu_time.unobserved_ratio(step.analyses) >= 1 - loss_wording.NOTHING:
        return "GPU time could not be judged: no utilisation was recorded."
    return ""


def describe_loss(step: Step, findings: Findings) -> str:
    """Return what the step lost; a share begins with a small letter, so that words may stand before it."""
    if reason := explain_unknown_loss(step, findings):
        return reason
    held = gpu_time.job_gpu_seconds(step.analyses)
    if not held or (not findings.judged and findings.missing):
        return "Nothing could be judged with this data."
    lost = gpu_time.lost_seconds_by_class(step.analyses)
    whole, unseen = held, gpu_time.unobserved_ratio(step.analyses)
    if unseen > loss_wording.MOST:
        # what nobody saw may all have been lost: a share of all time is no bound
        held *= 1 - unseen
    ratio = sum(lost.values()) / held
    if ratio < loss_wording.NOTABLE and not findings.open:
        return _nothing_found(step, findings)
    if ratio < loss_wording.NOTABLE and loss_wording.loss_bound(step.analyses) == "at least":
        return "GPU time was lost, how much is not known."
    if ratio < loss_wording.NOTABLE:
        grave = sum(card.severity == "problem" for card in findings.open)
        number, noun = (grave, "problem") if grave else (len(findings.open), "finding")
        low = low_use_sentences.is_low(step.analyses)
        begin = (
            f"{low_use_sentences.work_done(step.analyses)}, and the log does not show why"
            if low
            else "Hardly any GPU time was lost"
        )
        return f"{begin}; {display.plural(number, noun)} {'is' if number == 1 else 'are'} open."
    share = f"{loss_wording.loss_bound(step.analyses)} {display.percent(ratio)}"
    of, rest = loss_wording.format_gpu_time(held, len(step.analyses)), ""
    if whole > held:
        of, rest = (
            f"the {of} observed",
            f"; of the other {loss_wording.format_gpu_time(whole - held, len(step.analyses))} it cannot be told",
        )
    return f"{share} of {of} was lost: {loss_wording.describe_largest_losses(lost, held)}{rest}."


def _nothing_found(step: Step, findings: Findings) -> str:
    kinds = f"the {display.plural(findings.judged, 'kind')}" if findings.judged else "the kinds"
    text = f"No loss found among {kinds} that could be judged"
    if low_use_sentences.is_low(step.analyses):
        text = f"{low_use_sentences.work_done(step.analyses)}, and none of {kinds} that could be judged explains why"
    return f"{text}; {findings.missing} could not be judged." if findings.missing else f"{text}."
