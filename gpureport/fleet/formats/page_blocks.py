"""The page on many runs as blocks, the most important first."""

from collections.abc import Iterator
from dataclasses import replace

from gpureport.fleet.page.page_model import FleetPage
from gpureport.fleet.page.parts.loss_tables import RUNS
from gpureport.fleet.page.parts.savings import HEADING
from gpureport.report.model.blocks import Block, Form
from gpureport.report.wording import display

_SPENT = "Where the GPU time went"
_BARS = 2
_PARTS = 2
"""Bars of a screen, and its tables beside the worst runs."""


def list_blocks(page: FleetPage) -> Iterator[Block]:
    """Yield the blocks of the page; a screen has those that are open on a page, the worst runs last."""
    yield Block(forms=Form.ALL, part="details", head=page)
    if page.spent:
        label, cut = page.spent.columns[0], replace(page.spent, bars=page.spent.bars[:_BARS])
        yield Block(forms=Form.SCREEN, part="bars", title=_SPENT, label=label, bars=cut)
        yield Block(forms=Form.LONG, title=_SPENT, label=label, texts=[page.spent.caption], bars=page.spent)
    yield Block(forms=Form.LONG, title="Key figures", tiles=page.tiles)
    yield Block(forms=Form.ALL, part="actions", title=HEADING, actions=page.actions)
    shown = [part for part in page.parts if part.is_open and not part.weeks]
    worst = [part for part in shown if part.id == RUNS]
    for part in [*[part for part in shown if part.id != RUNS][:_PARTS], *worst]:
        name = "runs" if part.id == RUNS else "rows"
        yield Block(forms=Form.SCREEN, part=name, title=part.title, label=part.count or part.line, table=part.table)
    for part in page.parts:
        said = [f"{display.raise_first(part.line)}."]
        yield Block(forms=Form.LONG, title=part.title, texts=said, table=part.table, facts=part.facts)
        yield Block(forms=Form.LONG, texts=part.notes)
