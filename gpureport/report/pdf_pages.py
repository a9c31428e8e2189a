"""The report as a plain PDF, drawn with matplotlib alone: the same text and figures, without tags, links or outline."""

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO

from gpureport.report import charts, fonts, interval_charts, same_facts, side_by_side, strips
from gpureport.report.comparison_parts import ComparisonPart
from gpureport.report.model import Report
from gpureport.report.paper import INNER, PLAIN, QUIET, SMALL, STRONG, Hand, Paper, width
from gpureport.report.parts import Fact, FindingCard, Table

_TITLE, _HEADING, _PART = Hand(size=16, bold=True), Hand(size=12, bold=True), Hand(size=9, bold=True)
_HEAD = Hand(size=7.4, colour="#59636e")
_NAME = 96.0


def render(report: Report, date: int) -> bytes:
    """Return the report as a PDF file.

    Args:
        report: the content.
        date: when the file is dated, in seconds since 1970.

    Raises:
        RenderError: when fonts are missing.
    """
    drawable = fonts.characters(fonts.shipped()[:2])
    paper = Paper(drawable)
    _verdict(paper, report)
    if report.policy:
        _heading(paper, "Limits")
        _table(paper, report.policy)
        paper.write(report.policy.note, QUIET)
    if report.steps and report.comparison:
        _steps(paper, report.steps, report.comparison)
    _gpu_time(paper, report)
    _findings(paper, report)
    _checklist(paper, report)
    _timelines(paper, report)
    _tables(paper, report)
    _quality(paper, report)
    _not_judged(paper, report)
    _method(paper, report)
    stream = BytesIO()
    metadata = {
        "Title": fonts.replaced(f"{report.title} - GPU report", drawable),
        "Creator": f"gpureport {report.version}",
        "CreationDate": datetime.fromtimestamp(date, UTC),
    }
    paper.save(stream, f"gpureport {report.version}", metadata)
    return stream.getvalue()


def _heading(paper: Paper, text: str, hand: Hand = _HEADING) -> None:
    """Write a heading with room for something below it."""
    paper.space(hand.size)
    paper.room(5 * hand.size)
    paper.write(text, hand)
    paper.space(2)


def _facts(paper: Paper, facts: Sequence[Fact]) -> None:
    """Write named statements, names and texts side by side."""
    for fact in facts:
        paper.row([(fact.name, QUIET), (fact.text, PLAIN)], [_NAME, INNER - _NAME], [False, False])


def _table(paper: Paper, table: Table) -> None:
    """Write a table; a small line stands below its value."""
    numeric = [False, *table.numeric]
    cells = [[row.head, *row.cells] for row in table.rows]
    texts = [[f"{cell.text}\n{cell.small}".strip() for cell in row] for row in cells]
    widths = _widths([table.columns, *texts])
    paper.row([(name, _HEAD) for name in table.columns], widths, numeric)
    for row, shown in zip(cells, texts, strict=True):
        hands = [STRONG, *(STRONG if cell.flagged else PLAIN for cell in row[1:])]
        paper.row(list(zip(shown, hands, strict=True)), widths, numeric)
    paper.space(4)


def _widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """Return widths that fill the page: what a column needs, those that need much more sharing what is left."""
    needs = [max(width(text, STRONG) + 10 for text in column) for column in zip(*rows, strict=True)]
    most = INNER
    while sum(min(need, most) for need in needs) > INNER:
        most *= 0.97
    narrow = [min(need, most) for need in needs]
    return [each * INNER / sum(narrow) for each in narrow]


def _listed(paper: Paper, lines: Sequence[str], indent: float = 0.0) -> None:
    for line in lines:
        paper.write(f"• {line}", indent=indent)


def _verdict(paper: Paper, report: Report) -> None:
    paper.write(f"{report.title} · {report.subtitle}", SMALL)
    paper.space(2)
    paper.write(report.verdict.sentence, _TITLE)
    paper.space(4)
    for line in report.verdict.details:
        paper.write(line, QUIET)
    paper.space(8)
    _facts(paper, [Fact(name=tile.label, text=f"{tile.value}: {tile.context}") for tile in report.tiles])


def _steps(paper: Paper, steps: Table, part: ComparisonPart) -> None:
    _heading(paper, f"Groups by {part.grouped}" if part.grouped else "Step by step")
    paper.write(steps.note, QUIET)
    paper.space(4)
    _table(paper, steps)
    _facts(paper, [*part.across, *part.remaining])
    for chart in part.charts:
        paper.figure(interval_charts.figure(chart), chart.title)
    _table(paper, part.estimates)
    _heading(paper, "What each step did")
    for link in part.links:
        _heading(paper, link.label, _PART)
        _listed(paper, link.doubts)
        _facts(paper, link.changes)
        _table(paper, link.effects)
        _facts(paper, [*link.training, *link.findings])


def _gpu_time(paper: Paper, report: Report) -> None:
    if report.gpu_time and report.gpu_time_table:
        paper.figure(charts.bars_figure(report.gpu_time, INNER), "Where the GPU-hours went")
        _table(paper, report.gpu_time_table)
    else:
        _heading(paper, "Where the GPU-hours went")
        why = "The recording is too short" if report.gpus else "No GPU was recorded"
        paper.write(f"{why}, so GPU time could not be divided.")


