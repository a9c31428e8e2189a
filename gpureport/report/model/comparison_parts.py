"""Pieces that the comparison of steps consists of: figures with intervals, one step against another, gains."""

from dataclasses import dataclass

from gpureport.report.model.shapes import Cell, Fact, ReportSection, Table


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
        """The whole row in words, for readers who do not see the chart."""
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
class StepPairView:
    """One step against the step before it.

    Attributes:
        changes: what was recorded not to be the same, beside what makes the comparison doubtful.
        figures: before, after, difference and interval of every figure.
        effects: the same with verdicts, and since the first step where that is another one.
        whole: the same over whole recordings; None where the figures are of those.
        verdicts: what may be said of each figure.
        training: loss and accuracy at the end of both.
        findings: what became of findings, named by what became of each.
        checks: both values of everything that must agree.
        doubts: what makes the comparison doubtful.
        unknown: what may make it so, but was not recorded; empty when nothing.
    """

    label: str
    changes: tuple[Fact, ...]
    figures: Table
    effects: Table
    whole: Table | None
    verdicts: tuple[Fact, ...]
    training: tuple[Fact, ...]
    findings: tuple[Fact, ...]
    checks: Table
    doubts: tuple[str, ...]
    unknown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GainCell:
    """One figure of a row of gains.

    Attributes:
        interval: its 95% interval, with `one of 5 comparisons` where `comparisons` says so; empty without one.
        verdict: `better`, `worse`, `no clear change`, `not enough data` or `unconfirmed`; empty of a figure that is no
            change.
        comparisons: of how many comparisons it is one, where that is why nothing is claimed although its interval alone
            would show a change; None where it is not why.
        established: whether it got better or worse by the verdict, so that it may have a colour.
    """

    text: str
    interval: str = ""
    verdict: str = ""
    comparisons: int | None = None
    established: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GainRow:
    """A step with the number of its runs, or at the end all steps together; the facts are said below the figures."""

    head: Cell
    cells: tuple[GainCell, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GainTable:
    """The table of gains, a row a step; `potential` is what the last step could gain at most, empty where not known."""

    columns: tuple[str, ...]
    rows: tuple[GainRow, ...]
    potential: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPart:
    """What a report on several steps says beside their table.

    Attributes:
        grouped: names of the settings whose values make the groups; empty where the steps are a chain.
        legend: what the marks of the charts stand for; empty without charts.
        study: the best group and what each setting did; nothing where the steps are a chain.
        estimates: the same in figures.
        remaining: what the last step still loses, of groups the best one, and the largest finding left.
        across: what all steps together say.
        gains: the table of gains; None of groups, which are no chain.
    """

    grouped: str
    charts: tuple[IntervalChart, ...]
    legend: str
    study: tuple[ReportSection, ...]
    estimates: Table
    links: tuple[StepPairView, ...]
    remaining: tuple[Fact, ...]
    across: tuple[Fact, ...]
    gains: GainTable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierComparison:
    """Runs against earlier ones, a baseline or a night of last week; without a table nothing is compared."""

    title: str
    table: Table | None = None
    notes: tuple[str, ...] = ()
