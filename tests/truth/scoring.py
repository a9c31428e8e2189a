"""What is found in the files of a run, and how well it agrees with the labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gpureport
from gpureport.testing import Finding, Severity
from tests.support.tables import read_table
from tests.truth.labels import HOST_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One stretch of one finding on one GPU, None for the whole job, in seconds since the epoch, None for the run."""

    kind: str
    severity: Severity
    gpu: int | None
    start: float | None
    end: float | None


def found(folder: Path) -> list[Found]:
    """Return what is found in the files of one run, through its importers."""
    beside = folder / "host.csv"
    (recording,) = gpureport.read(folder / "nvidia-smi.csv", host=[beside] if beside.exists() else [])
    analysis = gpureport.analyze(recording)
    indices = {gpu.id: gpu.index for gpu in analysis.run.gpus}
    return [
        Found(kind=one.kind, severity=one.severity, gpu=gpu, start=start, end=end)
        for one in analysis.findings
        for gpu in [indices.get(device) for device in one.devices] or [None]
        for start, end in _spans(one)
    ]


def _spans(one: Finding) -> list[tuple[float, float] | tuple[None, None]]:
    return [(part.start / 1e6, part.end / 1e6) for part in one.intervals] or [(None, None)]


Span = tuple[float, float]
Mask = npt.NDArray[np.bool_]

SPANS = {
    name: (kinds.split(), neither.split(), float(times), float(events))
    for name, kinds, neither, times, events in read_table(Path(__file__).with_name("scores.tsv"))
}
"""What is scored by time: the kinds that stand for it, those whose time counts neither way, and the least agreement."""
WHOLE = (
    *("mem_leak", "mem_pressure", "mem_prealloc", "periodic_stall", "pcie_degraded", "ecc_error", "zombie_memory"),
    *("unused_gpu", "unexplained_change"),
)
"""What is scored by run."""
_SAME = 0.5


@dataclass(slots=True)
class Tally:
    labelled: float = 0.0
    recalled: float = 0.0
    said: float = 0.0
    wrong: float = 0.0
    events: int = 0
    matched: int = 0
    extra: int = 0
    missed_in: list[str] = field(default_factory=list)
    extra_in: list[str] = field(default_factory=list)

    @property
    def time_f1(self) -> float | None:
        """How well the times agree, 0 to 1; None where nothing is labelled."""
        precision = 1 - self.wrong / self.said if self.said else 0.0
        return _mean(precision, self.recalled / self.labelled) if self.labelled else None

    @property
    def event_f1(self) -> float | None:
        """How well the events agree, 0 to 1; None where nothing is labelled."""
        precision = self.matched / max(self.matched + self.extra, 1)
        return _mean(precision, self.matched / self.events) if self.events else None


@dataclass(slots=True)
class Runs:
    right: int = 0
    extra: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Scores:
    # by name of what is scored by time, over all runs
    spans: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in SPANS})
    # by kind that is scored by run
    whole: dict[str, Runs] = field(default_factory=lambda: {kind: Runs() for kind in WHOLE})
    traps: int = 0  # runs in which nobody has to act
    alarms: list[str] = field(default_factory=list)  # findings of severity problem in those, with the run

    def add(self, truth: Mapping[str, Any], found: Sequence[Found]) -> None:
        for name in SPANS:
            for gpu in [None] if name in (*HOST_KINDS, "log_gap") else range(truth["gpus"]):
                _compare(self.spans[name], name, gpu, truth, found)
        self._add_whole(truth, found)
        if truth["meta"]["trap"] or truth["meta"]["clean"]:
            self.traps += 1
            self.alarms += sorted({f"{truth['run']}: {each.kind}" for each in found if each.severity == "problem"})

    def _add_whole(self, truth: Mapping[str, Any], found: Sequence[Found]) -> None:
        said = {each.kind for each in found}
        holds = {each["kind"] for each in truth["run_level"]} | {each["kind"] for each in truth["events"]}
        holds |= {f"mem_{name}" for name in ("leak", "pressure", "prealloc") if truth["memory"][name]}
        for kind, runs in self.whole.items():
            runs.right += kind in said and kind in holds
            if kind in said - holds:
                runs.extra.append(truth["run"])
            if kind in holds - said:
                runs.missed.append(truth["run"])