def _findings(paper: Paper, report: Report) -> None:
    _heading(paper, "Findings")
    paper.write(report.order if report.findings else f"No finding. {report.judgement.sentence}", QUIET)
    for card in report.findings:
        _card(paper, card)


def _card(paper: Paper, card: FindingCard) -> None:
    if card.repeats:
        paper.write(f"{card.id}, {card.run}: as {card.repeats}, {card.lost}; {card.where}")
        return
    _heading(paper, f"{card.id} {card.severity}: {card.title}, {card.lost}", _PART)
    if card.run:
        paper.write(f"{card.run}: {card.status}", SMALL)
    paper.write(f"Follows from {card.root}. {card.summary}" if card.root else card.summary)
    for line in card.evidence:
        limit = f" ({line.limit}; {line.source})" if line.limit else ""
        paper.write(f"• {line.quantity}: {line.observed}{limit}")
    _listed(paper, [f"Do this: {text}" for text in card.recommendations])
    rest = {"Cause": card.cause, "Where": card.where, "Ruled out": "; ".join(card.ruled_out)}
    _listed(paper, [f"{name}: {text}" for name, text in rest.items() if text])
    paper.write(f"• Confidence: {card.confidence}")
    for number, step in enumerate(card.steps, 1):
        paper.write(f"{number}. {step.title}. {step.do}", indent=10)
        unknown = f" Not known from this recording: whether {step.unknown}." if step.unknown else ""
        told = f"When: {step.when}{unknown} Risk: {step.risk} Check: {step.check} Source: {step.source}"
        paper.write(told, SMALL, indent=10)
    if len(card.occurrences) > 1:
        stretches = "; ".join(f"{each.device}: {each.text}" for each in card.occurrences)
        paper.write(f"Stretches of time: {stretches}. {card.omitted}", SMALL)


def _checklist(paper: Paper, report: Report) -> None:
    for run in report.checklists[-1:]:
        _heading(paper, f"Checklist of the practice, {run.label}")
        for line in run.lines:
            record = f" Record: {line.recording}" if line.recording else ""
            texts = [(line.title, STRONG), (line.state, PLAIN), (f"{line.reason}.{record}", PLAIN)]
            paper.row(texts, [INNER * 0.36, INNER * 0.18, INNER * 0.46], [False] * 3)


def _timelines(paper: Paper, report: Report) -> None:
    for run in report.timeline:
        for page in strips.pages(run):
            paper.figure(charts.timeline_figure(page, width=INNER), f"Timeline of {run.label}")
            paper.write("Height: mean GPU utilisation of each column, 0 to 100 %. Hatched: not recorded.", QUIET)
        if not run.strips:
            _heading(paper, f"Timeline of {run.label}")
            paper.write(run.absent)
        paper.write("; ".join(filter(None, (run.caption, run.column))), QUIET)


def _tables(paper: Paper, report: Report) -> None:
    """Write GPUs, what held the clocks, stages, energy and cost, run by run."""
    for gpus in side_by_side.together(report.gpus):
        _heading(paper, f"Per GPU, {gpus.label}")
        _listed(paper, gpus.outliers or tuple(filter(None, [gpus.same])))
        _table(paper, gpus.table)
        paper.write(gpus.table.note, QUIET)
    for name, held in (("What held the clocks", side_by_side.together(report.clocks)), ("Stages", report.stages)):
        for run in held:
            _heading(paper, f"{name}, {run.label}")
            _table(paper, run.table)
            paper.write(run.table.note, QUIET)
    if report.spending:
        _heading(paper, "Energy and cost")
        _facts(paper, same_facts.lines(report.spending))


def _quality(paper: Paper, report: Report) -> None:
    for run in report.quality:
        _heading(paper, f"Data quality, {run.label}")
        _facts(paper, run.facts)
        _listed(paper, [*run.notes, *(event.sentence for event in run.events), *filter(None, [run.more_events])])


def _not_judged(paper: Paper, report: Report) -> None:
    _heading(paper, "What could not be judged")
    paper.write(report.judgement.sentence, QUIET)
    for line in report.judgement.lines:
        kinds = ", ".join(line.kinds) + (f" ({line.where})" if line.where else "")
        texts = [(kinds, STRONG), (line.reason, PLAIN), (line.recording, PLAIN)]
        paper.row(texts, [INNER / 3] * 3, [False] * 3)
    if report.judgement.command:
        paper.space(4)
        paper.write(f"One command that records all of these fields: {report.judgement.command}")
    _listed(paper, report.judgement.limits)
    for run in report.answers:
        _heading(paper, f"Every kind, {run.label}", _PART)
        paper.write(f"{run.summary}.", QUIET)
        _facts(
            paper,
            [
                Fact(name=line.title, text="; ".join(filter(None, (line.outcome, *line.cards, line.reason))))
                for line in run.lines
            ],
        )


def _method(paper: Paper, report: Report) -> None:
    _heading(paper, "Method")
    paper.write(f"This report was made with: {report.method.command}")
    _facts(paper, report.method.versions)
    _heading(paper, "Inputs", _PART)
    _table(paper, report.method.inputs)
    _heading(paper, "What the words mean", _PART)
    _facts(paper, report.method.definitions)
    paper.space(4)
    paper.write("The limits that findings are judged by are listed in the HTML report, with their origin.", QUIET)
