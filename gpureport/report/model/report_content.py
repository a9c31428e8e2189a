"""The content of a report: what every format shows, as text ready to print, with raw values where one is needed.

A renderer lays out and never computes. Times are seconds since the run's first sample unless a name says
otherwise; text holds no markup and no control characters.
"""

from dataclasses import dataclass

from gpureport.report.model.blocks import Block, IntervalChart
from gpureport.report.model.head import Action, Tile, Verdict, VerdictCode
from gpureport.report.model.pictures import LogEventLine, SignalHistory, TimeBar, Timeline, TimeSpent, UseOverTime
from gpureport.report.model.shapes import Fact, Table

# name and version of the content; fields are added, never renamed
SCHEMA = "gpureport.report/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One measured value in words, the limit it was held against, and where that limit comes from."""

    quantity: str
    observed: str
    limit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One stretch of time a finding speaks of, in seconds since the first sample."""

    device: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceStep:
    """A step of the advice catalogue; `unknown` is what must hold for it and is not known, empty when all is."""

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
        id: `F1`, `F2` ... in the order shown.
        status: `open`, or what became of it by the last step.
        run: label of the run; empty when the report holds one run.
        run_index: position of the run in `Report.timeline`.
        lost_seconds: GPU-seconds lost at most; None where it cannot be put in GPU time.
        occurrences: when, in order; `omitted` says how many more there are than are listed.
        explains: ids of cards that follow from this one, which are the next ones.
        lost_cost: what the lost time cost in the currency of the prices; None where no price is stated.
        lost_at_least: whether more was lost than `lost_seconds`, but not known how much.
        root: id of the card this one follows from; empty when it stands for itself.
        repeats: id of the card that says the same of another run, and lost more; empty where none does.
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
    """What became of a kind in one run: `found`, `not found` or `not assessed`."""

    run: str
    step: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """All findings of one kind and cause, over every run.

    Attributes:
        id: `R1`, `R2` ... in the order shown; page anchors use it.
        runs: in how many runs it was found, and in which steps: `3 of 3 runs of 1-starved`; for one run, which GPUs.
        cost: what it cost: `55 to 67 GPU-s a run`; empty where it is not known or nothing.
        history: the crop of the timeline in which it is seen; None where nothing can be drawn.
        cards: ids of the finding cards it gathers, the worst first.
        root: id of the row that all its findings follow from; empty where they stand for themselves.
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
    """The GPUs of one run side by side, and in words what sets one apart; `same` is said where nothing does."""

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
    """Checks that one thing to record would make possible; `where` are runs and devices, if that is not everywhere."""

    kinds: tuple[str, ...]
    where: str
    reason: str
    recording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How many checks found something, were clear, or could not be made.

    Attributes:
        missing: how many of them some step could not assess in any of its runs.
        partly: how many of the others some run could not assess.
        command: what records it where gpureport cannot be installed, beside `other_commands`.
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
    """One kind of one run: what became of it on a group of devices.

    Attributes:
        group: the devices; empty when the run has one group.
        outcome: `found`, `suspected`, `judged, nothing found` or `cannot judge`.
        cards: ids of the cards that show what was found.
        reason: why it could not be judged, wholly or in part; empty when it could.
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
    """Every kind of one run, once a group of devices; `summary` names how many of each outcome there are."""

    label: str
    summary: str
    lines: tuple[AnswerLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """A question of the practice answered: `done`, `worth trying` or `cannot be judged`, and why."""

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
    """What a report on several steps says beside their table.

    Attributes:
        grouped: names of the settings whose values make the groups; empty where the steps are a chain.
        charts: figures of every step, the marks of which `legend` explains; `estimates` has the same as a table.
        study: the best group and what each setting did, and what makes comparisons doubtful.
        reference: gains of a chain, what is still lost, each step against the one before, and what must agree.
    """

    grouped: str
    charts: tuple[IntervalChart, ...]
    legend: str
    estimates: Table
    study: tuple[Block, ...]
    reference: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    The first screen and the open page show `subtitle` (the quiet line of what was read), `verdict`, `tiles`, `spent`,
    `use` or `worst`, `actions` and `steps`. Everything else stands in folds, in an appendix, or behind
    `--detail full`; `folds` says of each fold in one line what is in it. `order` says in which order the finding
    cards are.
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
    schema: str = SCHEMA

    @property
    def several(self) -> bool:
        return len(self.quality) > 1

    @property
    def quiet_line(self) -> str:
        """What was read, after the title where that says something else; a long chain of steps is cut in it."""
        is_said = self.title.removesuffix("\N{HORIZONTAL ELLIPSIS}") in self.subtitle
        return self.subtitle if is_said else f"{self.title} \N{MIDDLE DOT} {self.subtitle}"

    @property
    def actions_heading(self) -> str:
        return "What could be tried" if self.verdict.code is VerdictCode.HEALTHY else "What to do next"

    @property
    def steps_heading(self) -> str:
        by = self.comparison.grouped if self.comparison else ""
        return f"Groups by {by}" if by else "Step by step"
