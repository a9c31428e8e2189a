"""The report as Markdown for a merge request or a job summary: the result, figures, findings and what is missing.

Text from logs is escaped, so that names cannot become markup.
"""

from collections.abc import Iterator, Sequence

from gpureport.report.formats.text.markdown_syntax import escape, escape_line_start, inline_code, table_lines
from gpureport.report.formats.text.markdown_trimming import (
    ALWAYS,
    FINDINGS,
    GAINS,
    LAST,
    MIDDLE,
    MarkdownPart,
    trim_to_size,
)
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.gain_table import GainRow, GainTable
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Cell, Fact, ReportSection, Table
from gpureport.report.runs import gpu_time
from gpureport.report.sections.merging.joined_tables import join_single_row_tables
from gpureport.report.sections.merging.plain_sections import (
    list_comparison_sections,
    list_pair_sections,
    list_plain_sections,
)
from gpureport.report.sections.merging.shared_facts import list_facts, merge_notes
from gpureport.report.wording import display

LIMIT = 60_000
"""Most bytes: a job summary shares 1 MiB with others, and a comment takes 65 536 characters."""

_COMMAND = 500


def render(report: Report) -> str:
    """Return the report as Markdown, without figures and without the method's tables, cut to `LIMIT` bytes."""
    return trim_to_size(list(_parts(report)), LIMIT)


def _parts(report: Report) -> Iterator[MarkdownPart]:
    """Yield the report from top to bottom, each part with how dear it is."""
    yield MarkdownPart("the result", ALWAYS, tuple(_head_lines(report)))
    if report.comparison and report.comparison.gains:
        yield MarkdownPart("the table of gains", GAINS, tuple(_gain_lines(report.comparison.gains)))
    study = report.comparison.study if report.comparison else ()
    yield from (_section_part(section, ALWAYS) for section in study)
    if report.steps:
        heading = escape(report.steps_heading)
        lines = ("", f"## {heading}", "", *_table(report.steps), "", escape(report.steps.note))
        yield MarkdownPart(display.lower_first(heading), MIDDLE, lines)
    if report.comparison:
        sections = (section for section in list_comparison_sections(report.comparison) if section not in study)
        yield from (_section_part(section, MIDDLE) for section in sections)
    if report.gpu_time:
        yield MarkdownPart("where the GPU-hours went", MIDDLE, tuple(_gpu_time_lines(report)))
    yield from (_section_part(section, LAST) for section in list_plain_sections(report))
    yield from _findings(report)
    for pair in report.comparison.links if report.comparison else ():
        parts = [_section_part(section, LAST) for section in list_pair_sections(pair)]
        yield MarkdownPart(escape(pair.label), LAST, tuple(line for part in parts for line in part.lines))
    yield MarkdownPart("the checklist", LAST, tuple(_checklists(report)))
    yield from _gpu_parts(report)
    yield _section_part(ReportSection(heading="Data quality", facts=list_facts(report.quality)), LAST)
    yield MarkdownPart("notes on the data", MIDDLE, tuple(_notes(report)))
    yield MarkdownPart("events of the log", MIDDLE, tuple(_events(report)))
    yield MarkdownPart("", ALWAYS, ("## What could not be judged", "", escape(report.judgement.sentence), ""))
    yield MarkdownPart("why kinds could not be judged", MIDDLE, tuple(_not_judged(report)))
    yield MarkdownPart("how many kinds had which result", LAST, tuple(_answer_summaries(report)))
    command = display.shorten(report.method.command, _COMMAND)
    yield MarkdownPart("", ALWAYS, ("", f"gpureport {escape(report.version)}, made with {inline_code(command)}"))


def _gpu_parts(report: Report) -> Iterator[MarkdownPart]:
    """Yield the GPUs of each run side by side, and what sets one apart."""
    for run in join_single_row_tables(report.gpus):
        label = run.label if len(report.quality) > 1 else ""
        facts = tuple(Fact(name="", text=text) for text in run.outliers or filter(None, (run.same,)))
        yield _section_part(ReportSection(heading="Per GPU", label=label, table=run.table, facts=facts), LAST)


def _notes(report: Report) -> Iterator[str]:
    """Yield what else a reader must know of the data."""
    notes = merge_notes(report.quality)
    yield from ("", *(f"- {escape(': '.join(filter(None, (note.runs, note.text))))}" for note in notes), "")


def _title(section: ReportSection) -> str:
    return ", ".join(filter(None, (section.heading, section.label)))


def _section_part(section: ReportSection, rank: int) -> MarkdownPart:
    title = _title(section)
    return MarkdownPart(escape(display.lower_first(title)), rank, tuple(_section_lines(section, title)))


def _head_lines(report: Report) -> Iterator[str]:
    first, further = display.headline(report.verdict.sentence)
    yield from (f"# {escape(first)}", "", f"{escape_line_start(report.title)} · {escape(report.subtitle)}", "")
    yield from ([f"- {escape(further)}"] if further else [])
    yield from (f"- {escape(detail)}" for detail in report.verdict.details)
    yield ""
    if report.policy:
        yield from ("## Limits", "", *_table(report.policy), "", escape(report.policy.note), "")
    yield from table_lines(("Figure", "Value", ""), ((tile.label, tile.value, tile.context) for tile in report.tiles))


