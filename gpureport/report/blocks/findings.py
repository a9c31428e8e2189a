"""Findings as blocks: what was found in words, then the findings of each run with evidence, then steps to take."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gpureport.analysis.advice.choose import USUAL_CHECK
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.findings import FindingCard, FindingRow
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.wording import display
from gpureport.report.wording.display import join
from gpureport.report.wording.words import group_holders

LOST_TIME = "Lost time is the most that removing the cause could give back. Findings can overlap: do not add them up."
_LOW = "Low."


def list_findings(report: Report) -> Iterator[Block]:
    found = Counter(row.severity for row in report.rows)
    counted = [display.plural(found[each], each) for each in ("problem", "warning") if found[each]]
    counted += [f"{found['info']} info"] if found["info"] else []
    checks, *_ = report.judgement.sentence.split(". ")
    label = f"{', '.join(counted) or 'none'}. {checks.rstrip('.')}."
    yield Block(forms=Form.ALL ^ Form.PAGE, title="Findings", label=label)
    for row in report.rows:
        yield from list_row(row, report)
    yield Block(texts=[f"{report.order} {LOST_TIME}"] if report.findings else [])


def list_row(row: FindingRow, report: Report) -> Iterator[Block]:
    """Yield what is said of a kind over all runs, then of each run; its steps are said once."""
    cards = [card for card in report.findings if card.id in row.cards]
    texts = [row.summary, *(() if report.several else (card.summary for card in cards))]
    told = [("How much", join(row.extent, row.cost)), ("Do this", row.advice)]
    told += [("", text) for card in cards for text in card.recommendations if text not in row.advice]
    told += [("Confidence", row.confidence), ("Cause", cards[0].cause if cards else "")]
    told += [("Caveats", text) for text in row.caveats]
    yield Block(
        forms=Form.LONG | Form.PAPER,
        anchor=row.id,
        title=f"{row.id} {row.severity}: {row.title} ({row.kind}), {row.runs}",
        level=3,
        style=row.severity,
        texts=list(dict.fromkeys(texts)),
        facts=[Fact(name=name, text=text) for name, text in dict.fromkeys(told) if text],
    )
    if row.history:
        panels = [join(panel.label, panel.note, by=": ") for panel in row.history.panels]
        texts = [join(row.history.title, row.history.caption, by=". "), *panels]
        yield Block(forms=Form.TEXT, texts=texts)
    yield Block(table=_list_cards(cards))
    yield Block(table=_list_evidence([card for card in cards if not card.repeats]))
    for card in cards:
        if len(card.occurrences) > 1:
            yield _list_stretches(card)
    facts = []
    for step in dict.fromkeys(step for card in cards for step in card.steps):
        unknown = step.unknown and f"Not known from this recording: whether {step.unknown}."
        risk = "" if step.risk == _LOW else f"Risk: {step.risk}"
        check = "" if step.check == USUAL_CHECK else f"Check: {step.check}"
        more = (f"When: {step.when}", unknown, risk, check, f"Source: {step.source}")
        facts.append(Fact(name=step.title, text=join(step.do, *more, by=" ")))
    usual = f"Unless a step says otherwise, its check is the usual one: {USUAL_CHECK} And its risk is low."
    yield Block(title="Steps to take, one by one", level=4, texts=[usual] if facts else [], facts=facts)


def _list_cards(cards: Sequence[FindingCard]) -> Table | None:
    rows: list[list[Cell | str]] = []
    for card in cards:
        said = ["" if card.repeats else card.title, card.run, "" if card.is_open else card.status]
        said += [f"Follows from {card.root}." if card.root else ""]
        said += [f"Explains {display.join_words(card.explains)}." if card.explains else ""]
        rows.append([Cell(text=card.id, small=join(*said)), card.lost, card.where])
    return build_table(("", "Lost", "Where"), rows, in_words=("Lost", "Where")) if rows else None


def _list_evidence(cards: Sequence[FindingCard]) -> Table | None:
    lines = [line for card in cards for line in card.evidence]
    observed = group_holders(((line.quantity, line.limit, line.source), line.observed) for line in lines)
    rows: list[list[Cell | str]] = [
        [name, ", ".join(values), Cell(text=limit, small=source)] for (name, limit, source), values in observed.items()
    ]
    title = "Observed" if len(cards) == 1 else f"Observed in {display.join_words([card.id for card in cards])}"
    return build_table(("Evidence", title, "Limit"), rows, in_words=(title, "Limit")) if rows else None


def _list_stretches(card: FindingCard) -> Block:
    count = f"{'first ' if card.omitted else ''}{len(card.occurrences)}"
    held = group_holders((stretch.device, stretch.text) for stretch in card.occurrences)
    return Block(
        forms=Form.PAGE,
        title=f"Stretches of time of {card.id} ({count})",
        level=4,
        facts=[Fact(name=device, text="; ".join(texts)) for device, texts in held.items()],
        texts=[card.omitted],
    )
