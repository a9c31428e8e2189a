"""A card: all findings of one kind and cause in one run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One measured value in words, the limit it was held against, and where that limit comes from."""

    quantity: str
    observed: str
    limit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One stretch of time a finding speaks of."""

    device: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceStep:
    """A step of the advice catalogue as a finding gives it.

    Attributes:
        unknown: what must hold for it and is not known; empty when all is.
    """

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
    """All findings of one kind and cause in one run, as one thing to read.

    Attributes:
        id: `F1`, `F2` ... in the order shown.
        status: `open`, or what became of it by the last step.
        run: label of the run; empty when the report holds one run.
        run_index: position of the run in `Report.timeline`.
        lost_seconds: GPU-seconds lost at most; None where it cannot be put in GPU time.
        occurrences: when, in order; at most as many as are listed, and `omitted` says how many more there are.
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
