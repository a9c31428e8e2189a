"""What the open page shows, in words: what to do, where GPU time went, use over time, and findings over all runs."""

from collections.abc import Iterator, Sequence

from gpureport.report.model.finding_rows import FindingRow
from gpureport.report.model.head import Action, Change
from gpureport.report.model.pictures import SignalHistory, TimeSpent, UseOverTime
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page


def overview_lines(report: Report, page: Page) -> Iterator[Line]:
    """Yield what the open page shows, every text of it."""
    yield from list_actions(report.actions, page)
    if report.spent:
        yield from _spent(report.spent, page)
    if report.use:
        yield from _use(report.use, page)
    if report.worst:
        yield from page.heading(report.worst.title)
        yield from _history(report.worst, page, 2)


def row_lines(rows: Sequence[FindingRow], page: Page) -> Iterator[Line]:
    """Yield each finding once for all runs, with what to do and what to doubt."""
    for row in rows:
        yield Line()
        yield from page.wrapped(f"{row.id} {row.severity}: {row.title} ({row.kind}), {row.runs}", style=row.severity)
        yield from page.wrapped(row.summary, 3)
        yield from page.wrapped(_join(row.extent, row.cost), 3, "How much")
        yield from page.wrapped(row.advice, 3, "Do this")
        for place, caveat in enumerate(row.caveats):
            yield from page.wrapped(caveat, 3, "Caveats" if place == 0 else " ")
        yield from page.wrapped(row.confidence, 3, "Confidence")
        if row.history:
            yield from page.wrapped(row.history.title, 3)
            yield from _history(row.history, page, 5)


def list_actions(actions: Sequence[Action], page: Page) -> Iterator[Line]:
    """Yield what to do next, with all that is said of it."""
    if actions:
        yield from page.heading("What to do next")
    for place, action in enumerate(actions, 1):
        yield from page.wrapped(f"{place}. {_join(action.title, action.gain)}", 2)
        where = f"See {action.finding}." if action.finding else ""
        yield from page.wrapped(" ".join(filter(None, (action.text, action.certainty, where))), 5)
        if action.command:
            yield from page.copied(action.command, 5, " ")


def _spent(spent: TimeSpent, page: Page) -> Iterator[Line]:
    yield from page.heading("GPU time of each bar")
    yield from page.wrapped(spent.caption, 2, style="soft")
    for bar in spent.bars:
        interval = f"95% interval {bar.interval_text}" if bar.interval_text else ""
        total = _join(bar.total, interval, _change(bar.change), bar.note)
        named = f"{display.lower_first(spent.columns[1])} {bar.beside}" if bar.beside else ""
        beside = _join(named, _change(bar.beside_change))
        classes = ", ".join(f"{part.label} {part.text}" for part in bar.segments)
        small = f" ({bar.small})" if bar.small else ""
        yield from page.wrapped(f"{bar.label}{small}: {_join(total, beside, classes)}", 2)
    since = _join(_change(spent.since_first), _change(spent.beside_since_first))
    if since:
        yield from page.wrapped(f"Since the first step: {since}", 2)
    if spent.rest:
        yield from page.wrapped(spent.rest, 2)


def _use(use: UseOverTime, page: Page) -> Iterator[Line]:
    yield from page.heading("GPU use over time")
    yield from page.wrapped(use.caption, 2, style="soft")
    for row in use.rows:
        small = f" ({row.small})" if row.small else ""
        yield from page.wrapped(f"{row.label}{small}: {_join(row.total, row.text)}", 2)
    if use.rest:
        yield from page.wrapped(use.rest, 2)


def _history(history: SignalHistory, page: Page, indent: int) -> Iterator[Line]:
    """Yield what the signals of a GPU show."""
    if history.caption:
        yield from page.wrapped(history.caption, indent, style="soft")
    for panel in history.panels:
        yield from page.wrapped(f"{panel.label}: {panel.note}" if panel.note else panel.label, indent)


def _change(change: Change | None) -> str:
    """Return a change with its interval, its verdict and the step it is measured from."""
    if change is None:
        return ""
    return " ".join(
        filter(None, (change.text, change.interval and f"({change.interval})", change.verdict, change.since))
    )


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))
