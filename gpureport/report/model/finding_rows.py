"""Findings told once: all of one kind and cause, over every run of the report."""

from dataclasses import dataclass

from gpureport.report.model.pictures import SignalHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """What became of a kind in one run: `found`, `not found` or `not assessed`; `step` is the step of the run."""

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
