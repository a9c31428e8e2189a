"""What the page on many runs shows, as text ready to print."""

from dataclasses import dataclass

from gpureport.report.model.head import Action, Tile, Verdict
from gpureport.report.model.pictures import TimeSegment, TimeSpent
from gpureport.report.model.shapes import Fact, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LossBars:
    """A bar a row of a table: its lost GPU time, the largest class apart.

    Attributes:
        rows: segments of each row, in the unit of the page; none where a row has no bar.
        end: end of their common axis.
    """

    rows: tuple[tuple[TimeSegment, ...], ...]
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekColumn:
    """The GPU time of one week, in the unit of the page.

    Attributes:
        label: its first day in a few letters: `28 Sep`.
        used: GPU time that was not lost.
        lost: GPU time that was lost.
        unknown: GPU time of which nothing is known.
        lost_text: share that was lost; empty without a run.
        is_partial: whether the runs cover a part of it only.
        words: all of this in words.
    """

    label: str
    used: float
    lost: float
    unknown: float
    lost_text: str
    is_partial: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """A part of the page below its head.

    Attributes:
        id: its address on the page.
        title: its heading.
        line: one line that says what is in it.
        count: how many entries there are, the start of `line`; used alone where only some rows are shown. Empty where
            they are not counted.
        is_open: whether it is shown without being unfolded.
        table: a table; None for none.
        bars: bars of its rows; None for none.
        weeks: columns of a chart of weeks, the oldest first.
        caption: what a reader must know of bars or chart; for formats that draw them.
        facts: named statements.
        notes: sentences below it.
    """

    id: str
    title: str
    line: str
    count: str = ""
    is_open: bool = False
    table: Table | None = None
    bars: LossBars | None = None
    weeks: tuple[WeekColumn, ...] = ()
    caption: str = ""
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    """The page.

    Attributes:
        title: what a window is called.
        quiet_line: what was read.
        version: of gpureport.
        command: the command that made it.
        ended: last sample, in seconds since 1970: the date of the file.
        verdict: headline and lead.
        tiles: the key figures.
        spent: GPU time by class; None without any.
        actions: what would save most, at most three.
        parts: what follows, in order.
    """

    title: str
    quiet_line: str
    version: str
    command: str
    ended: int
    verdict: Verdict
    tiles: tuple[Tile, ...]
    spent: TimeSpent | None
    actions: tuple[Action, ...]
    parts: tuple[PagePart, ...]

    @property
    def subtitle(self) -> str:
        """The quiet line, by the name that the templates of a report use."""
        return self.quiet_line
