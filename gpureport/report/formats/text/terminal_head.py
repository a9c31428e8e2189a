"""The head of a report as lines of plain text: the headline, what was read, what to know with it, the key figures."""

from collections.abc import Iterator, Sequence

from gpureport.report.model.head import Tile
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page


def headline_lines(report: Report, page: Page, most: int | None = None) -> Iterator[Line]:
    """Yield the headline, what was read, and what to know with the headline, in at most `most` lines."""
    yield from page.wrapped(report.verdict.sentence, style="heading")
    yield Line()
    yield from page.wrapped(report.quiet_line, style="soft")
    yield from _lead(report.verdict.details, page, most)


def _lead(details: Sequence[str], page: Page, most: int | None) -> list[Line]:
    """Return what to know with the headline: of more than fits, whole sentences from the first on."""
    lines = list(page.wrapped(" ".join(details)))
    if most is None or len(lines) <= most:
        return lines
    if len(details) > 1:
        return _lead(details[:-1], page, most)
    kept = lines[:most]
    last = display.shorten(f"{kept[-1].text} {'…' * page.width}", page.width - 1) if kept else ""
    return [*kept[:-1], Line(f"{last.rstrip(' ….')} …")] if kept else []


def head_lines(report: Report, page: Page) -> Iterator[Line]:
    """Yield the headline, what to know with it, and the key figures."""
    yield from headline_lines(report, page)
    for note in report.verdict.notes:
        yield from page.wrapped(note, 2)
    yield from _tiles(report.tiles, page)


def _tiles(tiles: Sequence[Tile], page: Page) -> Iterator[Line]:
    """Yield every key figure with all that is said of it."""
    yield Line()
    longest = max((display.terminal_width(tile.label) for tile in tiles), default=0) + 1
    for tile in tiles:
        figures = " ".join(filter(None, (f"{tile.before} →" if tile.before else "", tile.value, tile.unit)))
        change = tile.change
        interval = f"({change.interval})" if change and change.interval else ""
        said = " ".join(filter(None, (change.text, interval, change.verdict))) if change else ""
        text = "; ".join(filter(None, (figures, said, tile.context)))
        yield from page.wrapped(text, 0, tile.label.ljust(longest))
