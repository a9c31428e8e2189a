"""Writes the fleet report as JSON, HTML, PDF, Markdown or text, anonymised on request."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from gpureport.errors import RenderError
from gpureport.fleet import page_parts
from gpureport.fleet.cards import Facts
from gpureport.fleet.page import HEADING, FleetPage, build_page
from gpureport.places import Place
from gpureport.report import check_path, write_whole
from gpureport.report.charts.elements import HorizontalScale, define_patterns, paint_shape, write_document
from gpureport.report.charts.strips import draw_spent
from gpureport.report.formats import markdown
from gpureport.report.formats.analysis_json import iso_time
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.formats.report_json import dump
from gpureport.report.formats.terminal import write_blocks
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import PIPE, Page
from gpureport.report.wording.terms import DEFINITIONS

FORMATS = (".html", ".json", ".md", ".pdf", ".txt")
_WITH_FULL = {".txt", ".pdf"}
# in points on paper, and the height of bars in tables
_ROW_WIDTH, _BAR_WIDTH, _BAR_HEIGHT = 238.0, 106.0, 12.0
_SPENT = "Where the GPU time went"
_BARS, _PARTS = 2, 2
"""Number of bars on the screen, and of tables besides the worst runs."""
SCHEMA = "gpureport.fleet/1"
_DIGITS = 6
_KEPT = frozenset(("model", "partition", "job_state"))
"""Labels whose values do not identify anyone."""
_FILE = re.compile(r"[^\s:;,'\"()]*(?:[\\/@]|\.(?=[A-Za-z]))[^\s:;,'\"()]*")
"""Matches a path, an address, or a file name."""
_SHOWN = 8


def check_fleet_outputs(paths: Sequence[Place], *, full: bool = False) -> None:
    for path in paths:
        check_path(path, FORMATS)
    kinds = {".txt" if str(path) == "-" else path.suffix.lower() for path in paths}
    if full and kinds and not kinds & _WITH_FULL:
        hint = f"write one of {', '.join(sorted(_WITH_FULL))}"
        raise RenderError("--detail full", "none of the output files has a longer form", hint, code="nothing_to_show")


def write_fleet_report(
    report: Facts, targets: Sequence[Place], command: str, *, brand: Brand = PLAIN, full: bool = False
) -> FleetPage:
    page = build_page(report, command)
    for target in targets:
        if str(target) == "-":
            sys.stdout.write(render_text(page, full=full))
            continue
        check_path(target, FORMATS)
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
        write_whole(target, content if isinstance(content, bytes) else content.encode())
    return page


def _draw_bars(bars: Sequence[Sequence[TimeSegment]], prefix: str, width: float | None = None) -> list[str]:
    """Return one figure per table row, empty for a row without a bar."""
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

    from gpureport.report.formats import html

    pages = html.template_environment(brand)
    # hovering over a heading shows its meaning
    pages.filters["term"] = html.term_filter([Fact(name=name, text=text) for name, text in DEFINITIONS])
    style = pages.get_template(html.STYLE).render()
    return pages.get_template("fleet.html").render(
        report=page,
        back="",
        samples=None,
        style=Markup(style),  # noqa: S704 - our file
        policy=html.content_security_policy(style),
        pictures=html.mark_safe(
            draw_spent(page.spent) | {"bars": {part.id: _draw_bars(part.bars, part.id) for part in page.parts}}
        ),
    )


def _render_pdf(page: FleetPage, brand: Brand, *, full: bool) -> bytes:
    from gpureport.report.formats import pdf

    bars = {part.id: _draw_bars(part.bars, f"bars{at}-", _BAR_WIDTH / pdf.SCALE) for at, part in enumerate(page.parts)}
    rest = {
        "full": full,
        "heading": HEADING,
        "headline": list(display.headline(page.verdict.sentence)),
        "quiet_line": page.quiet_line,
    }
    figures = draw_spent(page.spent, _ROW_WIDTH / pdf.SCALE) | {"bars": bars}
    return pdf.set_document("fleet.typ", page, rest, figures, brand=brand, ended=page.ended)


def _list_blocks(page: FleetPage) -> Iterator[Block]:
    """The screen shows the first open parts, followed by the worst runs."""
    yield Block(forms=Form.ALL, part="details", head=page)
    if page.spent:
        label, cut = page.spent.columns[0], replace(page.spent, bars=page.spent.bars[:_BARS])
        yield Block(forms=Form.SCREEN, part="bars", title=_SPENT, label=label, bars=cut)
        yield Block(forms=Form.LONG, title=_SPENT, label=label, texts=[page.spent.caption], bars=page.spent)
    yield Block(forms=Form.LONG, title="Key figures", tiles=page.tiles)
    yield Block(forms=Form.ALL, part="actions", title=HEADING, actions=page.actions)
    shown = [part for part in page.parts if part.is_open and part.id not in {page_parts.RUNS, page_parts.WEEKS}]
    for part in [*shown[:_PARTS], *(part for part in page.parts if part.id == page_parts.RUNS)]:
        name, label = ("runs", "") if part.id == page_parts.RUNS else ("rows", part.line)
        yield Block(forms=Form.SCREEN, part=name, title=part.title, label=label, table=part.table)
    for part in page.parts:
        said = [f"{display.raise_first(part.line)}."]
        yield Block(forms=Form.LONG, title=part.title, texts=said, table=part.table, facts=part.facts)
        yield Block(forms=Form.LONG, texts=part.notes)


def render_text(page: FleetPage, place: Page = PIPE, *, full: bool = False) -> str:
    return write_blocks(_list_blocks(page), place, full=full)


def write_json(report: Facts) -> str:
    zone = "UTC" if report["is_zoned"] else None
    times = {name: report[name] and iso_time(report[name], zone) for name in ("started", "ended")}
    return dump(_round({"schema": SCHEMA, **report, **times}))


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_round(entry) for entry in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def anonymise_fleet_report(report: Facts) -> Facts:
    """Return the report with names replaced by numbers or short hashes. Times, amounts and models are kept.

    Names within text cannot be recognised, so the selection and all paths in errors are replaced.
    """
    numbers: dict[tuple[str, str], str] = {}

    def number(label: str, name: str | None) -> str | None:
        if name is None or label in _KEPT:
            return name
        count = sum(known == label for known, _ in numbers)
        return numbers.setdefault((label, name), f"{label}_{count + 1}")

    def hide(value: Any) -> Any:
        if isinstance(value, list):
            return [hide(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"id": str(identity), "name": name}:
                # as in a report on the run; an unread log has no id
                shown = identity[:_SHOWN] or _hash(name)
                return {"id": shown, "name": f"run-{shown}", "source": None}
            case {"label": label, "groups": groups}:
                value = value | {"groups": [each | {"name": number(label, each["name"])} for each in groups]}
            case {"user": user}:
                value = value | {"user": number("user", user)}
            case {"uuid": uuid, "node": node, "device": _}:
                value = value | {"uuid": uuid and f"GPU-{_hash(uuid)}", "node": number("node", node)}
            case {"error": error}:
                value = value | {"error": _FILE.sub("<file>", error)}
            case _:
                value = value | ({"card": f"GPU-{_hash(value['card'])}"} if "card" in value else {})
        return {key: hide(entry) for key, entry in value.items()}

    # number the names in groupings first, in order of loss
    hide(report["groupings"])
    hidden: Facts = hide(report | {"selection": report["selection"] and "a selection of runs"})
    return hidden


def _hash(identity: str) -> str:
    return sha256(identity.encode()).hexdigest()[:_SHOWN]
