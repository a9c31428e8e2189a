"""What calls for action in the last step: each root with what follows from it, and the steps to take by name."""

from collections.abc import Iterator, Sequence

from gpureport.findings import Severity
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.findings import advice_steps
from gpureport.report.wording import display
from gpureport.report.wording.grouping import group_holders

_SEVERITIES = list(Severity)


def build_open_finding_facts(cards: Sequence[FindingCard], runs: int = 1) -> Iterator[Fact]:
    """Yield the open findings that are more than information, each with what follows from it and what to do.

    What several runs of the last step have in common is told once.

    Args:
        cards: the findings, what follows from one right after it.
        runs: how many runs the last step has.
    """
    by_id = {card.id: card for card in cards}
    roots = [card for card in cards if card.is_open and card.severity != "info" and not card.root]
    for title, same in group_holders((card.title, card) for card in roots).items():
        follows = dict.fromkeys(by_id[name].title for card in same for name in card.explains)
        parts = [_lost(same, runs), *([f"explains {display.join_words(list(follows))}"] if follows else [])]
        seen = f", in {len(same)} of {runs} runs" if runs > 1 else ""
        severity = max((card.severity for card in same), key=lambda name: _SEVERITIES.index(Severity(name)))
        yield Fact(name=severity.capitalize(), text=f"{title}{seen}: {'; '.join(parts)}.")
        steps = dict.fromkeys(step.title for card in same for step in card.steps)
        if steps:
            yield Fact(name="Steps", text=f"{advice_steps.number_steps(list(steps))}.")


def _lost(same: Sequence[FindingCard], runs: int) -> str:
    """Return the GPU time lost in words; where several runs lost some, a mean over all runs and what the worst lost."""
    known = [card.lost_seconds for card in same if card.lost_seconds is not None]
    worst = max(same, key=lambda card: card.lost_seconds or 0.0)
    if len(known) <= 1:
        return worst.lost
    bound = "at least" if any(card.lost_at_least for card in same) else "up to"
    mean = display.gpu_time(sum(known) / runs)
    return f"{bound} {mean} a run, a mean over {runs} runs, and in the worst {worst.lost}"
