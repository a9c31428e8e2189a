"""Blocks: what terminal and Markdown print one below the other, whatever it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Flag, auto

from gpureport.columns import FloatArray
from gpureport.report.model.head import Action, FirstScreen, Tile
from gpureport.report.model.pictures import TimeSpent
from gpureport.report.model.shapes import Fact, Table


class Form(Flag):
    """Where a block stands: on one screen of a terminal, in Markdown, in the full text of a terminal."""

    SCREEN = auto()
    MARKDOWN = auto()
    FULL = auto()
    LONG = MARKDOWN | FULL
    ALL = SCREEN | LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time, drawn as heights.

    Attributes:
        name: what they are.
        ends: both ends of the scale in words; on a screen the heading says them.
        values: one a stretch of time; NaN where nothing was recorded.
        low: value of the least height.
        high: value of the greatest height.
        note: what to see.
        share: length as a share of the longest series.
    """

    name: str
    values: FloatArray
    ends: str = ""
    low: float = 0.0
    high: float = 1.0
    note: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading with what stands below it, in this order.

    Attributes:
        forms: where it stands.
        part: what it counts as where a screen is full; empty for what never gives way.
        title: empty for none.
        label: stands beside the title.
        style: severity of a finding, or `heading`, for a title below the headings in capitals; empty for one of those.
        head: headline, what was read, and the lead.
        texts: paragraphs; a screen has no room for them.
        bars: GPU time by class.
        series: lines over time.
        marks: begin and end of stretches to mark below the series, as shares of their length.
        marked: what is marked, in words.
        events: what the log says happened, as shares of the length of the series.
        tiles: key figures.
        actions: what to do.
        table: of which a screen has the first rows.
        facts: named statements.
        code: lines to be copied as they are.
    """

    forms: Form = Form.FULL
    part: str = ""
    title: str = ""
    label: str = ""
    style: str = ""
    head: FirstScreen | None = None
    texts: Sequence[str] = ()
    bars: TimeSpent | None = None
    series: Sequence[Series] = ()
    marks: Sequence[tuple[float, float]] = ()
    marked: str = ""
    events: Sequence[float] = ()
    tiles: Sequence[Tile] = ()
    actions: Sequence[Action] = ()
    table: Table | None = None
    facts: Sequence[Fact] = ()
    code: Sequence[str] = ()
