"""Blocks, the units of content that every format prints from top to bottom."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto

from gpureport.columns import FloatArray
from gpureport.report.model.head import Action, FirstScreen, Tile
from gpureport.report.model.pictures import TimeSpent
from gpureport.report.model.shapes import Fact, Table

SECTION = 2  # title level of a section


class Form(Flag):
    """The outputs that print a block. SHEET is the full PDF, and PAPER the short one."""

    SCREEN = auto()
    MARKDOWN = auto()
    TEXT = auto()
    PAPER = auto()
    HTML = auto()
    SHEET = auto()
    PAGE = HTML | SHEET
    FULL = TEXT | PAGE
    LONG = MARKDOWN | FULL
    ALL = SCREEN | LONG
    EVERY_PAGE = FULL | PAPER


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time on a scale from `low` to `high` (in words: `ends`). NaN means "not recorded".

    `share` is the length relative to the longest series.
    """

    name: str
    values: FloatArray
    ends: str = ""
    low: float = 0.0
    high: float = 1.0
    note: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDot:
    """A figure of a run. If the mean of the step excludes the run, `text` says why."""

    run: str
    value: float
    counted: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """A figure's mean over the runs of a step and its 95% interval. `each_run` is empty for one run."""

    label: str
    value: float | None
    interval: tuple[float, float] | None
    text: str
    runs: tuple[RunDot, ...] = ()
    each_run: str = ""

    @property
    def sentence(self) -> str:
        return "; ".join(filter(None, (self.text, self.each_run)))


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalChart:
    """One figure of every step, as `dots` or as `bars` from zero. Shares are shown in per cent.

    `end` is the maximum of the axis if several panels share it, otherwise None.
    """

    title: str
    form: str
    share: bool
    rows: tuple[IntervalRow, ...]
    end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading and its content, printed in the order of the fields.

    Attributes:
        anchor: id of the section that starts here; empty if the block belongs to the previous section.
        part: name in `_LEAST` (see `terminal.py`) for shortening the block, or empty.
        label: text beside the title.
        level: 2 for the title of a section, 3 within a section, 4 for a lead-in.
        style: severity of a finding.
        texts: paragraphs, which a screen leaves out.
        marks: intervals to mark below the series, from 0 to 1.
        events: times of log events, from 0 to 1.
        facts: named statements; equal names are adjacent.
        code: lines to copy.
    """

    forms: Form = field(default=Form.FULL, repr=False)
    anchor: str = ""
    part: str = ""
    title: str = ""
    label: str = ""
    level: int = SECTION
    style: str = ""
    head: FirstScreen | None = None
    warnings: Sequence[str] = ()
    texts: Sequence[str] = ()
    bars: TimeSpent | None = None
    series: Sequence[Series] = ()
    marks: Sequence[tuple[float, float]] = ()
    marked: str = ""
    events: Sequence[float] = ()
    tiles: Sequence[Tile] = ()
    actions: Sequence[Action] = ()
    charts: Sequence[IntervalChart] = ()
    table: Table | None = None
    facts: Sequence[Fact] = ()
    code: Sequence[str] = ()

    @property
    def has_body(self) -> bool:
        """Whether the block has more than a heading. The label of a section counts as content."""
        said = (*self.warnings, *self.texts, *self.code, *self.series, *self.tiles, *self.actions, *self.charts)
        return any((self.level == SECTION and self.label, self.head, self.bars, self.table, *self.facts, *said))


def select_blocks(blocks: Iterable[Block], form: Form) -> list[Block]:
    kept = []
    # whether a preceding heading of each level has content
    filled = dict.fromkeys((2, 3, 4), False)
    for block in reversed([each for each in blocks if form in each.forms]):
        is_kept = block.has_body or (bool(block.title) and filled[block.level])
        if is_kept:
            kept.append(block)
        for level in filled:
            filled[level] = is_kept or filled[level] if not block.title or level < block.level else False
    return kept[::-1]
