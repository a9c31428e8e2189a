"""What the last step of a chain or the best group still loses, and the finding that costs most there."""

from collections.abc import Iterator

from gpureport.analysis import phrases
from gpureport.comparison import gains
from gpureport.comparison.changes import LargestFinding, RemainingLoss, measure_remaining_loss
from gpureport.comparison.steps import Step
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.shapes import Fact
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.loss_sentence import describe_short_pauses, list_losses
from gpureport.report.wording import display, terms


def describe_remaining_loss(
    step: Step, first: Step | None, run: ReportRun, cards: tuple[FindingCard, ...] = ()
) -> Iterator[Fact]:
    """Yield what a step still loses, in words; nothing where no GPU time was held.

    Args:
        step: the last step of a chain, or a group.
        first: the first step of the chain, to say what that lost; None of groups.
        run: a run of the step, for the names of its devices.
        cards: findings of the report, to point to the one that is meant.
    """
    left = measure_remaining_loss(step.label, step.analyses)
    if not left.held_gpu_seconds:
        return
    yield Fact(name="Still lost", text=_lost(first, step, left))
    largest = left.largest
    if largest is None:
        yield Fact(name="Largest left", text="No finding says what it costs.")
        return
    where = f", {run.devices(largest.devices)}" if largest.devices else ""
    title = f"{terms.kind_title(display.clean(largest.kind), largest.cause)}{where}"
    cost = gpu_time.format_held(largest.lost_gpu_seconds * left.runs, left.runs)
    share = display.percent(largest.lost_gpu_seconds / left.held_gpu_seconds)
    worst = _worst_card(largest, cards)
    if left.runs == 1:
        yield Fact(name="Largest left", text=f"{f'{worst.id}: ' if worst else ''}{title}: up to {cost} ({share}).")
        return
    found = f"all {left.runs}" if largest.runs == left.runs else f"{largest.runs} of {left.runs}"
    mean = f"{title}: up to {cost} ({share}), a mean over all runs, found in {found}"
    if worst and worst.lost_ratio:
        mean += f"; most in {worst.id}, {display.percent(worst.lost_ratio)} of its run"
    yield Fact(name="Largest left", text=f"{mean}.")


def _worst_card(largest: LargestFinding, cards: tuple[FindingCard, ...]) -> FindingCard | None:
    """Return the card that lost most of those that hold the finding; None without cards."""
    known = [card for card in cards if card.is_open and set(card.fingerprints) & set(largest.fingerprints)]
    return max(known, key=lambda card: card.lost_seconds or 0.0, default=None)


def _lost(first: Step | None, last: Step, left: RemainingLoss) -> str:
    lost, seconds = dict(left.lost_gpu_seconds), _base_seconds(left)
    ratio = sum(lost.values()) / seconds if seconds else 0.0
    held = gpu_time.format_held(seconds * left.runs, left.runs)
    held = f"the {held} observed" if 0 < seconds < left.held_gpu_seconds else held
    label, was = display.clean(last.label), _before(first) if first else ""
    if left.unseen_gpu_seconds >= (1 - gains.NEGLIGIBLE_RATIO) * left.held_gpu_seconds:
        whole = gpu_time.format_held(left.held_gpu_seconds * left.runs, left.runs)
        return f"Not known: none of {whole} in {label} holds a utilisation.{was}"
    pauses = gpu_time.excessive_short_pauses(last.analyses)
    if ratio < gains.NOTABLE_RATIO and pauses is not None:
        return f"{phrases.capitalize(describe_short_pauses(pauses))} of {held} in {label}.{was}"
    if ratio < gains.NEGLIGIBLE_RATIO:
        return f"Hardly any of {held} in {label}.{was}"
    bound = "At least" if gpu_time.is_lower_bound(last.analyses) else "Up to"
    classes = list_losses(lost, seconds, last.analyses)
    return f"{bound} {display.percent(ratio)} of {held} in {label}: {classes}.{was}"


def _before(first: Step) -> str:
    """Return the share that the first step lost, as a sentence to go on with; empty where it is not known."""
    left = measure_remaining_loss(first.label, first.analyses)
    if not _base_seconds(left):
        return ""
    ratio = sum(amount for _, amount in left.lost_gpu_seconds) / _base_seconds(left)
    return f" In {display.clean(first.label)} it was {display.percent(ratio)}."


def _base_seconds(left: RemainingLoss) -> float:
    """Return the GPU-seconds that a loss is a share of, as in the headline: the observed ones where most are not."""
    few = left.unseen_gpu_seconds > gains.MOST_UNSEEN_RATIO * left.held_gpu_seconds
    return left.held_gpu_seconds - (left.unseen_gpu_seconds if few else 0.0)
