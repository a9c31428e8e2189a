"""A report as blocks, which every format prints. A statement about several runs appears once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.findings import Outcome
from gpureport.names import group_pairs
from gpureport.report.model.blocks import Block, Form, Series
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import SignalHistory, TimeSpent
from gpureport.report.model.report_content import (
    Answers,
    FindingCard,
    FindingRow,
    GpuTable,
    Judgement,
    Report,
    RunTable,
)
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.wording.display import join, join_words, lower_first, plural, raise_first
from gpureport.report.wording.words import list_labels

LOST_TIME = "Lost time is the most that removing the cause could recover. Losses can overlap, so do not add them up."
_DOUBTS = 5  # maximum number of doubts about comparisons in Markdown
_MOST_VARIANTS, _MOST_ROWS = 3, 24


def list_blocks(report: Report) -> Iterator[Block]:
    yield Block(forms=Form.ALL, part="details", head=report)
    yield from _pictures(report)
    yield Block(forms=Form.ALL, part="actions", title=report.actions_heading, actions=report.actions)
    yield from _rules(report.policy) if report.policy else ()
    forms = Form.LONG if report.comparison else Form.ALL
    yield Block(forms=forms, part="bars", title=report.steps_heading, table=report.steps)
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
    if part := report.comparison:
        yield from part.study
        doubts = dict.fromkeys(doubt for block in part.reference for doubt in block.warnings)
        yield Block(forms=Form.MARKDOWN, facts=[Fact(name="", text=doubt) for doubt in [*doubts][:_DOUBTS]])


def _pictures(report: Report) -> Iterator[Block]:
    is_chain, worst = report.steps is not None, report.worst
    has_spans = worst is not None and bool(worst.spans)
    if report.spent and report.spent.bars:
        yield from _spent(report.spent)
    if worst:
        yield _history(worst, Form.LONG if is_chain or not has_spans else Form.ALL)
        yield Block(texts=[worst.caption])
    if report.use:
        series = [
            Series(
                name=row.label,
                ends="0 to 100%",
                values=row.mean,
                note=join(row.small, row.total, row.text),
                share=len(row.mean) * row.bucket_seconds / max(report.use.seconds, 1e-3),
            )
            for row in report.use.rows
        ]
        forms = Form.FULL if is_chain or has_spans else Form.SCREEN | Form.FULL
        yield Block(forms=forms, part="uses", title="GPU use over time", series=series)
        yield Block(texts=[report.use.caption, report.use.rest])
    heading = "First → last" if report.comparison and any(tile.change for tile in report.tiles) else "Key figures"
    forms = Form.LONG if has_spans and not report.has_target else Form.ALL
    yield Block(forms=forms, part="tiles", title=heading, tiles=report.tiles)


def _spent(spent: TimeSpent) -> Iterator[Block]:
    each, unit = shared_total(spent), spent.columns[0]
    if each:
        # totals of GPUs contain the unit
        unit = f"{each} {unit}" if unit else f"{each} each" if len(spent.bars) > 1 else each
    versus = "change from the previous step" if any(bar.change for bar in spent.bars) else ""
    label, title = join(unit, versus, by=", "), "Where the GPU time went"
    yield Block(forms=Form.ALL, part="bars", title=title, label=label, texts=[spent.caption], bars=spent)
    facts = []
    for bar in spent.bars:
        interval = bar.interval_text and f"95% interval {bar.interval_text}"
        beside = bar.beside and f"{lower_first(spent.columns[1])} {bar.beside}"
        classes = ", ".join(f"{part.label} {part.text}" for part in bar.segments)
        said = (bar.total, interval, describe_change(bar.change), bar.note, beside, describe_change(bar.beside_change))
        facts.append(Fact(name=join(bar.label, bar.small, by=", "), text=join(*said, classes)))
    since = join(describe_change(spent.since_first), describe_change(spent.beside_since_first))
    facts += [Fact(name="Since the first step", text=since)] if since else []
    yield Block(facts=facts)


def shared_total(spent: TimeSpent) -> str:
    """Return the bars' common total, or "" if totals differ or a bar has a change."""
    totals = {bar.total for bar in spent.bars}
    return "" if len(totals) > 1 or any(bar.change for bar in spent.bars) else totals.pop()


