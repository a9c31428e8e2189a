"""Findings as they are told: once a kind and cause over all runs, and each of each run."""

from dataclasses import dataclass

from gpureport.report.model.pictures import SignalHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    quantity: str
    observed: str
    limit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    device: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceStep:
    """A step of the advice catalogue; `unknown` is what must hold for it and is not known."""

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
    """All findings of one kind and cause in one run, `F1`, `F2` ... in the order shown.

    `run_index` is the position of the run in `Report.timeline`. GPU-seconds and cost are the most that was lost, None
    where not known; `lost_at_least` is whether more was, but not known how much. Cards that follow from this one are
    the next ones; `repeats` is the card that says the same of another run, and lost more.
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
    """All findings of one kind and cause over every run: `R1`, `R2` ... in the order shown, each with its cards' ids.

    `runs` is `3 of 3 runs of 1-starved`, or for one run which GPUs. The history is the crop of the timeline in which it
    is seen, the worst run's; the root is the row that all its findings follow from.
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
