"""What a reader sees first as blocks: the head, pictures as characters, what to do, rules, steps, and findings.

Findings are told in words, then those of each run with evidence, then the steps to take.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from gpureport.report.blocks.reference import list_reference
from gpureport.report.model.blocks import Block, Form, Series
from gpureport.report.model.findings import FindingCard, FindingRow
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import SignalHistory, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.wording import display
from gpureport.report.wording.display import join
from gpureport.report.wording.words import group_holders

LOST_TIME = "Lost time is the most that removing the cause could give back. Findings can overlap: do not add them up."
_DOUBTS = 5  # doubts about comparisons that Markdown has at most


def list_blocks(report: Report) -> Iterator[Block]:
    yield Block(forms=Form.ALL, part="details", head=report)
    yield from _pictures(report)
    yield Block(forms=Form.ALL, part="actions", title="What to do next", actions=report.actions)
    yield from _rules(report.policy) if report.policy else ()
    yield Block(forms=Form.LONG, title=report.steps_heading, table=report.steps)
    yield from list_study(report)
    yield from list_findings(report)
    yield from _timelines(report)
    yield from list_reference(report)


def describe_change(change: Change | None) -> str:
    if change is None:
        return ""
    since = change.since and f"since {change.since}"
    return join(change.text, since, change.interval and f"({change.interval})", change.verdict, by=" ")


def list_study(report: Report) -> Iterator[Block]:
    part = report.comparison
    yield from part.study if part else ()
    doubts = (
        list(dict.fromkeys(doubt for block in part.reference for doubt in block.warnings))[:_DOUBTS] if part else []
    )
    yield Block(forms=Form.MARKDOWN, facts=[Fact(name="", text=doubt) for doubt in doubts])


def _pictures(report: Report) -> Iterator[Block]:
    """Yield bars, lines over time and tiles; where lines show what a finding speaks of, a screen needs no tiles."""
    is_chain, worst = report.steps is not None, report.worst
    has_spans = worst is not None and bool(worst.spans)
    if report.spent and report.spent.bars:
        yield from _spent(report.spent)
    if worst:
        yield _history(worst, Form.LONG if is_chain or not has_spans else Form.ALL)
        yield Block(texts=[worst.caption])
    if report.use:
        longest = max(report.use.seconds, 1e-3)
        series = [
            Series(
                name=row.label,
                ends="0 to 100%",
                values=row.mean,
                note=join(row.small, row.total, row.text),
                share=len(row.mean) * row.bucket_seconds / longest,
            )
            for row in report.use.rows
        ]
        forms = Form.FULL if is_chain or has_spans else Form.SCREEN | Form.FULL
        yield Block(forms=forms, part="uses", title="GPU use over time", series=series)
        yield Block(texts=[report.use.caption, report.use.rest])
    heading = "First → last" if any(tile.change for tile in report.tiles) else "Key figures"
    forms = Form.LONG if has_spans else Form.ALL
    yield Block(forms=forms, part="tiles", title=heading, tiles=report.tiles)


def _spent(spent: TimeSpent) -> Iterator[Block]:
    each, unit = shared_total(spent), spent.columns[0]
    if each:
        # the total of a GPU holds its unit, that of a step has it in the heading of its column
        unit = f"{each} {unit}" if unit else f"{each} each" if len(spent.bars) > 1 else each
    versus = "change from the previous step" if any(bar.change for bar in spent.bars) else ""
    label, title = join(unit, versus, by=", "), "Where the GPU time went"
    yield Block(forms=Form.ALL, part="bars", title=title, label=label, texts=[spent.caption], bars=spent)
    facts = []
    for bar in spent.bars:
        interval = bar.interval_text and f"95% interval {bar.interval_text}"
        beside = bar.beside and f"{display.lower_first(spent.columns[1])} {bar.beside}"
        classes = ", ".join(f"{part.label} {part.text}" for part in bar.segments)
        said = (bar.total, interval, describe_change(bar.change), bar.note, beside, describe_change(bar.beside_change))
        facts.append(Fact(name=join(bar.label, bar.small, by=", "), text=join(*said, classes)))
    since = join(describe_change(spent.since_first), describe_change(spent.beside_since_first))
    facts += [Fact(name="Since the first step", text=since)] if since else []
    yield Block(facts=facts)


def shared_total(spent: TimeSpent) -> str:
    """Return the total that all bars have, where none has a change; empty where they differ."""
    totals = {bar.total for bar in spent.bars}
    return "" if len(totals) > 1 or any(bar.change for bar in spent.bars) else totals.pop()


def _history(history: SignalHistory, forms: Form) -> Block:
    seconds = max(history.end - history.start, 1e-3)
    panels = [panel for panel in history.panels if panel.note] or history.panels
    named = [(panel, *panel.label.rpartition(", ")) for panel in panels]
    series = [
        Series(
            name=name or panel.label,
            ends=ends if name else "",
            values=next((line.mean for line in panel.lines if line.is_main), panel.lines[0].mean),
            low=panel.low,
            high=panel.high,
            note=panel.note,
        )
        for panel, name, _, ends in named
    ]
    marks = [((start - history.start) / seconds, (end - history.start) / seconds) for start, end in history.spans]
    return Block(forms=forms, part="signals", title=history.title, series=series, marks=marks, marked=history.span_text)


def _rules(policy: Table) -> Iterator[Block]:
    failed = [row for row in policy.rows if row.cells[0].flagged]
    facts = []
    for row in failed:
        outcome, observed, *_ = row.cells
        words = join(observed.text, observed.small, by=" ")
        facts.append(Fact(name=outcome.text, text=f"{row.head.text} ({words})" if words else row.head.text))
    label = f"{len(failed)} of {len(policy.rows)} failed or not assessed"
    yield Block(forms=Form.SCREEN, part="rules", title="Rules", label=label, facts=facts)
    yield Block(forms=Form.LONG, title="Rules", label=label, table=policy)


def _timelines(report: Report) -> Iterator[Block]:
    for run in report.timeline:
        series = [Series(name=strip.label, values=strip.coarse) for strip in run.strips]
        events = [event.at / max(run.seconds, 1e-3) for event in run.events if event.at is not None]
        said = [run.absent]
        yield Block(forms=Form.TEXT, title="Timeline", label=run.label, series=series, texts=said, events=events)
    if any(run.strips for run in report.timeline):
        text = "Height: mean GPU utilisation, 0 to 100% (blank: 0%, ?: not recorded)."
        text += " ^: event of the log, listed under data quality."
        yield Block(forms=Form.TEXT, texts=[text])


# --- findings


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
    is_said = any(text.startswith("Confidence") for text in row.caveats)
    told += [("Confidence", "" if is_said else row.confidence), ("Cause", cards[0].cause if cards else "")]
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
        unknown = step.unknown and f"When: {step.when} This recording does not show whether {step.unknown}."
        risk = "" if step.risk == "Low." else f"Risk: {step.risk}"
        facts.append(Fact(name=step.title, text=join(step.do, unknown, risk, by=" ")))
    more = f"gpureport explain {row.kind} --detail full: when each helps, how to check it, and sources."
    yield Block(title="Steps to take, one by one", level=4, texts=[more] if facts else [], facts=facts)


def _list_cards(cards: Sequence[FindingCard]) -> Table | None:
    """Return a row a card; what several have in common is said once, below."""
    gone = {card.status for card in cards if not card.is_open}
    columns = {"Lost": [card.lost for card in cards], "Where": [card.where for card in cards]}
    own = [name for name, texts in columns.items() if len({*texts}) > 1 or len(cards) == 1] or ["Where"]
    is_one = len(gone) == 1 and len(cards) > 1
    notes = [f"{name}: {texts[0]}." for name, texts in columns.items() if name not in own and cards]
    notes += [f"Those of earlier steps: {gone.pop()}."] if is_one else []
    rows: list[list[Cell | str]] = []
    for at, card in enumerate(cards):
        said = ["" if card.repeats else card.title, card.run, "" if card.is_open or is_one else card.status]
        said += [f"Follows from {card.root}." if card.root else ""]
        said += [f"Explains {display.join_words(card.explains)}." if card.explains else ""]
        rows.append([Cell(text=card.id, small=join(*said)), *(columns[name][at] for name in own)])
    return build_table(("", *own), rows, *notes, in_words=own) if rows else None


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
