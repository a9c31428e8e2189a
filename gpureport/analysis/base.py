"""The types every rule and every reader of an analysis shares."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from gpureport.analysis.cells import Cells
from gpureport.findings import Finding, Interval, NotJudged
from gpureport.metrics import Scope
from gpureport.recording import Recording, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of the job: `startup`, `steady` or `tail`."""

    kind: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric of one device over the whole recording.

    Attributes:
        metric: column name.
        mean: time-weighted over cells, log gaps excluded.
        sample_mean: plain mean of the rows.
        p5: 5 % quantile, time-weighted like `p50` and `p95`.
        p50: median.
        p95: 95 % quantile.
        max: highest value.
        min: lowest value.
        seconds: time the figures rest on.
        samples: rows with a value.
        changes: rows whose value differs from that of the row before: the fewest new readings there can be.
        repeated_ratio: share of the rows that repeat the one before; None with a single one.
        refresh_seconds: how often the driver gives a new value, told from the changes; None when they do not tell,
            as where sampling is slower than that.
        effective_samples: readings the rows hold at most: as many as fit into the time, where rows repeat them.
        below: (limit, share of time below it), for utilisation only.
    """

    metric: str
    mean: float
    sample_mean: float
    p5: float
    p50: float
    p95: float
    max: float
    min: float
    seconds: float
    samples: int
    changes: int
    repeated_ratio: float | None
    refresh_seconds: float | None
    effective_samples: int
    below: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """What one device did over the whole recording; None is not recorded.

    Attributes:
        device: device id.
        metrics: a summary for each recorded metric.
        idle_seconds: time with utilisation <= 5 %, start-up and tail included, log gaps excluded.
        memory_peak_bytes: highest memory in use.
        memory_headroom_ratio: 1 - peak / total.
        energy_joules: integral of power over cells; None also for a single sample, which has no length.
        observed_seconds: time covered by samples.
    """

    device: str
    metrics: tuple[MetricSummary, ...]
    idle_seconds: float | None
    memory_peak_bytes: int | None
    memory_headroom_ratio: float | None
    energy_joules: float | None
    observed_seconds: float

    def metric(self, name: str) -> MetricSummary | None:
        """Return the summary of one metric, None when it was not recorded."""
        return next((summary for summary in self.metrics if summary.metric == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatistics:
    """What each device did in one stage of a run, by the rows that stage recorded."""

    stage: str
    statistics: tuple[DeviceStatistics, ...]


GPU_TIME_CLASSES = (
    "computing",
    "short_pauses",
    "low_use",
    "throttled",
    "waiting_for_input",
    "idle",
    "startup",
    "tail",
    "no_samples",
)
"""Classes a GPU-second falls into, the one shown first first.

Throttled is not the time in which clocks were lowered but what that cost: of a second of work at 80 % of the
reference clock, a fifth. It stays 0 where no clock tells.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTime:
    """Seconds of one GPU by class; together they are the time from first to last sample of the run."""

    device: str
    seconds: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All that was found out about one run.

    Attributes:
        run: the run.
        phases: start-up, steady and tail, in order.
        statistics: one entry a device.
        gpu_time: one entry a GPU.
        findings: by severity, then lost time, then start.
        not_judged: kinds that could not be judged, and why.
        limits: what this sampling cannot show, one sentence each.
        stages: one entry a stage, in the order they began; empty where a run has none.
    """

    run: Run
    phases: tuple[Phase, ...]
    statistics: tuple[DeviceStatistics, ...]
    gpu_time: tuple[GpuTime, ...]
    findings: tuple[Finding, ...]
    not_judged: tuple[NotJudged, ...]
    limits: tuple[str, ...] = ()
    stages: tuple[StageStatistics, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a rule may look at.

    Attributes:
        recording: the recording.
        cells: the sampled series of each device, on cells, keyed by device id.
        active: from first to last sustained activity of each GPU that worked, keyed by device id.
        window: the job window, from the first to the last sustained activity of any GPU; None when none ran.
        found: findings of the kinds named in the rule's `after`.
    """

    recording: Recording
    cells: dict[str, Cells]
    active: dict[str, Interval]
    window: Interval | None
    found: tuple[Finding, ...] = ()

    @property
    def whole(self) -> Interval:
        """From the first to the last sample of the run."""
        return Interval(self.recording.run.started, self.recording.run.ended)

    def gpus(self) -> dict[str, Cells]:
        """Return the cells of each GPU that has samples, keyed by device id."""
        return {name: one for name, one in self.cells.items() if one.device.scope is Scope.GPU and len(one)}

    def hosts(self) -> dict[str, Cells]:
        """Return the cells of each host that has samples, keyed by device id."""
        return {name: one for name, one in self.cells.items() if one.device.scope is Scope.HOST and len(one)}

    def recorded(self, metric: str) -> bool:
        """Whether any device recorded a value of the metric."""
        return any(one.recorded(metric) for one in self.cells.values())

    def findings(self, kind: str, device: str | None = None) -> tuple[Finding, ...]:
        """Return earlier findings of a kind, of one device when given."""
        return tuple(f for f in self.found if f.kind == kind and (device is None or device in f.devices))


class Rule(Protocol):
    """One way to lose GPU time, or a family of ways that share a computation.

    The class docstring states the condition in words. Settings are fields of the dataclass that implements it,
    each a `Threshold`.

    Attributes:
        kinds: names of the findings it makes; the first is the module's name unless it is a family.
        requires: for each kind, metrics of which at least one of every group must be recorded.
        after: kinds whose findings it needs.
        wants: further metrics it looks at, which some of its answers or their certainty rest on.
        advice: for each kind, every recommendation it may give.
    """

    kinds: ClassVar[tuple[str, ...]]
    requires: ClassVar[tuple[tuple[str, ...], ...]]
    after: ClassVar[tuple[str, ...]]
    wants: ClassVar[tuple[str, ...]]
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]]

    def find(self, context: Context) -> Iterable[Finding | NotJudged]:
        """Yield findings, and what could not be judged."""
        ...
