"""Pieces that the comparison of steps consists of: figures with intervals, and one step against another."""

from dataclasses import dataclass, field

from gpureport.report.model.gain_table import GainTable
from gpureport.report.model.shapes import EMPTY, HEADING, Fact, ReportSection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDot:
    """One figure of a run.

    Attributes:
        run: name of the run.
        value: in the unit shown.
        counted: whether the mean of its step counts it; a run that is too short may be left out.
        text: value in words, and of a run that is left out its name and why.
    """

    run: str
    value: float
    counted: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One figure of a step.

    Attributes:
        label: the step.
        value: a mean over its runs in the unit shown; None when not recorded.
        interval: ends of its 95% interval, cut where the figure cannot be; None where none can be told.
        text: value and interval in words.
        runs: the figure of each run that has one.
        each_run: all of them in words; empty where `text` says the same of a single run.
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
    """One figure of every step.

    Attributes:
        title: the figure.
        form: `dots`, or `bars` from zero.
        share: whether it is a share, shown in per cent.
        rows: one a step.
        end: largest value of the axis, shared by panels beside each other; None where the rows set it.
    """

    title: str
    form: str
    share: bool
    rows: tuple[IntervalRow, ...]
    end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPairView:
    """One step against the step before it. Text formats show every field with a heading.

    Attributes:
        label: both labels.
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
    """What a report on several steps says beside their table.

    Text formats show every field with a heading.

    Attributes:
        grouped: names of the settings whose values make the groups; empty where the steps are a chain.
        charts: figures of every step with their intervals.
        legend: what the marks of the charts stand for; empty without charts.
        study: the best group and what each setting did; nothing where the steps are a chain.
        estimates: the same in figures.
        links: every step against the one before.
        remaining: what the last step still loses, of groups the best one, and the largest finding left.
        across: what all steps together say.
        gains: the table of gains; None of groups, which are no chain.
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
    """Runs against earlier ones: a baseline, or a night of last week.

    Attributes:
        title: what the earlier runs are.
        table: the change of every figure; None where nothing is compared.
        notes: why not, or what may be doubted.
    """

    title: str
    table: Table | None = None
    notes: tuple[str, ...] = ()
