"""The report as Markdown for a merge request or a job summary: the result, figures, findings and what is missing.

Text from logs is escaped, so that names cannot become markup.
"""

from collections.abc import Iterator

from gpureport.report.formats.text.markdown_parts import FINDINGS, KEPT, LAST, MIDDLE, Part, fitted
from gpureport.report.formats.text.markdown_text import code, grid, opening, safe
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.content import Report
from gpureport.report.model.parts import Cell, FindingCard, Table
from gpureport.report.runs import gpu_time
from gpureport.report.sections.merging import joined_tables, shared_facts
from gpureport.report.wording import display

LIMIT = 20_000
"""Most bytes: a job summary shares 1 MiB with others, a comment takes 65 536 characters, and a person reads less."""

_COMMAND = 500


def render(report: Report) -> str:
    """Return the report as Markdown, without figures and without the method's tables, cut to `LIMIT` bytes."""
    return fitted(list(_parts(report)), LIMIT)


def _parts(report: Report) -> Iterator[Part]:
    """Yield the report from top to bottom, each part with how dear it is."""
    yield Part("the result", KEPT, tuple(_head(report)))
    if report.steps:
        lines = ("", "## Step by step", "", *_table(report.steps), "", safe(report.steps.note))
        yield Part("step by step", MIDDLE, lines)
    if report.comparison:
        yield Part("what became of findings", LAST, tuple(_compared(report.comparison)))
    if report.gpu_time:
        yield Part("where the GPU-hours went", MIDDLE, tuple(_hours(report)))
    for name, table in _tables(report):
        yield Part(name, LAST, tuple(table))
    yield from _findings(report)
    yield Part("the checklist", LAST, tuple(_checklists(report)))
    yield Part("events of the log", MIDDLE, tuple(_events(report)))
    yield Part("", KEPT, ("## What could not be judged", "", safe(report.judgement.sentence), ""))
    yield Part("why kinds could not be judged", MIDDLE, tuple(_not_judged(report)))
    yield Part("how many kinds became what", LAST, tuple(_answered(report)))
    command = display.shorten(report.method.command, _COMMAND)
    yield Part("", KEPT, ("", f"gpureport {safe(report.version)}, made with {code(command)}"))


def _head(report: Report) -> Iterator[str]:
    first, further = display.headline(report.verdict.sentence)
    yield from (f"# {safe(first)}", "", f"{opening(report.title)} · {safe(report.subtitle)}", "")
    yield from ([f"- {safe(further)}"] if further else [])
    yield from (f"- {safe(detail)}" for detail in report.verdict.details)
    yield ""
    if report.policy:
        yield from ("## Limits", "", *_table(report.policy), "", safe(report.policy.note), "")
    yield from grid(("Figure", "Value", ""), ((tile.label, tile.value, tile.context) for tile in report.tiles))


def _hours(report: Report) -> Iterator[str]:
    yield from ("", "## Where the GPU-hours went", "")
    bars = [bar for bar in report.gpu_time if bar.whole]
    if len(bars) > 1 and report.gpu_time_table:
        yield from _table(report.gpu_time_table)
        return
    parts = [(part.label, part.text, part.hours) for bar in bars for part in bar.parts]
    parts += [(gpu_time.NO_JOB, "not counted", bar.no_job) for bar in bars if bar.no_job]
    yield from grid(("Class", "Share", "GPU time"), parts)


def _findings(report: Report) -> Iterator[Part]:
    first = safe(report.order) if report.findings else f"No finding. {safe(report.judgement.sentence)}"
    yield Part("", KEPT, ("", "## Findings", "", first, ""))
    for card in report.findings:
        yield Part(card.id, FINDINGS, tuple(_card(card)))


def _answered(report: Report) -> Iterator[str]:
    for asked in report.answers:
        label = f"{asked.label}: " if len(report.answers) > 1 else ""
        yield from ("", opening(f"{label}{asked.summary}."))


def _tables(report: Report) -> Iterator[tuple[str, list[str]]]:
    """Yield stages and what held the clocks, run by run, and energy and cost, each with its name."""
    for run in report.stages:
        label = f", {safe(run.label)}" if len(report.quality) > 1 else ""
        yield f"stages{label}", ["", f"## Stages{label}", "", *_table(run.table), "", safe(run.table.note)]
    held = joined_tables.join_single_row_tables(report.clocks)
    for clocks in held:
        # one table for all runs names them in its rows
        named = len(report.quality) > 1 and len(held) == len(report.clocks)
        label = f", {safe(clocks.label)}" if named else ""
        lines = ["", f"## What held the clocks{label}", "", *_table(clocks.table), "", safe(clocks.table.note)]
        yield f"what held the clocks{label}", lines
    if report.spending:
        facts = (f"- {safe(f'{fact.name}: {fact.text}')}" for fact in shared_facts.list_facts(report.spending))
        yield "energy and cost", ["", "## Energy and cost", "", *facts]


def _compared(part: ComparisonPart) -> Iterator[str]:
    """Yield what all steps together say, what is still lost, and what became of findings."""
    facts = [*part.across, *part.remaining]
    if facts:
        yield from ("", "## What is still lost", "")
        yield from (f"- {safe(f'{fact.name}: {fact.text}')}" for fact in facts)
    if any(link.findings for link in part.links):
        yield from ("", "## What became of findings", "")
    for link in part.links:
        yield from (f"- {safe(f'{link.label}: {fact.name}: {fact.text}')}" for fact in link.findings)


def _card(card: FindingCard) -> Iterator[str]:
    # a hyphen right below a line would make a heading of it
    if card.repeats:
        told = f"as {card.repeats}, {card.lost}; {card.run}; {card.where}"
        yield from (f"**{card.id} {card.severity}** {safe(told)}", "")
        return
    yield from (f"**{card.id} {card.severity}: {safe(card.title)}**, {safe(card.lost)}", "")
    if card.root:
        yield f"- Follows from {card.root}"
    yield from (f"- {safe(text)}" for text in filter(None, (card.summary,)))
    for line in card.evidence:
        limit = f" ({line.limit}; {line.source})" if line.limit else ""
        yield f"- {safe(f'{line.quantity}: {line.observed}{limit}')}"
    yield from (f"- Do this: {safe(text)}" for text in card.recommendations)
    yield f"- Where: {safe('; '.join(filter(None, [card.run, card.where])))}"
    yield ""


def _checklists(report: Report) -> Iterator[str]:
    """Yield the questions of the practice with their answers, for the last run."""
    for run in report.checklists[-1:]:
        label = f", {safe(run.label)}" if len(report.checklists) > 1 else ""
        rows = ((line.title, line.state, "; ".join(filter(None, (line.reason, line.recording)))) for line in run.lines)
        yield from (f"## Checklist{label}", "", *grid(("Question", "Answer", "Why"), rows), "")


def _events(report: Report) -> Iterator[str]:
    """Yield what the logs say happened."""
    runs = [run for run in report.quality if run.events]
    if not runs:
        return
    yield from ("## What the log says happened", "")
    several = len(report.quality) > 1
    for run in runs:
        yield from (f"- {safe(f'{run.label}: ' * several + event.sentence)}" for event in run.events)
        if run.more_events:
            yield f"- {safe(run.more_events)}"
    yield ""


def _not_judged(report: Report) -> Iterator[str]:
    lines = report.judgement.lines
    if lines:
        rows = ((", ".join(line.kinds), line.reason, line.recording) for line in lines)
        yield from grid(("Kinds", "Why", "Record this to know"), rows)
    if report.judgement.command:
        yield from ("", f"To record all of these: {code(report.judgement.command)}")
    if report.judgement.limits:
        yield from ("", *(f"- {safe(limit)}" for limit in report.judgement.limits))


def _table(table: Table) -> Iterator[str]:
    rows = ((row.head.text, *(_told(cell) for cell in row.cells)) for row in table.rows)
    yield from grid(table.columns, rows)


def _told(cell: Cell) -> str:
    return f"{cell.text}\n{cell.small}" if cell.text and cell.small else cell.text or cell.small
