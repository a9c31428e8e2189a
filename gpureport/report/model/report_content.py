"""The content of a report as printable text, with raw values where a format needs them.

Renderers compute nothing. Times are seconds since the run's first sample unless a name says otherwise; text
contains no markup or control characters.
"""

from dataclasses import dataclass

from gpureport.report.model.blocks import Block, IntervalChart
from gpureport.report.model.head import Action, Tile, Verdict, VerdictCode
from gpureport.report.model.pictures import LogEventLine, SignalHistory, TimeBar, Timeline, TimeSpent, UseOverTime
from gpureport.report.model.shapes import Fact, Table

SCHEMA = "gpureport.report/2"  # fields are added, never renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    quantity: str
    observed: str
    limit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One interval of a finding, in seconds since the first sample."""

    device: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceStep:
    """A step of the advice catalogue. `unknown` lists conditions that could not be checked."""

    name: str
    title: str
    do: str
    when: str
    unknown: str
    risk: str
    check: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCard:
    """All findings of one kind and cause in one run.

    Attributes:
        id: `F1`, `F2` ... in display order.
        status: `open`, or whether the last step still has these findings.
        run: label of the run; empty in a report on one run.
        run_index: position of the run in `Report.timeline`.
        lost_seconds: upper bound on the lost GPU-seconds (a lower bound if `lost_at_least`); None if unknown.
        omitted: the number of intervals missing from `occurrences`, in words.
        explains: ids of the cards that this one explains.
        lost_cost: cost of the lost time; None without a price.
        root: id of the card that explains this one, if any.
        repeats: id of another run's card with the same text and a larger loss, if any.
    """

    id: str
    kind: str
    title: str
    severity: str
    confidence: str
    status: str
    is_open: bool
    run: str
    run_index: int
    lost_seconds: float | None
    lost: str
    lost_ratio: float | None
    summary: str
    evidence: tuple[EvidenceLine, ...]
    recommendations: tuple[str, ...]
    cause: str
    where: str
    count: int
    occurrences: tuple[Occurrence, ...]
    omitted: str
    ruled_out: tuple[str, ...]
    explains: tuple[str, ...]
    fingerprints: tuple[str, ...]
    lost_cost: float | None = None
    lost_at_least: bool = False
    root: str = ""
    steps: tuple[AdviceStep, ...] = ()
    repeats: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """The outcome of a check in one run: `found`, `not found` or `not assessed`."""

    run: str
    step: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """All findings of one kind and cause across runs.

    Attributes:
        id: `R1`, `R2` ... in display order; also the anchor on the page.
        runs: number of runs and their steps (`3 of 3 runs of 1-starved`), or the GPUs of a single run.
        cost: lost GPU time per run (`55 to 67 GPU-s per run`); empty if unknown or zero.
        history: signals around the findings; None if nothing can be drawn.
        cards: ids of its finding cards, worst first.
        root: id of the row that explains this one, if any.
    """

    id: str
    kind: str
    title: str
    severity: str
    confidence: str
    runs: str
    extent: str
    summary: str
    cost: str
    advice: str
    caveats: tuple[str, ...]
    marks: tuple[RunMark, ...]
    history: SignalHistory | None
    cards: tuple[str, ...]
    root: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTable:
    """A table of a run's GPUs, and sentences about outliers, or `same` if there are none."""

    label: str
    table: Table
    outliers: tuple[str, ...]
    same: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    label: str
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    label: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuality:
    label: str
    facts: tuple[Fact, ...]
    notes: tuple[str, ...]
    events: tuple[LogEventLine, ...]
    more_events: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudgedLine:
    """Checks that lack the same data. `where` is empty if all runs and devices lack the data."""

    kinds: tuple[str, ...]
    where: str
    reason: str
    recording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How many checks found something, found nothing, or could not be assessed.

    Attributes:
        missing: number of checks that could not be assessed in any run of at least one step.
        partly: number of other checks that could not be assessed in at least one run.
        command: command that, with `other_commands`, records the missing data without gpureport.
    """

    sentence: str
    checks: int
    missing: int
    partly: int
    lines: tuple[NotJudgedLine, ...]
    limits: tuple[str, ...]
    advice: str = ""
    command: str = ""
    other_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLine:
    """The outcome of one check for one group of devices in a run.

    Attributes:
        group: the devices; empty if the run has one group.
        outcome: `found`, `suspected`, `judged, nothing found` or `cannot judge`.
        cards: ids of the cards of the findings.
        reason: why the kind could not be fully judged; empty if it was.
    """

    kind: str
    title: str
    group: str
    outcome: str
    cards: tuple[str, ...]
    reason: str
    recording: str
    outcome_text: str
    reason_code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The outcome of every check in a run, per group of devices. `summary` counts them."""

    label: str
    summary: str
    lines: tuple[AnswerLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """A recommended practice: `done`, `worth trying` or `cannot be judged`, and why."""

    item: str
    title: str
    state: str
    reason: str
    recording: str
    state_text: str
    reason_code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    label: str
    lines: tuple[CheckLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    definitions: tuple[Fact, ...]
    command: str
    versions: tuple[Fact, ...]
    inputs: Table
    kinds: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPart:
    """The parts of a report that compare steps, besides the table of steps.

    Attributes:
        grouped: names of the settings that define the groups; empty for a chain of steps.
        charts: figures of every step, explained by `legend`; `estimates` is a table of them.
        study: the best group, the effect of each setting, and caveats.
        reference: gains, remaining losses, and each step compared with the one before.
    """

    grouped: str
    charts: tuple[IntervalChart, ...]
    legend: str
    estimates: Table
    study: tuple[Block, ...]
    reference: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report.

    The open part of the page shows `subtitle`, `verdict`, `tiles`, `spent`, `use` or `worst`, `actions` and `steps`.
    The rest is in folds, in an appendix, or in the full form. `folds` has the summary line of each fold. `order`
    describes the order of the rows. If `has_target`, a tile shows the time to the user's target.
    """

    title: str
    subtitle: str
    version: str
    verdict: Verdict
    tiles: tuple[Tile, ...]
    steps: Table | None
    comparison: ComparisonPart | None
    gpu_time: tuple[TimeBar, ...]
    gpu_time_table: Table | None
    findings: tuple[FindingCard, ...]
    order: str
    timeline: tuple[Timeline, ...]
    gpus: tuple[GpuTable, ...]
    quality: tuple[RunQuality, ...]
    judgement: Judgement
    method: Method
    clocks: tuple[RunTable, ...] = ()
    stages: tuple[RunTable, ...] = ()
    spending: tuple[RunFacts, ...] = ()
    answers: tuple[Answers, ...] = ()
    checklists: tuple[Checklist, ...] = ()
    policy: Table | None = None
    spent: TimeSpent | None = None
    use: UseOverTime | None = None
    worst: SignalHistory | None = None
    actions: tuple[Action, ...] = ()
    rows: tuple[FindingRow, ...] = ()
    folds: tuple[Fact, ...] = ()
    has_target: bool = False
    schema: str = SCHEMA

    @property
    def several(self) -> bool:
        return len(self.quality) > 1

    @property
    def quiet_line(self) -> str:
        """The subtitle, preceded by the title unless it contains the title."""
        is_said = self.title.removesuffix("\N{HORIZONTAL ELLIPSIS}") in self.subtitle
        return self.subtitle if is_said else f"{self.title} \N{MIDDLE DOT} {self.subtitle}"

    @property
    def actions_heading(self) -> str:
        return "What could be tried" if self.verdict.code is VerdictCode.HEALTHY else "What to do next"

    @property
    def steps_heading(self) -> str:
        by = self.comparison.grouped if self.comparison else ""
        return f"Groups by {by}" if by else "Step by step" if self.comparison else "Advised, tried, outcome"
