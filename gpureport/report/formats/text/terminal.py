"""The report as text for a terminal or a pipe."""

from collections.abc import Iterator, Sequence

from gpureport.report.formats.text import (
    follow_up,
    terminal_advice,
    terminal_bars,
    terminal_gains,
    terminal_head,
    terminal_overview,
    terminal_screen,
    terminal_tables,
    terminal_timeline,
)
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.report_content import NotJudgedLine, Report
from gpureport.report.model.time_charts import ClassShare, TimeBar
from gpureport.report.runs import gpu_time
from gpureport.report.sections.merging import join_single_row_tables, list_plain_sections
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page, render_lines

_LABEL = 24


def render(
    report: Report, width: int = 80, *, colour: bool = False, ascii_only: bool = False, full: bool = True
) -> str:
    """Return the report as text.

    Args:
        report: the content.
        width: columns to fill.
        colour: whether headings and severities may carry escape codes.
        ascii_only: whether nothing but ASCII may be used, for terminals without other characters.
        full: whether everything is shown; else one screen of it.
    """
    page = Page(width=width, ascii=ascii_only)
    lines = _lines(report, page) if full else terminal_screen.screen_lines(report, page)
    return render_lines(lines, colour=colour, ascii_only=ascii_only)


def _lines(report: Report, page: Page) -> Iterator[Line]:
    yield from terminal_head.head_lines(report, page)
    yield from terminal_overview.overview_lines(report, page)
    if report.policy:
        yield from page.heading("Rules")
        yield from terminal_tables.block_lines(report.policy, page)
    if report.comparison and report.comparison.gains:
        yield from terminal_gains.gain_lines(report.comparison.gains, page)
    if report.steps:
        yield from page.heading(report.steps_heading)
        yield from terminal_tables.block_lines(report.steps, page)
    if report.comparison:
        yield from terminal_tables.comparison_lines(report.comparison, page)
    if report.gpu_time:
        yield from page.heading("Where the GPU time went")
        yield from _bars(report.gpu_time, page)
    yield from _findings(report, page)
    yield from terminal_advice.checklist_lines(report.checklists, page)
    yield from terminal_timeline.timeline_lines(report.timeline, page)
    yield from _gpus(report, page)
    for section in list_plain_sections(report):
        yield from terminal_tables.section_lines(section, page)
    yield from _quality(report, page)
    yield from _not_judged(report, page)
    yield from terminal_advice.answer_lines(report.answers, page)
    yield from follow_up.report_lines(report.method.command, page)


def _bars(bars: Sequence[TimeBar], page: Page) -> Iterator[Line]:
    signs = terminal_bars.class_signs(page)
    label = min(max(display.terminal_width(bar.label) for bar in bars), _LABEL)
    length = max(page.width - label - 16, 20)
    for bar in bars:
        cells = "".join(
            signs.get(part.key, "+") * count
            for part, count in zip(
                bar.parts, terminal_bars.count_cells([part.ratio for part in bar.parts], length), strict=True
            )
        )
        yield Line(f"  {page.column(bar.label, label)} {cells} {bar.total}")
    names = (f"{signs.get(key, '+')} {name}" for key, name in gpu_time.class_labels(bars).items())
    yield from page.wrapped("   ".join(names), label + 3, style="soft")
    for bar in bars:
        beside = f"; not counted: {bar.no_job} without a job" if bar.no_job else ""
        yield from page.wrapped(f"{bar.label}: {', '.join(map(_describe_share, bar.parts))}{beside}", 2)


def _describe_share(part: ClassShare) -> str:
    return f"{part.label} {part.text} ({'; '.join(filter(None, (part.hours, part.causes)))})"


def _findings(report: Report, page: Page) -> Iterator[Line]:
    yield from page.heading("Findings")
    text = report.order if report.findings else f"No finding. {report.judgement.sentence}"
    yield from page.wrapped(text, 2, style="soft" if report.findings else "")
    yield from terminal_overview.row_lines(report.rows, page)
    if report.rows:
        yield from page.heading("Each finding")
    for position, card in enumerate(report.findings):
        if position:
            yield Line()
        yield from _card(card, page)


def _card(card: FindingCard, page: Page) -> Iterator[Line]:
    if card.repeats:
        yield from page.wrapped(f"{card.id} {card.severity}: as {card.repeats}, {card.lost}", style=card.severity)
        yield from page.wrapped("; ".join(filter(None, [card.run, card.where])), 3, "Where")
        return
    yield from page.wrapped(f"{card.id} {card.severity}: {card.title}, {card.lost}", style=card.severity)
    if card.root:
        yield from page.wrapped(f"Follows from {card.root}.", 3)
    yield from page.wrapped(card.summary, 3)
    for position, line in enumerate(card.evidence):
        limit = f" ({line.limit}; {line.source})" if line.limit else ""
        name = "Evidence" if position == 0 else " "
        yield from page.wrapped(f"{line.quantity}: {line.observed}{limit}", 3, name)
    for position, text in enumerate(card.recommendations):
        yield from page.wrapped(text, 3, "Do this" if position == 0 else " ")
    yield from terminal_advice.step_lines(card.steps, page)
    if card.explains:
        yield from page.wrapped(f"{display.join_words(list(card.explains))}, shown beneath", 3, "Explains")
    yield from page.wrapped("; ".join(filter(None, [card.run, card.where])), 3, "Where")
    if card.ruled_out:
        yield from page.wrapped("; ".join(card.ruled_out), 3, "Ruled out")
    status = "" if card.is_open else f"; {card.status}"
    yield from page.wrapped(f"{card.confidence}{status}", 3, "Confidence")


def _gpus(report: Report, page: Page) -> Iterator[Line]:
    shown = join_single_row_tables(report.gpus)
    for run in shown:
        yield from page.heading("Per GPU", run.label if len(shown) > 1 else "")
        yield from terminal_tables.grid_lines(run.table, page, whole=True)
        if run.table.note:
            yield from page.wrapped(run.table.note, 2, style="soft")
        for text in run.outliers or filter(None, (run.same,)):
            yield from page.wrapped(text, 2)


def _quality(report: Report, page: Page) -> Iterator[Line]:
    for run in report.quality:
        yield from page.heading("Data quality", run.label if len(report.quality) > 1 else "")
        yield from terminal_tables.fact_lines(run.facts, page)
        for note in run.notes:
            yield from page.wrapped(note, 2, "Note")
        for place, event in enumerate(run.events):
            yield from page.wrapped(event.sentence, 2, "Events" if place == 0 else " ")
        if run.more_events:
            yield from page.wrapped(run.more_events, 2, " ")


def _not_judged(report: Report, page: Page) -> Iterator[Line]:
    yield from page.heading("What could not be judged")
    yield from page.wrapped(report.judgement.sentence, 2)
    for line in report.judgement.lines:
        yield from _not_judged_lines(line, page)
    if report.judgement.advice:
        yield Line()
        yield from page.wrapped(f"{report.judgement.advice} Where gpureport cannot be installed, run instead:", 2)
        for command in (report.judgement.command, *report.judgement.other_commands):
            yield Line(f"    {command}")
    for limit in report.judgement.limits:
        yield from page.wrapped(limit, 2)


def _not_judged_lines(line: NotJudgedLine, page: Page) -> Iterator[Line]:
    where = f" ({line.where})" if line.where else ""
    yield Line()
    yield from page.wrapped(f"{', '.join(line.kinds)}{where}: {line.reason}", 2)
    if line.recording:
        yield from page.wrapped(line.recording, 4, "Needs")
