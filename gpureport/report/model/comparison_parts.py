"""Pieces that the comparison of steps consists of: figures with intervals, and one step against another."""

from dataclasses import dataclass, field

from gpureport.report.model.gain_table import GainTable
from gpureport.report.model.shapes import EMPTY, HEADING, Fact, ReportSection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDot:
    """One figure of a run, in the unit shown; the text says of a run that the mean does not count its name and why."""

    run: str
    value: float
    counted: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One figure of a step, a mean over its runs in the unit shown; None when not recorded.

    The interval is cut where the figure cannot be; `each_run` is empty where `text` says the same of a single run.
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
    """One figure of every step, as `dots`, or as `bars` from zero.

    The largest value of the axis is shared by panels beside each other; None where the rows set it.
    """

    title: str
    form: str
    share: bool
    rows: tuple[IntervalRow, ...]
    end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPairView:
    """One step against the step before it. Text formats show every field with a heading.

    The effects are the figures with verdicts, and since the first step where that is another one.
    """

    label: str
    changes: tuple[Fact, ...] = field(metadata={HEADING: "Changed"})
    figures: Table
    effects: Table = field(metadata={HEADING: "Differences"})
    whole: Table | None = field(metadata={HEADING: "Whole recordings"})
    verdicts: tuple[Fact, ...] = field(metadata={HEADING: "Verdicts"})
    training: tuple[Fact, ...] = field(metadata={HEADING: "Training at the end"})
    findings: tuple[Fact, ...] = field(
        metadata={HEADING: "What became of findings", EMPTY: "Neither step has a finding."}
    )
    checks: Table = field(metadata={HEADING: "Comparable?"})
    doubts: tuple[str, ...] = field(metadata={HEADING: "Doubtful"})
    unknown: str = field(metadata={HEADING: "Not known"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPart:
    """What a report on several steps says beside their table. Text formats show every field with a heading.

    Of groups, which are no chain, it names the settings that make them, holds the study, and has no table of gains.
    """

    grouped: str
    charts: tuple[IntervalChart, ...]
    legend: str
    study: tuple[ReportSection, ...] = field(metadata={HEADING: "Study"})
    estimates: Table = field(metadata={HEADING: "Means of steps"})
    links: tuple[StepPairView, ...]
    remaining: tuple[Fact, ...] = field(metadata={HEADING: "What is still lost"})
    across: tuple[Fact, ...] = field(metadata={HEADING: "Over all steps"})
    gains: GainTable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierComparison:
    """Runs against earlier ones: a baseline, or a night of last week; without a table the notes say why."""

    title: str
    table: Table | None = None
    notes: tuple[str, ...] = ()
