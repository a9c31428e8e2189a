"""Findings as they are told: once a kind and cause over all runs, and each of each run."""

from dataclasses import dataclass

from gpureport.report.model.pictures import SignalHistory


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
