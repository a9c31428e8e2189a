"""The report as one HTML file: no network, whole without script, readable without style sheet."""

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from gpureport.places import find_shipped_folder
from gpureport.report.blocks.findings import LOST_TIME, list_row
from gpureport.report.blocks.opening import list_study
from gpureport.report.blocks.reference import list_reference
from gpureport.report.formats import page_pictures, term_tooltips
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.comparison_parts import EarlierComparison
from gpureport.report.model.report_content import Report
from gpureport.report.samples import embedded_series

TEMPLATE, STYLE, SCRIPTS = "report.html", "report.css", ("controls.js", "report.js")
_NAMED = re.compile(r"\b([FR]\d+)\b")
_TONES = {"better": "good", "worse": "bad"}
"""Verdicts that have a colour; of all others a change is grey."""


class _CompiledTemplates(BytecodeCache):
    """What templates were compiled to, for the next page of this process."""

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
    pages.filters |= {
        "term": term_tooltips.term_filter(()),
        "meaning": term_tooltips.meaning_filter(()),
        "linked": _link_filter(()),
    }
    return pages


def content_security_policy(style: str, script: str = "") -> str:
    scripts = f" script-src '{_digest(script)}';" if script else ""
    return (
        f"default-src 'none'; style-src '{_digest(style)}';{scripts} img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def render(
    report: Report,
    brand: Brand = PLAIN,
    detail: int | None = None,
    back: str = "",
    earlier: Sequence[EarlierComparison] = (),
) -> str:
    """Return the report as a page.

    `detail` is that of `output.render`. The report of a night has `back`, the address of the page it belongs to, and
    `earlier`, its runs against a baseline and against last week.
    """
    pages = template_environment(brand)
    pages.filters |= {
        "term": term_tooltips.term_filter(report.method.definitions),
        "meaning": term_tooltips.meaning_filter((*report.method.definitions, *report.method.kinds)),
        "linked": _link_filter({*(card.id for card in report.findings), *(row.id for row in report.rows)}),
    }
    style = pages.get_template(STYLE).render()
    samples = embedded_series.embed_series(report.timeline, detail=detail)
    loader, marks = pages.loader, _first_marks(report)
    # braces of scripts are their own, so they are no templates
    script = "\n".join(loader.get_source(pages, name)[0] for name in SCRIPTS) if loader and samples else ""
    folds = {fold.name: fold.text for fold in report.folds}
    anchors = {card: f"run{run}-mark-{card}-{strip}" for card, (run, strip) in marks.items()}
    # the GPU that the page shows, else that of the first mark, else the first of the last run
    named = report.worst.gpu if report.worst else None
    shown = [(0, at) for at, strip in enumerate(report.timeline[0].strips) if strip.label == named]
    shown += [marks[card.id] for card in report.findings if card.id in marks]
    run, strip = [*shown, (len(report.timeline) - 1, 0)][0]
    # style sheet and script are files, and series escape what they write
    style, script, index = page_pictures.mark_safe((style, script, samples.index if samples else ""))
    return pages.get_template(TEMPLATE).render(
        report=report,
        back=back,
        earlier=earlier,
        folds=folds,
        worst={"run": run, "strip": strip},
        marked=dict.fromkeys((card.id for card in report.findings), "") | anchors,
        lost_time=LOST_TIME,
        study=select_blocks(list_study(report), Form.PAGE),
        reference=_list_folds(report, folds),
        row_blocks=[(row, select_blocks(list_row(row, report), Form.PAGE)) for row in report.rows],
        sections=_group_sections(report),
        style=style,
        script=script,
        samples=samples,
        index=index,
        policy=content_security_policy(style, script),
        **page_pictures.draw_page_pictures(report),
    )


def _list_folds(report: Report, folds: Mapping[str, str]) -> list[tuple[str, str, str, Sequence[str]]]:
    title = "Steps, runs and GPUs" if report.steps else "Runs and GPUs" if report.several else "GPUs and energy"
    runs = next((folds[name] for name in ("Every run", "The GPU", "Per GPU") if name in folds), "")
    unchecked = ("not-assessed", "checklist", "quality", "notes")
    return [
        ("runs-and-gpus", title, runs, ("gains", "links", "runs", "gpus", "spending")),
        ("unchecked", "What could not be checked", folds.get("Not assessed", ""), unchecked),
        ("how", "Method", folds["Method"], ("method",)),
    ]


def _group_sections(report: Report) -> dict[str, list[Block]]:
    sections: dict[str, list[Block]] = {}
    name = ""
    for block in select_blocks(list_reference(report), Form.PAGE):
        name = block.anchor or name
        sections.setdefault(name, []).append(block)
    return sections


def _link_filter(ids: Collection[str]) -> Callable[[str], Markup]:
    def link(text: str) -> Markup:
        parts = _NAMED.split(text)
        links = (Markup('<a href="#{0}">{0}</a>').format(each) if each in ids else escape(each) for each in parts)
        return Markup().join(links)

    return link


def _first_marks(report: Report) -> dict[str, tuple[int, int]]:
    marks: dict[str, tuple[int, int]] = {}
    for place, run in enumerate(report.timeline):
        for position, strip in enumerate(run.strips):
            for mark in strip.marks:
                marks.setdefault(mark.card, (place, position))
    return marks
