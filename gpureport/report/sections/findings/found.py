"""Findings told as one: those of one kind and cause in one run with one root, and all of a kind and cause."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import NamedTuple

from gpureport.analysis.series.intervals import Spans, to_spans, total_seconds
from gpureport.comparison.gains import MOST_UNSEEN_RATIO
from gpureport.findings import Confidence, Evidence, Finding, Severity
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms
from gpureport.report.wording.words import group_holders

SEVERITIES, CONFIDENCES = list(Severity), list(Confidence)
Key = tuple[str, str | None]  # kind and cause
_OTHERS = "GPUs"  # where runs name other ones
_NOTABLE = 0.1
"""Share of the run from which a fact that calls for no action is the headline of a run without problems."""
_NOTED = {"no_progress", "log_gap", "startup_idle", "tail_idle"}


class Part(NamedTuple):
    """A finding of the run at a position in the report; `root` is kind and cause of what it follows from."""

    position: int
    run: ReportRun
    finding: Finding
    root: Key | None


class Found:
    """Findings of one kind and cause, the one that lost most among them; `several` says whether runs stand beside it.

    What is said of a run is said of the one that lost most. `roots` has None where findings stand for themselves;
    `lost_by_run` are GPU-seconds by the position of a run, without runs whose loss is not known.
    """

    def __init__(self, parts: Sequence[Part], *, several: bool = False) -> None:
        self.parts, self.several = tuple(parts), several
        own = self.findings = tuple(part.finding for part in parts)
        self.finding = max(own, key=lambda each: (each.lost_gpu_seconds or 0.0, SEVERITIES.index(each.severity)))
        self.key: Key = self.finding.kind, self.finding.cause
        self.severity = max((each.severity for each in own), key=SEVERITIES.index)
        self.confidence = max((each.confidence for each in own), key=CONFIDENCES.index)
        self.runs = {part.position: part.run for part in parts}
        self.roots = {part.root for part in parts}
        self.devices = list(dict.fromkeys(device for each in own for device in each.devices))
        self.fingerprints = tuple(dict.fromkeys(each.fingerprint for each in own))
        self.intervals = tuple(span for each in own for span in each.intervals)
        self.lost_by_run = _add_up((part.position, part.finding.lost_gpu_seconds) for part in parts)
        self.lost = max(self.lost_by_run.values(), default=None)
        self.has_one_gpu = all(len(run.run.gpus) == 1 for run in self.runs.values())
        # the kind in words, or its cause where that says more; and the cause
        self.title = terms.kind_title(display.shorten(display.clean(self.finding.kind), 80), self.finding.cause)
        self.cause = display.shorten(display.clean(self.finding.cause or "").replace("_", " "), 80)

    @cached_property
    def groups(self) -> tuple["Found", ...]:
        """Its findings apart by run and root."""
        held = group_holders(((part.position, part.root), part) for part in self.parts)
        return tuple(Found(parts, several=self.several) for parts in held.values()) if len(held) > 1 else (self,)

    @cached_property
    def worst(self) -> "Found":
        """The group that lost most; without losses the gravest."""
        return max(self.groups, key=lambda group: (group.lost or 0.0, SEVERITIES.index(group.severity)))

    @property
    def run(self) -> ReportRun:
        return self.worst.parts[0].run

    @property
    def position(self) -> int:
        return self.worst.parts[0].position

    @cached_property
    def shares(self) -> list[float]:
        """Share of the GPU time of each run that was lost, of what was observed where that is less than half."""
        held = {place: _measure_held(self.runs[place]) for place in self.lost_by_run}
        return [lost / held[place] for place, lost in self.lost_by_run.items() if held[place]]

    @property
    def share(self) -> float:
        return max(self.shares, default=0.0)

    @cached_property
    def cost_by_run(self) -> dict[int, float]:
        """What the lost time of each run cost; without runs that have no price."""
        priced = ((part, cost) for part in self.parts if (cost := part.run.analysis.cost) is not None)
        return _add_up((part.position, cost.cost_of(part.finding)) for part, cost in priced)

    @cached_property
    def spans(self) -> Spans:
        """When it lasted in the run while jobs held GPUs, stretches that GPUs share once."""
        return to_spans(span for each in self.worst.findings for span in self.run.held_stretches(each))

    @property
    def seconds(self) -> float:
        return total_seconds(self.spans)

    @property
    def is_plural(self) -> bool:
        """Whether several GPUs are concerned: of the run, or other ones in other runs."""
        return self.gpus == _OTHERS or len(self.worst.devices or self.run.run.gpus) > 1

    @cached_property
    def gpus(self) -> str:
        """The GPUs concerned: `GPU 2`, `all 4 GPUs`, `the GPU`; `GPUs` where runs name other ones."""
        if self.has_one_gpu and (len(self.runs) > 1 or not self.devices):
            return "the GPU"
        held = group_holders((part.position, device) for part in self.parts for device in part.finding.devices or [""])
        names = {self.runs[place].devices([each for each in devices if each]) for place, devices in held.items()}
        return names.pop() if len(names) == 1 else _OTHERS

    def restrict_to(self, step: str) -> "Found | None":
        parts = [part for part in self.parts if part.run.step == step]
        return Found(parts, several=self.several) if parts else None

    def list_evidence(self, metric: str, *statistics: str) -> Iterator[Evidence]:
        """Yield measured values, of each finding the first whose statistic is so called, else begins so.

        Args:
            metric: name of the column or quantity, `*` for any.
            statistics: beginnings of the statistic; one that ends with a dot must match in full.
        """
        for finding in self.findings:
            known = [each for each in finding.evidence if metric in {each.metric, "*"}]
            named = [each for wanted in statistics for each in known if each.statistic == wanted.rstrip(".")]
            begun = [each for wanted in statistics for each in known if f"{each.statistic}.".startswith(wanted)]
            yield from (named or begun)[:1]


def _add_up(amounts: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    held = group_holders((position, amount) for position, amount in amounts if amount is not None)
    return {position: fsum(each) for position, each in held.items()}


def _measure_held(run: ReportRun) -> float:
    unseen = gpu_time.unobserved_ratio([run.analysis])
    return run.analysis.job_gpu_seconds * (1 - unseen if unseen > MOST_UNSEEN_RATIO else 1)


def gather(runs: Sequence[ReportRun]) -> tuple[Found, ...]:
    """Return the findings of all runs by kind and cause: by severity, then by the worst run's loss, roots first."""
    held: dict[Key, list[Part]] = {}
    for position, run in enumerate(runs):
        named = {each.fingerprint: (each.kind, each.cause) for each in run.analysis.findings}
        for each in run.analysis.findings:
            held.setdefault((each.kind, each.cause), []).append(Part(position, run, each, named.get(each.root or "")))
    found = [Found(parts, several=len(runs) > 1) for parts in held.values()]
    return tuple(sorted(found, key=lambda each: (*rank(each), None not in each.roots)))


def rank(found: Found) -> tuple[int, float]:
    return -SEVERITIES.index(found.severity), -(found.lost or 0.0)


def find_worst(runs: Sequence[ReportRun]) -> Found | None:
    """Return the worst findings of some runs: by severity, then by GPU time lost; None where all is well.

    What follows from another finding is never the worst. A fact counts where it takes a tenth of its run.
    """
    every = [group for found in gather(runs) for group in found.groups if None in group.roots]
    return min(filter(_calls_for_attention, every), key=rank, default=None)


def _calls_for_attention(found: Found) -> bool:
    if found.severity is not Severity.INFO:
        return True
    whole = found.run.seconds
    share = found.share if found.shares else found.seconds / whole if whole else 0.0
    return found.finding.kind in _NOTED and whole > 0 and share >= _NOTABLE
