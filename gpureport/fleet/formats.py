"""The page on many runs as HTML, PDF, Markdown and text, and the files it is written to."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gpureport.errors import RenderError
from gpureport.fleet import page_parts
from gpureport.fleet.cards import Facts
from gpureport.fleet.fleet_json import write_json
from gpureport.fleet.page import HEADING, FleetPage, build_page
from gpureport.places import Place
from gpureport.report.charts.elements import HorizontalScale, define_patterns, draw_swatch, paint_shape, write_document
from gpureport.report.charts.rows import draw_spent_bars
from gpureport.report.formats import output
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.formats.text import markdown
from gpureport.report.formats.text.terminal import write_blocks
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import PIPE, Page
from gpureport.report.wording.terms import DEFINITIONS

FORMATS = (".html", ".json", ".md", ".pdf", ".txt")
_WITH_FULL = {".txt", ".pdf"}
_ROW_WIDTH, _BAR_WIDTH, _BAR_HEIGHT = 238.0, 106.0, 12.0  # points on paper; the height is that of a bar in a table
_SPENT = "Where the GPU time went"
_BARS, _PARTS = 2, 2
"""Bars of a screen, and its tables beside the worst runs."""


def check_fleet_outputs(paths: Sequence[Place], *, full: bool = False) -> None:
    """Refuse files of unknown kinds, and options that no file needs, before any work is done."""
    for path in paths:
        output.check_path(path, FORMATS)
    kinds = {".txt" if str(path) == "-" else path.suffix.lower() for path in paths}
    if full and kinds and not kinds & _WITH_FULL:
        hint = f"write one of {', '.join(sorted(_WITH_FULL))}"
        raise RenderError("--detail full", "none of the files to write has a longer form", hint, code="nothing_to_show")


def write_fleet_report(  # noqa: PLR0913 - what a file depends on, each by name
    report: Facts,
    targets: Sequence[Place],
    *,
    command: str,
    version: str,
    brand: Brand = PLAIN,
    full: bool = False,
) -> FleetPage:
    """Write the report to every target by its extension, and return its page; `-` is text on standard output."""
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
                content = markdown.write_blocks(_list_blocks(page), page.version, page.command)
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
    from markupsafe import Markup

    from gpureport.report.formats import html, page_pictures, term_tooltips

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
    from gpureport.report.formats import pdf_figures, typesetting

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


# --- Markdown and text


def _list_blocks(page: FleetPage) -> Iterator[Block]:
    """Yield the blocks of the page; a screen has those that are open on a page, the worst runs last."""
    yield Block(forms=Form.ALL, part="details", head=page)
    if page.spent:
        label, cut = page.spent.columns[0], replace(page.spent, bars=page.spent.bars[:_BARS])
        yield Block(forms=Form.SCREEN, part="bars", title=_SPENT, label=label, bars=cut)
        yield Block(forms=Form.LONG, title=_SPENT, label=label, texts=[page.spent.caption], bars=page.spent)
    yield Block(forms=Form.LONG, title="Key figures", tiles=page.tiles)
    yield Block(forms=Form.ALL, part="actions", title=HEADING, actions=page.actions)
    shown = [part for part in page.parts if part.is_open and part.id not in {page_parts.RUNS, page_parts.WEEKS}]
    worst = [part for part in page.parts if part.id == page_parts.RUNS]
    for part in [*shown[:_PARTS], *worst]:
        name, label = ("runs", "") if part.id == page_parts.RUNS else ("rows", part.line)
        yield Block(forms=Form.SCREEN, part=name, title=part.title, label=label, table=part.table)
    for part in page.parts:
        said = [f"{display.raise_first(part.line)}."]
        yield Block(forms=Form.LONG, title=part.title, texts=said, table=part.table, facts=part.facts)
        yield Block(forms=Form.LONG, texts=part.notes)


def render_text(page: FleetPage, place: Page = PIPE, *, full: bool = False) -> str:
    """Return the page as text for a place: everything, or (not `full`) one screen of it."""
    return write_blocks(_list_blocks(page), place, full=full)
