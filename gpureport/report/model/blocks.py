"""Blocks: what every format shows one below the other, whatever it is about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto

from gpureport.columns import FloatArray
from gpureport.report.model.head import Action, FirstScreen, Tile
from gpureport.report.model.pictures import TimeSpent
from gpureport.report.model.shapes import Fact, Table

SECTION = 2  # level of its title


class Form(Flag):
    """Where a block stands: on a screen, in Markdown, the full text, the short PDF, the HTML page and the full PDF."""

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
    """Values over time, drawn as heights from `low` to `high`; NaN where nothing was recorded.

    `ends` are both ends of the scale in words, `share` is its length as a share of the longest series.
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
    """One figure of a run, in the unit shown; of a run that the mean of its step leaves out, `text` says why."""

    run: str
    value: float
    counted: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One figure of a step, a mean over its runs in the unit shown, None when not recorded, with its 95% interval.

    `each_run` has all runs in words; it is empty where `text` says the same of a single run.
    """

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
    """One figure of every step: `dots`, or `bars` from zero; a share is shown in per cent.

    `end` is the largest value of the axis, shared by panels beside each other; None where the rows set it.
    """

    title: str
    form: str
    share: bool
    rows: tuple[IntervalRow, ...]
    end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading with what stands below it, in this order.

    Attributes:
        anchor: id of the section that begins with it; blocks without one belong to that before.
        part: what it counts as where a screen is full; empty for what never gives way.
        label: stands beside the title.
        level: 2 for the title of a section, 3 within it, 4 for a few words above what follows.
        style: severity of a finding.
        warnings: what a reader must know of the rest.
        texts: paragraphs; a screen has no room for them.
        marks: begin and end of stretches to mark below the series, as shares of their length.
        events: what the log says happened, as shares of the length of the series.
        charts: figures of steps; text says them in words.
        table: of which a screen has the first rows.
        facts: named statements; those of one name follow each other.
        code: lines to be copied as they are.
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
        """Whether anything stands in it but a heading; that of a section may say all of it."""
        said = (*self.warnings, *self.texts, *self.code, *self.series, *self.tiles, *self.actions, *self.charts)
        return any((self.level == SECTION and self.label, self.head, self.bars, self.table, *self.facts, *said))


def select_blocks(blocks: Iterable[Block], form: Form) -> list[Block]:
    """Return the blocks of a form, without headings below which nothing stands."""
    kept = []
    # whether anything stands below a heading of a level that is yet to come
    filled = dict.fromkeys((2, 3, 4), False)
    for block in reversed([each for each in blocks if form in each.forms]):
        is_kept = block.has_body or (bool(block.title) and filled[block.level])
        if is_kept:
            kept.append(block)
        for level in filled:
            filled[level] = is_kept or filled[level] if not block.title or level < block.level else False
    return kept[::-1]
