"""The head of a report as lines of plain text: the headline, what was read, what to know with it, the key figures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.report.model.head import FirstScreen, Tile, Verdict
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page

_BETWEEN = " · "
"""What stands between two facts on what was read."""

_ORPHAN = 20
"""Columns of a last line that is too short to stand alone."""

_NARROWEST = 0.75
"""Share of the width that lines keep where the words of a short last line are shared out."""


def headline_lines(
    report: FirstScreen, page: Page, most: int | None = None, *, is_spaced: bool = True
) -> Iterator[Line]:
    """Yield the headline, what was read, and what to know with the headline.

    Args:
        report: the content.
        page: where it has to fit.
        most: lines of what to know at most; None for all.
        is_spaced: whether a blank line stands below the headline.
    """
    yield from page.wrapped(report.verdict.sentence, style="heading")
    if is_spaced:
        yield Line()
    yield from _quiet_lines(report.quiet_line, page)
    yield from lead_lines(report.verdict, page, most)


def _quiet_lines(text: str, page: Page) -> Iterator[Line]:
    """Yield what was read, broken between two facts where each fits on a line."""
    line = ""
    for fact in text.split(_BETWEEN):
        longer = f"{line}{_BETWEEN}{fact}" if line else fact
        if line and display.terminal_width(longer) + len(_BETWEEN.rstrip()) > page.width:
            yield from page.wrapped(f"{line}{_BETWEEN.rstrip()}", style="soft")
            longer = fact
        line = longer
    if line:
        yield from page.wrapped(line, style="soft")


def _wrap_evenly(text: str, page: Page) -> list[Line]:
    """Return text in as few lines as possible, the last of which is not a lone word where that can be helped."""
    lines = list(page.wrapped(text))
    for width in range(page.width, int(page.width * _NARROWEST), -1):
        tried = list(replace(page, width=width).wrapped(text))
        if len(tried) == len(lines) and display.terminal_width(tried[-1].text) >= _ORPHAN:
            return tried
    return lines


def lead_lines(verdict: Verdict, page: Page, most: int | None) -> list[Line]:
    """Return what to know with the headline: of more than fits, whole sentences from the first on.

    The first doubt is whole even where it does not fit: its end says what to do. Those left out are counted.

    Args:
        verdict: the result.
        page: where it has to fit.
        most: lines at most; None for all.
    """
    if most is None:
        return _wrap_evenly(" ".join(verdict.details), page) if verdict.details else []
    lines: list[Line] = []
    for count in range(len(verdict.details), 0, -1):
        lines = _wrap_evenly(" ".join(_select_details(verdict, count)), page)
        if len(lines) <= most or (count == 1 and verdict.doubts):
            return lines
    kept = lines[:most]
    last = display.shorten(f"{kept[-1].text} {'…' * page.width}", page.width - 1) if kept else ""
    return [*kept[:-1], Line(f"{last.rstrip(' ….')} …")] if kept else []


def _select_details(verdict: Verdict, count: int) -> Iterator[str]:
    """Yield the first details, and below the doubts how many more there are."""
    yield from verdict.details[: min(count, verdict.doubts)]
    hidden = max(verdict.doubts - count, 0) + verdict.further_doubts
    if hidden:
        yield f"{display.plural(hidden, 'more doubt')}: see --detail full."
    yield from verdict.details[verdict.doubts : count]


def head_lines(report: FirstScreen, page: Page) -> Iterator[Line]:
    """Yield the headline, what to know with it, and the key figures."""
    yield from headline_lines(report, page)
    for note in report.verdict.notes:
        yield from page.wrapped(note, 2)
    yield from _tiles(report.tiles, page)


def _tiles(tiles: Sequence[Tile], page: Page) -> Iterator[Line]:
    yield Line()
    longest = max((display.terminal_width(tile.label) for tile in tiles), default=0) + 1
    for tile in tiles:
        figures = " ".join(filter(None, (f"{tile.before} →" if tile.before else "", tile.value, tile.unit)))
        change = tile.change
        interval = f"({change.interval})" if change and change.interval else ""
        said = " ".join(filter(None, (change.text, interval, change.verdict))) if change else ""
        text = "; ".join(filter(None, (figures, said, tile.context)))
        yield from page.wrapped(text, 0, tile.label.ljust(longest))
