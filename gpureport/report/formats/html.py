"""The report as one HTML file that works without a network, scripts or CSS."""

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup, escape

from gpureport.places import find_shipped_folder
from gpureport.report.blocks import LOST_TIME, list_reference, list_row, list_study
from gpureport.report.charts.elements import map_figures
from gpureport.report.charts.strips import draw_report, draw_timeline
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.samples import embed_series

STYLE, _SCRIPTS = "report.css", ("controls.js", "report.js")
_NAMED = re.compile(r"\b([FR]\d+)\b")
_TONES = {"better": "good", "worse": "bad"}  # changes with other verdicts are grey


class _CompiledTemplates(BytecodeCache):
    _codes: ClassVar[dict[str, Any]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.code


def template_environment(brand: Brand = PLAIN) -> Environment:
    pages = Environment(
        loader=FileSystemLoader(find_shipped_folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=_CompiledTemplates(),
    )
    pages.globals |= {"tones": _TONES, "marked": {}, "colours": brand.colours, "brand": brand}
    pages.filters |= {"term": term_filter(()), "meaning": _meaning_filter(()), "linked": _link_filter(())}
    return pages


def content_security_policy(style: str, script: str = "") -> str:
    scripts = f" script-src '{_digest(script)}';" if script else ""
    return (
        f"default-src 'none'; style-src '{_digest(style)}';{scripts} img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def mark_safe(figures: Any) -> Any:
    return map_figures(figures, lambda _, svg: Markup(svg))  # noqa: S704 - as said


def render(
    report: Report,
    brand: Brand = PLAIN,
    detail: int | None = None,
    back: str = "",
    earlier: Sequence[Block] = (),
) -> str:
    """Return a page. A nightly page links `back` to its site and shows `earlier` blocks."""
    pages, terms, cards = template_environment(brand), report.method.definitions, [card.id for card in report.findings]
    pages.filters |= {
        "term": term_filter(terms),
        "meaning": _meaning_filter((*terms, *report.method.kinds)),
        "linked": _link_filter({*cards, *(row.id for row in report.rows)}),
    }
    style = pages.get_template(STYLE).render()
    samples = embed_series(report.timeline, detail=detail)
    drawn = [(at, place, strip) for at, run in enumerate(report.timeline) for place, strip in enumerate(run.strips)]
    # the first strip with each card
    marks = {mark.card: (at, place) for at, place, strip in reversed(drawn) for mark in strip.marks}
    sections: dict[str, list[Block]] = {}
    name, loader = "", pages.loader
    for block in select_blocks(list_reference(report), Form.PAGE):
        name = block.anchor or name
        sections.setdefault(name, []).append(block)
    # scripts contain braces, so they are not rendered as templates
    script = "\n".join(loader.get_source(pages, name)[0] for name in _SCRIPTS) if loader and samples else ""
    anchors = {card: f"run{run}-mark-{card}-{strip}" for card, (run, strip) in marks.items()}
    # the GPU in the picture, or else the first marked one
    named = report.worst.gpu if report.worst else None
    shown = [(0, at) for at, strip in enumerate(report.timeline[0].strips) if strip.label == named]
    shown += [marks[card] for card in cards if card in marks]
    run, strip = [*shown, (len(report.timeline) - 1, 0)][0]
    # safe: style and script come from gpureport, and series are escaped
    style, script, index = mark_safe((style, script, samples.about if samples else ""))
    strips = [draw_timeline(run, f"run{at}") if run.strips else "" for at, run in enumerate(report.timeline)]
    return pages.get_template("report.html").render(
        report=report,
        back=back,
        earlier=earlier,
        folds={fold.name: fold.text for fold in report.folds},
        worst={"run": run, "strip": strip},
        marked=dict.fromkeys(cards, "") | anchors,
        lost_time=LOST_TIME,
        study=select_blocks(list_study(report), Form.PAGE),
        row_blocks=[(row, select_blocks(list_row(row, report), Form.PAGE)) for row in report.rows],
        sections=sections,
        style=style,
        script=script,
        samples=samples,
        index=index,
        policy=content_security_policy(style, script),
        pictures=mark_safe(draw_report(report)),
        timelines=list(zip(report.timeline, mark_safe(strips), strict=True)),
    )


# --- filters: links to findings, and tooltips with the meaning of a term


def _link_filter(ids: Collection[str]) -> Callable[[str], Markup]:
    def link(text: str) -> Markup:
        parts = _NAMED.split(text)
        links = (Markup('<a href="#{0}">{0}</a>').format(each) if each in ids else escape(each) for each in parts)
        return Markup().join(links)

    return link


def _meaning_filter(definitions: Sequence[Fact]) -> Callable[[Context, str], str]:
    texts = {fact.name.lower(): fact.text for fact in definitions}

    @pass_context  # otherwise the compiled template would keep the terms of this page
    def explained(_context: Context, title: str) -> str:
        name = title.lower()
        while name and name not in texts:
            name = name.rpartition(", ")[0]
        return texts.get(name, "")

    return explained


def term_filter(definitions: Sequence[Fact]) -> Callable[[Context, str], Markup]:
    """Return a filter that escapes text and adds a tooltip to its first term (the longest match)."""
    texts = _meaning_filter(definitions)
    names = sorted((fact.name for fact in definitions), key=len, reverse=True)
    words = (("(?:GPU )?" if name.startswith("GPU ") else "") + re.escape(name.removeprefix("GPU ")) for name in names)
    pattern = re.compile("|".join(rf"(?<![\w-]){word}s?(?![\w-])" for word in words) or "(?!)", re.IGNORECASE)
    full = {fact.name.lower().removeprefix("gpu "): fact.name for fact in definitions}

    @pass_context
    def explained(context: Context, text: str) -> Markup:
        found = pattern.search(text)
        if found is None:
            return escape(text)
        name = found.group().lower().removeprefix("gpu ")
        said = texts(context, full.get(name) or full[name.removesuffix("s")])
        shown = Markup('<abbr title="{}">{}</abbr>').format(said, found.group())
        return escape(text[: found.start()]) + shown + escape(text[found.end() :])

    return explained
