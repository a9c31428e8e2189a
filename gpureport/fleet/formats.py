"""The page on many runs as HTML, PDF, Markdown and text, and the files it is written to."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpureport.errors import RenderError
from gpureport.fleet import page_parts
from gpureport.fleet.cards import Facts
from gpureport.fleet.fleet_json import write_json
from gpureport.fleet.page import HEADING, FleetPage, build_page
from gpureport.fleet.page_parts import PagePart
from gpureport.places import Place
from gpureport.report.charts.elements import HorizontalScale, define_patterns, draw_swatch, paint_shape, write_document
from gpureport.report.charts.rows import draw_spent_bars
from gpureport.report.formats import output
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.formats.text import markdown_parts, terminal_bars, terminal_head, terminal_screen, terminal_tables
from gpureport.report.formats.text.markdown_parts import write_sentence
from gpureport.report.formats.text.markdown_syntax import inline_code
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Fact, Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page, render_lines
from gpureport.report.wording.terms import DEFINITIONS

FORMATS = (".html", ".json", ".md", ".pdf", ".txt")
_WITH_FULL = {".txt", ".pdf"}
_ROW_WIDTH, _BAR_WIDTH, _BAR_HEIGHT = 238.0, 106.0, 12.0  # points on paper; the height is that of a bar in a table
_MOST = {"details": 4, "bars": 6, "actions": 3, "rows": 4, "parts": 2, "runs": 3}
"""How much a screen has of each part at most; the worst runs are no part that gives way to others."""
_LEAST = (
    *(("bars", 5), ("rows", 3), ("details", 3), ("bars", 4), ("rows", 2), ("actions", 2), ("details", 2)),
    *(("bars", 2), ("runs", 2), ("rows", 1), ("runs", 1), ("actions", 1), ("details", 1), ("parts", 0)),
    *(("bars", 0), ("actions", 0), ("details", 0)),
)
"""What gives way where a screen is full, in this order, and how much of it stays."""


def check_fleet_outputs(paths: Sequence[Place], *, full: bool = False) -> None:
    """Refuse files of unknown kinds, and options that no file needs, before any work is done.

    Raises:
        RenderError: naming the file, or the option.
    """
    for path in paths:
        output.check_path(path, FORMATS)
    kinds = {".txt" if str(path) == "-" else path.suffix.lower() for path in paths}
    if full and kinds and not kinds & _WITH_FULL:
        hint = f"write one of {', '.join(sorted(_WITH_FULL))}"
        raise RenderError("--detail full", "no file to be written has a longer form", hint, code="nothing_to_show")


def write_fleet_report(  # noqa: PLR0913 - what a file depends on, each by name
    report: Facts,
    targets: Sequence[Place],
    *,
    command: str,
    version: str,
    brand: Brand = PLAIN,
    full: bool = False,
) -> FleetPage:
    """Write the report to every target by its extension, and return its page; `-` is text on standard output.

    Raises:
        RenderError: when no format has the extension, or a file cannot be written.
    """
    page = build_page(report, command=command, version=version)
    for target in targets:
        if str(target) == "-":
            sys.stdout.write(render_text(page, full=full))
            continue
        output.check_path(target, FORMATS)
        content: str | bytes
        match target.suffix.lower():
            case ".json":
                content = write_json(report)
            case ".html":
                content = _render_html(page, brand)
            case ".pdf":
                content = _render_pdf(page, brand, full=full)
            case ".md":
                content = _render_markdown(page)
            case _:
                content = render_text(page, full=full)
        output.write_whole(target, content if isinstance(content, bytes) else content.encode())
    return page


# --- page and paper


def _draw_bars(bars: Sequence[Sequence[TimeSegment]], prefix: str, width: float | None = None) -> list[str]:
    """Return a figure a row of a table, empty for a row without a bar.

    Those of a page share the hatches of the first; on paper each is a file of its own.
    """
    lengths = [sum(part.value for part in row) for row in bars]
    scale = HorizontalScale(start=0.0, end=max(lengths, default=0.0), width=width)
    keys = [part.key for row in bars for part in row]
    first = next((place for place, row in enumerate(bars) if row), 0)
    figures = []
    for place, row in enumerate(bars):
        own, start = f"{prefix}{place}" if width else prefix, 0.0
        hatched = [part.key for part in row] if width else keys
        shapes = [define_patterns(hatched, own)] if width or place == first else []
        for part in row:
            box = f'rect x="{scale.position(start)}" width="{scale.length(part.value)}" height="{_BAR_HEIGHT:g}"'
            shapes.append(paint_shape(part.key, own, box))
            start += part.value
        words = ", ".join(f"{part.label} {part.text}" for part in row)
        figures.append(write_document(shapes, width=width, height=_BAR_HEIGHT, label=words) if row else "")
    return figures


def _render_html(page: FleetPage, brand: Brand) -> str:
    """Return the page as one HTML file, with its style sheet and without a script."""
    from markupsafe import Markup  # noqa: PLC0415 - for pages alone

    from gpureport.report.formats import html, page_pictures, term_tooltips  # noqa: PLC0415 - as above

    pages = html.template_environment(brand)
    # a heading says what it means to whoever rests the pointer on it
    pages.filters["term"] = term_tooltips.term_filter([Fact(name=name, text=text) for name, text in DEFINITIONS])
    style = pages.get_template(html.STYLE).render()
    return pages.get_template("fleet.html").render(
        report=page,
        back="",
        samples=None,
        style=Markup(style),  # noqa: S704 - our file
        policy=html.content_security_policy(style),
        pictures={
            "legend": page_pictures.draw_legend(page.spent),
            "spent": page_pictures.draw_spent(page.spent),
            "bars": {part.id: page_pictures.mark_safe(_draw_bars(part.bars, part.id)) for part in page.parts},
        },
    )


def _render_pdf(page: FleetPage, brand: Brand, *, full: bool) -> bytes:
    """Return the page set by typst: two pages for a meeting, and an appendix, in `full` with every row."""
    from gpureport.report.formats import pdf_figures, typesetting  # noqa: PLC0415 - for PDFs alone

    row, bar = _ROW_WIDTH / pdf_figures.SCALE, _BAR_WIDTH / pdf_figures.SCALE

    def describe(files: pdf_figures.FigureWriter) -> dict[str, Any]:
        legend = page.spent.legend if page.spent else ()
        swatches = [draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(legend)]
        bars: dict[str, list[dict[str, Any] | None]] = {}
        for at, part in enumerate(page.parts):
            drawn = enumerate(_draw_bars(part.bars, f"bars{at}-", bar))
            bars[part.id] = [files.write(f"bars{at}-{place}", svg) if svg else None for place, svg in drawn]
        return {
            "full": full,
            "heading": HEADING,
            "headline": list(display.headline(page.verdict.sentence)),
            "quiet_line": page.quiet_line,
            "figures": {
                "legend": files.write_all("legend", swatches),
                "spent": files.write_all("spent", draw_spent_bars(page.spent, "spent", row) if page.spent else ()),
                "bars": bars,
            },
        }

    return typesetting.set_document("fleet.typ", page, describe, brand=brand, ended=page.ended)


# --- Markdown


def _render_markdown(page: FleetPage) -> str:
    """Return the page in at most 20 kB, the most important first; other formats hold what is too long."""
    command = f" · {inline_code(display.shorten(page.command, markdown_parts.LONGEST_TEXT))}" if page.command else ""
    return markdown_parts.fit_lines(_list_markdown(page), [f"gpureport {write_sentence(page.version)}{command}"])


def _list_markdown(page: FleetPage) -> Iterator[str]:
    yield from markdown_parts.head_lines(page)
    if page.spent:
        yield from markdown_parts.spent_lines(page.spent)
    if page.actions:
        yield from (f"## {HEADING}", "")
        yield from (f"{place}. {markdown_parts.format_action(each)}" for place, each in enumerate(page.actions, 1))
        yield ""
    for part in page.parts:
        title, line = write_sentence(part.title), write_sentence(part.line)
        if part.is_open:
            yield from (f"## {title}", "", f"{display.raise_first(line)}.", "")
        else:
            yield from (f"<details><summary>{title}: {line}</summary>", "")
        if part.table:
            yield from (*markdown_parts.format_table(part.table), "")
        yield from (f"- {write_sentence(f'{fact.name}: {fact.text}')}" for fact in part.facts)
        yield from (["", " ".join(map(write_sentence, part.notes)), ""] if part.notes else [])
        yield from ([] if part.is_open else ["", "</details>", ""])


# --- text


def render_text(
    page: FleetPage, width: int = 80, *, colour: bool = False, ascii_only: bool = False, full: bool = False
) -> str:
    """Return the page as text: everything where `full`, otherwise at most 30 lines."""
    place, limits = Page(width=width, ascii=ascii_only), dict(_MOST)
    lines = list(_list_all(page, place) if full else _list_screen(page, place, limits))
    for part, least in () if full else _LEAST:
        while len(lines) > terminal_screen.HEIGHT and limits[part] > least:
            limits[part] -= 1
            lines = list(_list_screen(page, place, limits))
    return render_lines(lines, colour=colour, ascii_only=ascii_only)


def _list_screen(page: FleetPage, place: Page, limits: Mapping[str, int]) -> Iterator[Line]:
    yield from terminal_head.headline_lines(page, place, limits["details"], is_spaced=False)
    if page.spent and limits["bars"]:
        heading = f"WHERE THE GPU TIME WENT{display.GAP * 2}{page.spent.columns[0]}"
        yield from terminal_screen.heading_lines(heading, place)
        bars = replace(page.spent, bars=page.spent.bars[: limits["bars"]])
        yield from terminal_bars.bar_lines(bars, place, limits["bars"])
    yield from terminal_screen.action_lines(page.actions[: limits["actions"]], place, HEADING.upper())
    shown = [part for part in page.parts if part.is_open and part.id not in {page_parts.RUNS, page_parts.WEEKS}]
    for part in shown[: limits["parts"]]:
        rows = len(part.table.rows) if part.table else 0
        is_cut = rows > limits["rows"] and part.count
        line = f"{part.count}; first {limits['rows']} of {rows} rows" if is_cut else part.line
        yield from _list_first_rows(part, line, place, limits["rows"])
    for part in page.parts:
        if part.id == page_parts.RUNS and part.table:
            line = page_parts.count_worst(min(limits["runs"], len(part.table.rows)))
            yield from _list_first_rows(part, line, place, limits["runs"])
    yield Line("Details: --detail full", "soft")


def _list_first_rows(part: PagePart, line: str, place: Page, most: int) -> Iterator[Line]:
    """Yield the heading of a part and the first rows of its table: figures in columns, or words without small print."""
    yield from terminal_screen.heading_lines(f"{part.title.upper()}{display.GAP * 2}{line}", place)
    table: Table | None = part.table
    if table and table.numeric[0]:
        cut = tuple(
            replace(row, head=replace(row.head, small=""), cells=tuple(replace(cell, small="") for cell in row.cells))
            for row in table.rows[:most]
        )
        yield from terminal_tables.grid_lines(replace(table, rows=cut), place)
    elif table:
        for row in table.rows[:most]:
            words = (cell.text for cell, is_figure in zip(row.cells, table.numeric, strict=True) if not is_figure)
            yield Line(display.shorten("  ".join(("", row.head.text, *words)), place.width))


def _list_all(page: FleetPage, place: Page) -> Iterator[Line]:
    yield from terminal_head.head_lines(page, place)
    if page.spent:
        yield from place.heading("Where the GPU time went", page.spent.columns[0])
        yield from terminal_bars.bar_lines(page.spent, place, len(page.spent.bars))
    for number, action in enumerate(page.actions, 1):
        if number == 1:
            yield from place.heading(HEADING)
        yield from place.wrapped(f"{number}. {action.title}: {display.lower_first(action.gain)}", 2)
        yield from place.wrapped(" ".join(filter(None, (action.text, action.certainty))), 5)
    for part in page.parts:
        yield from place.heading(part.title)
        yield from place.wrapped(f"{display.raise_first(part.line)}.", 2)
        if part.table:
            yield from terminal_tables.grid_lines(part.table, place, whole=True)
        yield from terminal_tables.fact_lines(part.facts, place)
        for note in part.notes:
            yield from place.wrapped(note, 2, style="soft")