def _gain_lines(gains: GainTable) -> Iterator[str]:
    """Yield the table of gains, its words in columns of their own."""
    names = list(dict.fromkeys(fact.name for row in gains.rows for fact in row.facts))
    yield from ("", "## Table of gains", "")
    yield from table_lines((*gains.columns, *names), (_gain_cells(row, names) for row in gains.rows))
    yield ""
    yield from ([f"- {escape(f'Potential: {gains.potential}')}"] if gains.potential else [])
    yield from (f"- {escape(note)}" for note in gains.notes)


def _gain_cells(row: GainRow, names: Sequence[str]) -> tuple[str, ...]:
    facts = {fact.name: fact.text for fact in row.facts}
    figures = ("\n".join(filter(None, (cell.text, cell.interval, cell.verdict))) for cell in row.cells)
    return (_cell_text(row.head), *figures, *(facts.get(name, "") for name in names))


def _gpu_time_lines(report: Report) -> Iterator[str]:
    yield from ("", "## Where the GPU-hours went", "")
    bars = [bar for bar in report.gpu_time if bar.whole]
    if len(report.gpu_time) > 1 and report.gpu_time_table:
        yield from _table(report.gpu_time_table)
        return
    parts = [(part.label, part.text, part.hours) for bar in bars for part in bar.parts]
    parts += [(gpu_time.NO_JOB, "not counted", bar.no_job) for bar in bars if bar.no_job]
    yield from table_lines(("Class", "Share", "GPU time"), parts)


def _findings(report: Report) -> Iterator[MarkdownPart]:
    first = escape(report.order) if report.findings else f"No finding. {escape(report.judgement.sentence)}"
    yield MarkdownPart("", ALWAYS, ("", "## Findings", "", first, ""))
    for card in report.findings:
        yield MarkdownPart(card.id, FINDINGS, tuple(_card_lines(card)))


def _answer_summaries(report: Report) -> Iterator[str]:
    for asked in report.answers:
        label = f"{asked.label}: " if len(report.answers) > 1 else ""
        yield from ("", escape_line_start(f"{label}{asked.summary}."))


def _section_lines(section: ReportSection, title: str) -> Iterator[str]:
    yield from ("", f"## {escape(title)}", "")
    if section.table:
        yield from (*_table(section.table), "", escape(section.table.note))
    yield from (f"- {escape(': '.join(filter(None, (fact.name, fact.text))))}" for fact in section.facts)


def _card_lines(card: FindingCard) -> Iterator[str]:
    # a hyphen right below a line would make a heading of it
    if card.repeats:
        told = f"as {card.repeats}, {card.lost}; {card.run}; {card.where}"
        yield from (f"**{card.id} {card.severity}** {escape(told)}", "")
        return
    yield from (f"**{card.id} {card.severity}: {escape(card.title)}**, {escape(card.lost)}", "")
    if card.root:
        yield f"- Follows from {card.root}"
    yield from (f"- {escape(text)}" for text in filter(None, (card.summary,)))
    for line in card.evidence:
        limit = f" ({line.limit}; {line.source})" if line.limit else ""
        yield f"- {escape(f'{line.quantity}: {line.observed}{limit}')}"
    yield from (f"- Do this: {escape(text)}" for text in card.recommendations)
    if card.steps:
        yield f"- Steps: {escape('; '.join(step.title for step in card.steps))}"
    if card.ruled_out:
        yield f"- Ruled out: {escape('; '.join(card.ruled_out))}"
    yield f"- Where: {escape('; '.join(filter(None, [card.run, card.where])))}"
    yield f"- Confidence: {escape('; '.join([card.confidence, *([] if card.is_open else [card.status])]))}"
    yield ""


def _checklists(report: Report) -> Iterator[str]:
    """Yield the questions of the practice with their answers, for the last run."""
    for run in report.checklists[-1:]:
        label = f", {escape(run.label)}" if len(report.checklists) > 1 else ""
        rows = ((line.title, line.state, "; ".join(filter(None, (line.reason, line.recording)))) for line in run.lines)
        yield from (f"## Checklist{label}", "", *table_lines(("Question", "Answer", "Why"), rows), "")


def _events(report: Report) -> Iterator[str]:
    """Yield what the logs say happened."""
    runs = [run for run in report.quality if run.events]
    if not runs:
        return
    yield from ("## What the log says happened", "")
    several = len(report.quality) > 1
    for run in runs:
        yield from (f"- {escape(f'{run.label}: ' * several + event.sentence)}" for event in run.events)
        if run.more_events:
            yield f"- {escape(run.more_events)}"
    yield ""


def _not_judged(report: Report) -> Iterator[str]:
    lines = report.judgement.lines
    if lines:
        rows = (
            (f"{', '.join(line.kinds)}{line.where and f' ({line.where})'}", line.reason, line.recording)
            for line in lines
        )
        yield from table_lines(("Kinds", "Why", "Record this to know"), rows)
    if report.judgement.command:
        yield from ("", f"To record all of these: {inline_code(report.judgement.command)}")
    if report.judgement.limits:
        yield from ("", *(f"- {escape(limit)}" for limit in report.judgement.limits))


def _table(table: Table) -> Iterator[str]:
    rows = ((row.head.text, *(_cell_text(cell) for cell in row.cells)) for row in table.rows)
    yield from table_lines(table.columns, rows)


def _cell_text(cell: Cell) -> str:
    return f"{cell.text}\n{cell.small}" if cell.text and cell.small else cell.text or cell.small
