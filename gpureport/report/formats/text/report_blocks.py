"""The content of a report as blocks, in the order in which a terminal and Markdown print them."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from gpureport.report.model.blocks import Block, Form, Series
from gpureport.report.model.comparison_parts import GainCell, GainTable
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.finding_rows import FindingRow
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import SignalHistory, TimeSpent, UseOverTime
from gpureport.report.model.report_content import Answers, Judgement, Report
from gpureport.report.model.shapes import Cell, Fact, ReportSection, Row, Table
from gpureport.report.model.time_charts import TimeBar, Timeline
from gpureport.report.sections.merging import (
    join_single_row_tables,
    list_comparison_sections,
    list_plain_sections,
    merge_checklists,
)
from gpureport.report.wording import display

_DOUBTS = 5
"""Doubts about comparisons that Markdown has at most."""

_SEVERITIES = {"problem": "problem", "warning": "warning", "info": ""}
"""What findings of each severity are counted in."""

_PAGE = "report.html"
_ONLY_THERE = {"-q", "--quiet", "-v", "--verbose", "--debug"}
_ONLY_THERE_WITH_VALUE = {"--format", "--detail"}
"""Options of a command that `gpureport report` does not have, that mean something else there, or of one call alone."""


def join(*texts: str, by: str = "; ") -> str:
    """Return the texts that are not empty."""
    return by.join(filter(None, texts))


def describe_change(change: Change | None) -> str:
    """Return a change with the step it is measured from, its interval and its verdict."""
    if change is None:
        return ""
    since = change.since and f"since {change.since}"
    return join(change.text, since, change.interval and f"({change.interval})", change.verdict, by=" ")


def list_blocks(report: Report) -> Iterator[Block]:
    """Yield the blocks of a report."""
    yield Block(forms=Form.ALL, part="details", head=report)
    yield Block(texts=report.verdict.notes)
    yield from _pictures(report)
    yield Block(forms=Form.ALL, part="actions", title="What to do next", actions=report.actions)
    if report.policy:
        yield from _rules(report.policy)
    if report.comparison and report.comparison.gains:
        yield from _gains(report.comparison.gains)
    if report.steps:
        yield Block(forms=Form.LONG, title=report.steps_heading, table=report.steps)
    yield from _comparison(report)
    yield _gpu_time(report.gpu_time)
    yield from _findings(report)
    yield from _timelines(report.timeline)
    for run in join_single_row_tables(report.gpus):
        yield Block(title="Per GPU", label=run.label, table=run.table, texts=run.outliers or (run.same,))
    yield from map(_section, list_plain_sections(report))
    for quality in report.quality:
        notes = [Fact(name="Note", text=note) for note in quality.notes]
        events = [Fact(name="Events", text=event.sentence) for event in quality.events]
        more = [Fact(name="Events", text=quality.more_events)] if quality.more_events else []
        yield Block(title="Data quality", label=quality.label, facts=[*quality.facts, *notes, *events, *more])
    yield from _not_judged(report.judgement)
    yield from map(_answers, report.answers)


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
        yield _use(report.use, Form.FULL if is_chain or has_spans else Form.SCREEN | Form.FULL)
        yield Block(texts=[report.use.caption, report.use.rest])
    heading = "First → last" if any(tile.change for tile in report.tiles) else "Key figures"
    forms = Form.LONG if has_spans else Form.ALL
    yield Block(forms=forms, part="tiles", title=heading, tiles=report.tiles)


def _spent(spent: TimeSpent) -> Iterator[Block]:
    """Yield the bars, then all that is said of each."""
    each, unit = shared_total(spent), spent.columns[0]
    if each:
        # the total of a GPU holds its unit, that of a step has it in the heading of its column
        unit = f"{each} {unit}" if unit else f"{each} each" if len(spent.bars) > 1 else each
    versus = "change from the previous step" if any(bar.change for bar in spent.bars) else ""
    yield Block(
        forms=Form.ALL,
        part="bars",
        title="Where the GPU time went",
        label=join(unit, versus, by=", "),
        texts=[spent.caption],
        bars=spent,
    )
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


def _use(use: UseOverTime, forms: Form) -> Block:
    longest = max(use.seconds, 1e-3)
    series = [
        Series(
            name=row.label,
            ends="0 to 100%",
            values=row.mean,
            note=join(row.small, row.total, row.text),
            share=len(row.mean) * row.bucket_seconds / longest,
        )
        for row in use.rows
    ]
    return Block(forms=forms, part="uses", title="GPU use over time", series=series)


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


def _gains(gains: GainTable) -> Iterator[Block]:
    rows = tuple(Row(head=row.head, cells=tuple(map(_gain_cell, row.cells))) for row in gains.rows)
    numeric = (True,) * (len(gains.columns) - 1)
    yield Block(
        title="Table of gains", table=Table(columns=gains.columns, numeric=numeric, rows=rows, notes=gains.notes)
    )
    yield Block(facts=_facts([("Potential", gains.potential)]))
    yield from (Block(title=row.head.text, style="heading", facts=row.facts) for row in gains.rows if row.facts)


def _gain_cell(cell: GainCell) -> Cell:
    return Cell(text=join(cell.text, cell.verdict, by=" "), small=cell.interval)


def _comparison(report: Report) -> Iterator[Block]:
    """Yield the study of groups and what makes comparisons doubtful, then all that is said of steps."""
    part = report.comparison
    if part is None:
        return
    yield from (_section(section, Form.MARKDOWN) for section in part.study)
    doubts = list(dict.fromkeys(doubt for pair in part.links for doubt in pair.doubts))[:_DOUBTS]
    yield Block(forms=Form.MARKDOWN, facts=[Fact(name="", text=doubt) for doubt in doubts])
    yield from map(_section, list_comparison_sections(part))


def _section(section: ReportSection, forms: Form = Form.FULL) -> Block:
    return Block(forms=forms, title=section.heading, label=section.label, table=section.table, facts=section.facts)


def _findings(report: Report) -> Iterator[Block]:
    found = Counter(each.severity for each in report.rows or report.findings)
    counted = ", ".join(
        display.plural(found[name], noun) if noun else f"{found[name]} {name}"
        for name, noun in _SEVERITIES.items()
        if found[name]
    )
    checks, *_ = report.judgement.sentence.split(". ")
    label = f"{counted or 'none'}. {checks.rstrip('.')}."
    yield Block(forms=Form.ALL, title="Findings", label=label)
    yield from (block for row in report.rows for block in _finding_row(row))
    yield Block(title="Each finding", texts=[report.order] if report.findings else [])
    yield from map(_card, report.findings)
    for each in reversed(merge_checklists(report.checklists)):
        lines = (
            Fact(name=name, text=text)
            for line in each.lines
            for name, text in (
                (line.state_text, f"{line.title}: {line.reason}"),
                ("", line.recording and f"Needs {line.recording}"),
            )
            if text
        )
        yield Block(title="Checklist", label=each.runs if len(report.checklists) > 1 else "", facts=tuple(lines))


def _finding_row(row: FindingRow) -> Iterator[Block]:
    facts = [("How much", join(row.extent, row.cost)), ("Do this", row.advice)]
    facts += [("Caveats", caveat) for caveat in row.caveats]
    facts += [("Confidence", row.confidence)]
    title = f"{row.id} {row.severity}: {row.title} ({row.kind}), {row.runs}"
    yield Block(forms=Form.LONG, title=title, style=row.severity, texts=[row.summary], facts=_facts(facts))
    if row.history:
        panels = [join(panel.label, panel.note, by=": ") for panel in row.history.panels]
        yield Block(facts=_facts([(row.history.title, text) for text in (row.history.caption, *panels)]))


def _facts(named: list[tuple[str, str]]) -> list[Fact]:
    return [Fact(name=name, text=text) for name, text in named if text]


def _card(card: FindingCard) -> Block:
    where = ("Where", join(card.run, card.where))
    if card.repeats:
        title = f"{card.id} {card.severity}: as {card.repeats}, {card.lost}"
        return Block(title=title, style=card.severity, facts=_facts([where]))
    facts = [
        ("Evidence", f"{line.quantity}: {line.observed}{f' ({line.limit}; {line.source})' if line.limit else ''}")
        for line in card.evidence
    ]
    facts += [("Do this", text) for text in card.recommendations]
    for place, step in enumerate(card.steps, 1):
        unknown = step.unknown and f"Not known: whether {step.unknown}."
        facts += [
            (f"Step {place}", f"{step.title}: {step.do}"),
            ("", join(f"When: {step.when}", unknown, f"Risk: {step.risk}", f"Check: {step.check}", by=" ")),
        ]
    explains = f"{display.join_words(list(card.explains))}, shown beneath" if card.explains else ""
    facts += [("Explains", explains), where, ("Ruled out", "; ".join(card.ruled_out))]
    facts += [("Confidence", join(card.confidence, "" if card.is_open else card.status))]
    return Block(
        title=f"{card.id} {card.severity}: {card.title}, {card.lost}",
        style=card.severity,
        texts=[card.root and f"Follows from {card.root}.", card.summary],
        facts=_facts(facts),
    )


def _gpu_time(bars: Sequence[TimeBar]) -> Block:
    facts = []
    for bar in bars:
        shares = (f"{part.label} {part.text} ({join(part.hours, part.causes)})" for part in bar.parts)
        no_job = bar.no_job and f"not counted: {bar.no_job} without a job"
        facts.append(Fact(name=bar.label, text=join(f"{bar.total}: {', '.join(shares)}", no_job)))
    return Block(title="GPU time in classes", facts=facts)


def _timelines(runs: Sequence[Timeline]) -> Iterator[Block]:
    for run in runs:
        series = [Series(name=strip.label, values=strip.coarse) for strip in run.strips]
        events = [event.at / max(run.seconds, 1e-3) for event in run.events if event.at is not None]
        yield Block(title="Timeline", label=run.label, series=series, texts=[run.absent], events=events)
    if any(run.strips for run in runs):
        text = "Height: mean GPU utilisation, 0 to 100% (blank: 0%, ?: not recorded)."
        yield Block(texts=[f"{text} ^: event of the log, listed under data quality."])


def _not_judged(judgement: Judgement) -> Iterator[Block]:
    yield Block(forms=Form.LONG, title="What could not be judged", texts=[judgement.sentence, judgement.advice])
    if judgement.command:
        words = "Where gpureport cannot be installed, run instead:"
        yield Block(texts=[words], code=[judgement.command, *judgement.other_commands])
    yield Block(texts=judgement.limits)
    for line in judgement.lines:
        title = join(", ".join(line.kinds), line.where and f"({line.where})", by=" ")
        needs = [Fact(name="Needs", text=line.recording)] if line.recording else []
        yield Block(title=title, style="heading", texts=[line.reason], facts=needs)


def _answers(run: Answers) -> Block:
    """Return what became of the checks: how many of each outcome, and which ones."""
    kinds: dict[str, list[str]] = {}
    for line in run.lines:
        cards = f" ({', '.join(line.cards)})" if line.cards else ""
        outcome = join(line.group, line.outcome_text, by=": ")
        kinds.setdefault(outcome, []).append(f"{line.kind}{cards}{' in part' if line.reason and line.cards else ''}")
    facts = [Fact(name=outcome, text=", ".join(found)) for outcome, found in kinds.items()]
    return Block(title="Every kind", label=run.label, texts=[f"{run.summary}."], facts=facts)


def build_report_command(command: str) -> list[str]:
    """Return the words of the command that writes the page of what a command read; none where it names no source."""
    try:
        program, verb, *arguments = (word for word in shlex.split(command) if word not in _ONLY_THERE)
    except ValueError:
        return []
    kept, waiting = [], iter(arguments if verb != "demo" else ())
    for argument in waiting:
        name, equals, _ = argument.partition("=")
        if name not in _ONLY_THERE_WITH_VALUE:
            # the ellipsis stands in the place of names left out
            kept.append(argument if argument == "…" else shlex.quote(argument))
        elif not equals:
            next(waiting, None)
    if program != "gpureport" or not (kept or verb == "demo"):
        return []
    return [program, "demo" if verb == "demo" else "report", *kept, "-o", _PAGE]