def _mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _compare(tally: Tally, name: str, gpu: int | None, truth: Mapping[str, Any], found: Sequence[Found]) -> None:
    """Count what is labelled and what is said of one GPU, or of the job when it is None."""
    kinds, neither, *_ = SPANS[name]
    slack = max(1.5 * truth["interval"], 1.0)
    if gpu is None and name != "log_gap":
        slack = max(slack, 1.5 * truth["host_interval"])
    about = [each for each in truth["events"] if gpu is None or each["gpu"] in {None, gpu}]
    labelled = [each for each in about if each["kind"] in kinds]
    wanted = _union((each["start"], each["end"]) for each in labelled if each["resolvable"])
    spared = [(each["start"], each["end"]) for each in labelled if not each["resolvable"]]
    spared += [(each["start"], each["end"]) for each in about if each["kind"] in neither]
    if name != "log_gap":
        spared += [(each["start"], each["end"]) for each in about if each["kind"] == "log_gap"]
    own = (each for each in found if each.kind in kinds and (gpu is None or each.gpu in {None, gpu}))
    said = _union((each.start, each.end) for each in own if each.start is not None and each.end is not None)
    _time(tally, _Grid(truth), wanted, said, spared, slack=slack, holes=name != "log_gap")
    matched, extra = _events(wanted, said, spared, slack)
    tally.events += len(wanted)
    tally.matched += matched
    tally.extra += extra
    tally.missed_in += [truth["run"]] * (len(wanted) - matched)
    tally.extra_in += [truth["run"]] * extra


class _Grid:
    """Time of a run in cells of a tenth of the sampling interval, 0.1 s at least."""

    def __init__(self, truth: Mapping[str, Any]) -> None:
        self.cell = max(0.1, truth["interval"] / 10)
        self.begin = truth["t0"] - 60 * self.cell
        self.count = int(truth["duration"] / self.cell) + 120
        self.holes = self.mask((e["start"], e["end"]) for e in truth["events"] if e["kind"] == "log_gap")

    def mask(self, spans: Iterable[Span], wider: float = 0.0) -> Mask:
        mask = np.zeros(self.count, dtype=np.bool_)
        for start, end in spans:
            first, stop = (round((moment - self.begin) / self.cell) for moment in (start - wider, end + wider))
            mask[max(first, 0) : max(stop, 0)] = True
        return mask


def _time(  # noqa: PLR0913 - what is compared, and how
    tally: Tally, grid: _Grid, wanted: list[Span], said: list[Span], spared: list[Span], *, slack: float, holes: bool
) -> None:
    labelled, named = grid.mask(wanted), grid.mask(said)
    counted = named & (labelled | ~grid.mask(spared, slack))
    if holes:
        labelled &= ~grid.holes
    tally.labelled += grid.cell * float(labelled.sum())
    tally.recalled += grid.cell * float((labelled & grid.mask(said, slack)).sum())
    tally.said += grid.cell * float(counted.sum())
    tally.wrong += grid.cell * float((counted & ~grid.mask(wanted, slack)).sum())


def _events(wanted: list[Span], said: list[Span], spared: list[Span], slack: float) -> tuple[int, int]:
    """Return how many labelled events were found, and how many others were named."""
    left = list(said)
    matched = 0
    for event in wanted:
        best = max(left, key=lambda other: _shared(event, other), default=None)
        if best is not None and (
            _shared(event, best) >= _SAME or max(abs(event[0] - best[0]), abs(event[1] - best[1])) <= slack
        ):
            left.remove(best)
            matched += 1
    extra = [one for one in left if _covered(one, spared, slack) < _SAME]
    return matched, len(extra)


def _shared(one: Span, other: Span) -> float:
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(common, 0.0) / (max(one[1], other[1]) - min(one[0], other[0]))


def _covered(one: Span, spans: Iterable[Span], slack: float) -> float:
    wide = _union((start - slack, end + slack) for start, end in spans)
    return sum(max(min(one[1], end) - max(one[0], start), 0.0) for start, end in wide) / max(one[1] - one[0], 1e-9)


def _union(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined
