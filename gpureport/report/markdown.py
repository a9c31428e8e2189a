"""The report as Markdown for a merge request or a job summary: the result, figures, findings and what is missing.

Text from logs is escaped, so that names cannot become markup.
"""

import re
from collections.abc import Iterable, Iterator

from gpureport.report import display
from gpureport.report.comparison_parts import ComparisonPart
from gpureport.report.model import Report
from gpureport.report.parts import FindingCard, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$@])")
_LISTED = 20


def render(report: Report) -> str:
    """Return the report as Markdown, without figures and without the method's tables."""
    return "\n".join(_lines(report)) + "\n"


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _lines(report: Report) -> Iterator[str]:
    yield from (f"# {_safe(report.verdict.sentence)}", "", f"{_safe(report.title)} · {_safe(report.subtitle)}", "")
    yield from (f"- {_safe(detail)}" for detail in report.verdict.details)
    yield ""
    if report.policy:
        yield from ("## Limits", "", *_table(report.policy), "", _safe(report.policy.note), "")
    yield from _rows(("Figure", "Value", ""), ((tile.label, tile.value, tile.context) for tile in report.tiles))
    if report.steps:
        yield from ("", "## Step by step", "", *_table(report.steps), "", _safe(report.steps.note))
    if report.comparison:
        yield from _compared(report.comparison)
    if report.gpu_time:
        yield from ("", "## Where the GPU-hours went", "")
        bars = (bar for bar in report.gpu_time if bar.whole)
        parts = ((bar.label, part.label, part.text, part.hours) for bar in bars for part in bar.parts)
        yield from _rows(("Bar", "Class", "Share", "GPU time"), parts)
    yield from _tables(report)
    yield from ("", "## Findings", "", *([_safe(report.order), ""] if report.findings else []))
    for card in report.findings[:_LISTED]:
        yield from _card(card)
    if len(report.findings) > _LISTED:
        yield from (f"The full report holds {display.plural(len(report.findings) - _LISTED, 'more finding')}.", "")
    if not report.findings:
        yield from (f"No finding. {_safe(report.judgement.sentence)}", "")
    yield from _checklists(report)
    yield from _events(report)
    yield from _not_judged(report)
    for asked in report.answers:
        label = f"{asked.label}: " if len(report.answers) > 1 else ""
        yield from ("", _safe(f"{label}{asked.summary}."))
    yield from ("", f"gpureport {_safe(report.version)}, made with {_code(report.method.command)}")


def _tables(report: Report) -> Iterator[str]:
    """Yield stages, what held the clocks, and energy and cost, run by run."""
    for run in report.stages:
        label = f", {_safe(run.label)}" if len(report.quality) > 1 else ""
        yield from ("", f"## Stages{label}", "", *_table(run.table), "", _safe(run.table.note))
    for clocks in report.clocks:
        label = f", {_safe(clocks.label)}" if len(report.quality) > 1 else ""
        yield from ("", f"## What held the clocks{label}", "", *_table(clocks.table), "", _safe(clocks.table.note))
    for spent in report.spending:
        label = f", {_safe(spent.label)}" if len(report.quality) > 1 else ""
        yield from ("", f"## Energy and cost{label}", "")
        yield from (f"- {_safe(f'{fact.name}: {fact.text}')}" for fact in spent.facts)


def _compared(part: ComparisonPart) -> Iterator[str]:
    """Yield what all steps together say, what is still lost, and what became of findings."""
    facts = [*part.across, *part.remaining]
    if facts:
        yield from ("", "## What is still lost", "")
        yield from (f"- {_safe(f'{fact.name}: {fact.text}')}" for fact in facts)
    if any(link.findings for link in part.links):
        yield from ("", "## What became of findings", "")
    for link in part.links:
        yield from (f"- {_safe(f'{link.label}: {fact.name}: {fact.text}')}" for fact in link.findings)


def _code(text: str) -> str:
    """Return text as code; a backtick inside would end it."""
    plain = text.replace("`", "'")
    return f"`{plain}`"


def _card(card: FindingCard) -> Iterator[str]:
    yield f"**{card.id} {card.severity}: {_safe(card.title)}**, {_safe(card.lost)}"
    if card.root:
        yield f"- Follows from {card.root}"
    yield f"- {_safe(card.summary)}"
    for line in card.evidence:
        limit = f" ({line.limit}; {line.source})" if line.limit else ""
        yield f"- {_safe(f'{line.quantity}: {line.observed}{limit}')}"
    yield from (f"- Do this: {_safe(text)}" for text in card.recommendations)
    yield f"- Where: {_safe('; '.join(filter(None, [card.run, card.where])))}"
    yield ""


def _checklists(report: Report) -> Iterator[str]:
    """Yield the questions of the practice with their answers, for the last run."""
    for run in report.checklists[-1:]:
        label = f", {_safe(run.label)}" if len(report.checklists) > 1 else ""
        rows = ((line.title, line.state, "; ".join(filter(None, (line.reason, line.recording)))) for line in run.lines)
        yield from (f"## Checklist{label}", "", *_rows(("Question", "Answer", "Why"), rows), "")


def _events(report: Report) -> Iterator[str]:
    """Yield what the logs say happened."""
    runs = [run for run in report.quality if run.events]
    if not runs:
        return
    yield from ("## What the log says happened", "")
    several = len(report.quality) > 1
    for run in runs:
        yield from (f"- {_safe(f'{run.label}: ' * several + event.sentence)}" for event in run.events)
        if run.more_events:
            yield f"- {_safe(run.more_events)}"
    yield ""


def _not_judged(report: Report) -> Iterator[str]:
    yield from ("## What could not be judged", "", _safe(report.judgement.sentence), "")
    lines = report.judgement.lines
    if lines:
        rows = ((", ".join(line.kinds), line.reason, line.recording) for line in lines)
        yield from _rows(("Kinds", "Why", "Record this to know"), rows)
    if report.judgement.command:
        yield from ("", f"To record all of these: {_code(report.judgement.command)}")
    if report.judgement.limits:
        yield from ("", *(f"- {_safe(limit)}" for limit in report.judgement.limits))


def _table(table: Table) -> Iterator[str]:
    rows = ((row.head.text, *(f"{cell.text} {cell.small}".strip() for cell in row.cells)) for row in table.rows)
    yield from _rows(table.columns, rows)


def _rows(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    titles = list(columns)
    yield f"| {' | '.join(map(_safe, titles))} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(map(_safe, row))} |"