def _history(history: SignalHistory, forms: Form) -> Block:
    seconds = max(history.end - history.start, 1e-3)
    panels = [panel for panel in history.panels if panel.note] or history.panels
    series = [
        Series(
            name=name or panel.label,
            ends=ends if name else "",
            values=next((line.mean for line in panel.lines if line.is_main), panel.lines[0].mean),
            low=panel.low,
            high=panel.high,
            note=panel.note,
        )
        for panel, name, _, ends in ((panel, *panel.label.rpartition(", ")) for panel in panels)
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
    label = f"{len(failed)} of {len(policy.rows)} failed or were not assessed"
    yield Block(forms=Form.SCREEN, part="rules", title="Rules", label=label, facts=facts)
    yield Block(forms=Form.LONG, title="Rules", label=label, table=policy)


def _timelines(report: Report) -> Iterator[Block]:
    for run in report.timeline:
        series = [Series(name=strip.label, values=strip.coarse) for strip in run.strips]
        marks = [event.at / max(run.seconds, 1e-3) for event in run.events if event.at is not None]
        yield Block(forms=Form.TEXT, title="Timeline", label=run.label, series=series, texts=[run.absent], events=marks)
    if any(run.strips for run in report.timeline):
        heights = "Height: mean GPU utilisation, 0 to 100% (blank: 0%, ?: not recorded)."
        yield Block(forms=Form.TEXT, texts=[f"{heights} ^: an event from the log, listed under data quality."])


def count_findings(rows: Sequence[FindingRow]) -> str:
    found = Counter(row.severity for row in rows)
    counted = [plural(found[each], each) for each in ("problem", "warning") if found[each]]
    return ", ".join([*counted, *([f"{found['info']} info"] if found["info"] else [])]) or "none"


def list_findings(report: Report) -> Iterator[Block]:
    checks, *_ = report.judgement.sentence.split(". ")
    label = f"{count_findings(report.rows)}. {checks.rstrip('.')}."
    yield Block(forms=Form.ALL ^ Form.PAGE, title="Findings", label=label)
    for row in report.rows:
        yield from list_row(row, report)
    yield Block(texts=[f"{report.order} {LOST_TIME}"] if report.findings else [])


def list_row(row: FindingRow, report: Report) -> Iterator[Block]:
    cards = [card for card in report.findings if card.id in row.cards]
    texts = [row.summary, *(() if report.several else (card.summary for card in cards))]
    told = [("How much", join(row.extent, row.cost)), ("Do this", row.advice)]
    told += [("Steps", text) for card in cards for text in card.recommendations if text not in row.advice]
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
        yield Block(forms=Form.TEXT, texts=[join(row.history.title, row.history.caption, by=". "), *panels])
    yield Block(table=_list_cards(cards, row.title))
    yield Block(table=_list_evidence([card for card in cards if not card.repeats]))
    for card in (card for card in cards if len(card.occurrences) > 1):
        count = f"{'first ' if card.omitted else ''}{len(card.occurrences)}"
        held = group_pairs((stretch.device, stretch.text) for stretch in card.occurrences)
        yield Block(
            forms=Form.PAGE,
            title=f"Intervals of {card.id} ({count})",
            level=4,
            facts=[Fact(name=device, text="; ".join(texts)) for device, texts in held.items()],
            texts=[card.omitted],
        )
    facts = []
    for step in dict.fromkeys(step for card in cards for step in card.steps):
        unknown = step.unknown and f"When: {step.when} This recording does not show whether {step.unknown}."
        risk = "" if step.risk == "Low." else f"Risk: {step.risk}"
        facts.append(Fact(name=step.title, text=join(step.do, unknown, risk, by=" ")))
    more = f"Details: gpureport explain {row.kind} --detail full."
    yield Block(title="Steps to take, one by one", level=4, texts=[more] if facts else [], facts=facts)


def _list_cards(cards: Sequence[FindingCard], title: str) -> Table | None:
    gone = {card.status for card in cards if not card.is_open}
    lost, heading = [card.lost for card in cards], "Lost"
    if len(cards) > 1 and all(text.startswith("up to ") and text.endswith(" of the run)") for text in lost):
        lost, heading = [text[6:].replace(" of the run)", ")") for text in lost], "Lost, up to (share of the run)"
    columns = {heading: lost, "Where": [card.where for card in cards]}
    own = [name for name, texts in columns.items() if len({*texts}) > 1 or len(cards) == 1] or ["Where"]
    is_one = len(gone) == 1 and len(cards) > 1
    notes = [f"{name}: {texts[0]}." for name, texts in columns.items() if name not in own and cards]
    notes += [f"From earlier steps: {gone.pop()}."] if is_one else []
    rows: list[list[Cell | str]] = []
    for at, card in enumerate(cards):
        # the heading of the row already contains the title
        devices = card.title.removeprefix(title).removeprefix(", ") if len(cards) > 1 and not card.repeats else ""
        said = [devices, card.run, "" if card.is_open or is_one else card.status]
        said += [f"Follows from {card.root}." if card.root else ""]
        said += [f"Explains {join_words(card.explains)}." if card.explains else ""]
        rows.append([Cell(text=card.id, small=join(*said)), *(columns[name][at] for name in own)])
    return build_table(("", *own), rows, *notes, in_words=own) if rows else None


def _list_evidence(cards: Sequence[FindingCard]) -> Table | None:
    lines = [line for card in cards for line in card.evidence]
    observed = group_pairs(((line.quantity, line.limit, line.source), line.observed) for line in lines)
    rows: list[list[Cell | str]] = [
        [name, ", ".join(values), Cell(text=limit, small=source)] for (name, limit, source), values in observed.items()
    ]
    title = "Observed" if len(cards) == 1 else f"Observed in {join_words([card.id for card in cards])}"
    return build_table(("Evidence", title, "Limit"), rows, in_words=(title, "Limit")) if rows else None


def list_reference(report: Report) -> Iterator[Block]:
    shown = [*_list_sections(report)]
    yield from shown
    # sentences also mention checks that found nothing
    named = [fact.name for block in shown for fact in block.facts]
    named += [name for block in shown if block.table for name in block.table.columns]
    yield from _method(report, " ".join([*named, *(block.title for block in shown)]).lower())


def _list_sections(report: Report) -> Iterator[Block]:
    yield from report.comparison.reference if report.comparison else ()
    yield from _gpu_time(report)
    yield from _gpus(report)
    forms = Form.FULL if report.several else Form.EVERY_PAGE
    # omit facts that the table of GPUs already shows
    shown = {cell.text for run in report.gpus for row in run.table.rows for cell in row.cells if report.several}
    said = [(run.label, [fact for fact in run.facts if fact.text not in shown]) for run in report.spending]
    facts, table = split_facts(said)
    yield Block(forms=forms, anchor="spending", title="Energy and cost", table=table, facts=facts)
    yield from _not_assessed(report.judgement)
    yield _answers(report.answers, several=report.several)
    yield from _checklist(report)
    yield from _quality(report)
    notes = [Fact(name="", text=note) for note in report.verdict.notes]
    yield Block(forms=Form.EVERY_PAGE, anchor="notes", title="Also worth knowing", facts=notes)


def merge_facts(runs: Sequence[tuple[str, Sequence[Fact]]]) -> list[Fact]:
    """Return each distinct fact once, naming its runs unless it applies to all of them."""
    said = group_pairs(
        (fact.name, fact.text if len(labels) == len(runs) else f"{list_labels(labels)}: {fact.text}")
        for fact, labels in group_pairs((fact, label) for label, facts in runs for fact in facts).items()
    )
    return [Fact(name=name, text=text) for name, texts in said.items() for text in texts]


def split_facts(runs: Sequence[tuple[str, Sequence[Fact]]]) -> tuple[list[Fact], Table | None]:
    """Return facts, and a table with a row per run for those with many different values."""
    said = [(label, {fact.name: fact.text for fact in facts}) for label, facts in runs]
    names = dict.fromkeys(name for _, named in said for name in named)
    own = [name for name in names if len({named.get(name) for _, named in said}) > _MOST_VARIANTS]
    shared = [(label, [fact for fact in facts if fact.name not in own]) for label, facts in runs]
    rows = ([label, *(named.get(name, "") for name in own)] for label, named in said)
    return merge_facts(shared), build_table(("Run", *own), rows, in_words=own) if own else None


def merge_texts(runs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    said = [(label, [Fact(name="", text=text) for text in texts if text]) for label, texts in runs]
    return [fact.text for fact in merge_facts(said)]


def join_tables(runs: Sequence[GpuTable | RunTable]) -> list[tuple[str, Table]]:
    """Return labelled tables, merged if all have one row and the same columns."""
    tables = [run.table for run in runs]
    if len(runs) == 1 or len({each.columns for each in tables}) != 1 or any(len(each.rows) != 1 for each in tables):
        return [(run.label, run.table) for run in runs]
    heads = [each.rows[0].head.text for each in tables]
    several = len({*heads}) > 1
    rows = tuple(
        replace(run.table.rows[0], head=Cell(text=run.label, small=head if several else ""))
        for run, head in zip(runs, heads, strict=True)
    )
    notes = tuple(merge_texts([(run.label, run.table.notes) for run in runs]))
    columns = ("Run" if several else f"Run, {heads[0]}", *tables[0].columns[1:])
    return [("", replace(tables[0], columns=columns, rows=rows, notes=notes))]


def _gpu_time(report: Report) -> Iterator[Block]:
    part, title = report.comparison, "Every run" if report.several else "GPU time in figures"
    if part:
        # charts of groups by two settings show fewer figures than the table
        table = part.estimates if part.grouped else None
        yield Block(forms=Form.PAGE, anchor="runs", title=title, texts=[part.legend], charts=part.charts, table=table)
        # paper has no charts
        on_paper = any(cell.small for row in part.estimates.rows for cell in row.cells)
        yield Block(forms=Form.TEXT | Form.PAPER if on_paper else Form.TEXT, title=title, table=part.estimates)
        yield Block(forms=Form.SHEET, table=None if table else part.estimates)
        title = "GPU time by class"
    yield Block(anchor="" if part else "runs", title=title, level=3 if part else 2, table=report.gpu_time_table)


def _gpus(report: Report) -> Iterator[Block]:
    several = report.several
    apart = [(run.label if several else "", line) for run in report.gpus for line in run.outliers]
    yield Block(
        forms=Form.EVERY_PAGE,
        anchor="gpus",
        title="Per GPU",
        warnings=[join(*each, by=": ") for each in apart] if report.gpus else ["No GPU was recorded."],
        texts=merge_texts([(run.label, [run.same]) for run in report.gpus if not run.outliers]),
    )
    is_long = (count := sum(len(run.table.rows) for run in report.gpus)) > _MOST_ROWS
    for label, table in join_tables(report.gpus):
        forms = Form.FULL if is_long else Form.EVERY_PAGE
        yield Block(forms=forms, title=label if several else "", level=3, table=table)
    if is_long:
        yield Block(forms=Form.PAPER, texts=[f"Use --detail full to see all {count} rows."])
    for title, tables in (("Reasons for lowered clocks", report.clocks), ("Stages", report.stages)):
        for label, table in join_tables(tables):
            yield Block(title=title, label=label if several else "", level=3, table=table)


def _not_assessed(judgement: Judgement) -> Iterator[Block]:
    columns = ("Not assessed", "Why", "Needs")
    rows = [
        (Cell(text=", ".join(line.kinds), small=line.where), line.reason, line.recording) for line in judgement.lines
    ]
    table = build_table(columns, rows, in_words=columns)
    instead = " If gpureport cannot be installed, run this instead:" if judgement.command else ""
    yield Block(
        forms=Form.MARKDOWN | Form.EVERY_PAGE,
        anchor="not-assessed",
        title="What could not be checked",
        texts=[judgement.sentence, judgement.advice + instead],
        code=list(filter(None, (judgement.command, *judgement.other_commands))),
    )
    limits = [Fact(name="", text=limit) for limit in judgement.limits]
    yield Block(forms=Form.EVERY_PAGE, table=table if rows else None, facts=limits)


def _answers(answers: Sequence[Answers], *, several: bool) -> Block:
    held = group_pairs(((line.outcome, line.title, line.group), line) for run in answers for line in run.lines)
    kinds: dict[str, list[str]] = {outcome: [] for outcome in Outcome}
    for (outcome, title, group), lines in held.items():
        about = [group, "in part" if lines[0].reason and lines[0].cards else ""]
        about += lines[0].cards if not several else [f"{len(lines)} runs"] if len(lines) < len(answers) else []
        kinds[outcome].append(f"{title} ({join(*about, by=', ')})" if any(about) else title)
    words = {line.outcome: raise_first(line.outcome_text) for run in answers for line in run.lines}
    # checks that were not assessed are in another table
    shown = {outcome: named for outcome, named in kinds.items() if named and outcome != Outcome.CANNOT_JUDGE}
    facts = [Fact(name=words[outcome], text=", ".join(named)) for outcome, named in shown.items()]
    texts = [] if several else [f"{run.summary}." for run in answers]
    return Block(title="Every check", level=3, texts=texts, facts=facts)


def _checklist(report: Report) -> Iterator[Block]:
    held = group_pairs((run.lines, run.label) for run in reversed(report.checklists))
    shown: set[object] = set()
    for lines, labels in held.items():
        new = [line for line in lines if line not in shown]
        said = [(f"{line.state_text}: {line.reason}", line.recording and f"Needs {line.recording}.") for line in new]
        facts = [Fact(name=line.title, text=join(*each, by=". ")) for line, each in zip(new, said, strict=True)]
        whose = list_labels(labels[::-1]) if len(report.checklists) > 1 else ""
        if shown:
            yield Block(title=whose, level=4, facts=facts)
        else:
            yield Block(anchor="checklist", title="Checklist", label=whose, facts=facts)
        shown.update(lines)


def _quality(report: Report) -> Iterator[Block]:
    runs, several = report.quality, report.several
    facts, table = split_facts([(run.label, run.facts) for run in runs])
    notes, forms = merge_texts([(run.label, run.notes) for run in runs]), Form.EVERY_PAGE
    yield Block(forms=forms, anchor="quality", title="Data quality", warnings=notes, facts=facts)
    yield Block(forms=Form.FULL, table=table)
    for run in runs:
        told = [
            Fact(name="", text=text) for text in (*(event.sentence for event in run.events), run.more_events) if text
        ]
        yield Block(forms=forms, title="Events in the log", label=run.label if several else "", level=3, facts=told)


def _method(report: Report, words: str) -> Iterator[Block]:
    method, told = report.method, {row.title for row in report.rows}
    paper, made = Form.PAGE | Form.PAPER, "This report was made with"
    terms = [fact for fact in method.definitions if fact.name.lower() in words]
    yield Block(forms=paper, anchor="method", title="Method", texts=[made], code=[method.command])
    yield Block(forms=paper, facts=method.versions)
    yield Block(forms=Form.PAGE, title="Inputs", level=3, table=method.inputs)
    yield Block(forms=Form.PAGE, title="What the words mean", level=3, facts=terms)
    kinds = [fact for fact in method.kinds if fact.name in told]
    more = ["gpureport explain CHECK --detail full shows a check's condition and limits."] if kinds else []
    yield Block(forms=Form.PAGE, title="When this is found", level=3, texts=more, facts=kinds)
