"""The table of gains: a row a step, with figures in columns and what is said in words below them."""

from dataclasses import dataclass

from gpureport.report.model.shapes import Cell, Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class GainCell:
    """One figure of a row.

    Attributes:
        text: the figure.
        interval: its 95% interval, with `one of 5 comparisons` where `comparisons` says so; empty without one.
        verdict: `better`, `worse`, `no clear change`, `not enough data` or `unconfirmed`; empty of a figure that is no
            change.
        comparisons: of how many comparisons it is one, where that is why nothing is claimed although its interval alone
            would show a change; None where it is not why.
        established: whether the verdict is that it got better or worse, so that it may have a colour.
    """

    text: str
    interval: str = ""
    verdict: str = ""
    comparisons: int | None = None
    established: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GainRow:
    """A step, or at the end all steps together.

    Attributes:
        head: the step, and how many runs it has; of the last row which steps it is about.
        cells: one a column after the first.
        facts: gains since the first step, what changed, quality, findings, and whether the change had been advised.
    """

    head: Cell
    cells: tuple[GainCell, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GainTable:
    """The table of gains.

    Attributes:
        columns: titles, of the steps first.
        rows: one a step, and of more than two steps a last one for all of them.
        potential: what the last step could gain at most, in a sentence or two; empty where nothing is known.
        notes: how to read the table, and which figures are missing for what reason.
    """

    columns: tuple[str, ...]
    rows: tuple[GainRow, ...]
    potential: str
    notes: tuple[str, ...]
