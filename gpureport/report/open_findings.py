"""What calls for action in the last step: each root with what follows from it, and the steps to take by name."""

from collections.abc import Iterator, Sequence

from gpureport.report import advised, display
from gpureport.report.parts import Fact, FindingCard


def facts(cards: Sequence[FindingCard]) -> Iterator[Fact]:
    """Yield the open findings that are more than information, each with what follows from it and what to do.

    Args:
        cards: the findings, what follows from one right after it.
    """
    by_id = {card.id: card for card in cards}
    for card in cards:
        if not card.is_open or card.severity == "info" or card.root:
            continue
        follows = [by_id[name].title for name in card.explains]
        parts = [card.lost, *([f"explains {display.listing(follows)}"] if follows else [])]
        yield Fact(name=card.severity.capitalize(), text=f"{card.title}: {'; '.join(parts)}.")
        if card.steps:
            yield Fact(name="Steps", text=f"{advised.listed([step.title for step in card.steps])}.")
