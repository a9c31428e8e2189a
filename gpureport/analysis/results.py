"""The results of an analysis: jobs, statistics, GPU time, costs and findings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from math import fsum

from gpureport.findings import Answer, ChecklistEntry, Finding, Interval, NotJudged
from gpureport.recording import Run

_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    kind: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """When a job held GPUs, and when they did sustained work: `active` per GPU, `window` overall."""

    number: int
    interval: Interval
    window: Interval
    active: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """A device's metric: its time-weighted mean and quantiles over `seconds`, without log gaps.

    `below` pairs each limit with the share of time below it. Only utilisation has limits.
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
    changes: None = None
    repeated_ratio: None = None
    refresh_seconds: None = None
    effective_samples: int
    below: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """A driver counter's rise, the part of it in log gaps, and the numbers of resets and impossible rises."""

    total: float
    in_gaps: float
    seconds: float
    restarts: int = 0
    impossible: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """Statistics of one device while jobs held it.

    `idle_seconds` is the time at 5% utilisation or less. `energy_joules` is the integral of power
    over `energy_seconds`, of which `energy_bridged_seconds` are interpolated.
    """

    device: str
    metrics: tuple[MetricSummary, ...]
    idle_seconds: float | None
    memory_peak_bytes: int | None
    memory_headroom_ratio: float | None
    energy_joules: float | None
    observed_seconds: float
    energy_counter: CounterReading | None = None
    energy_seconds: float | None = None
    energy_bridged_seconds: float | None = None
    power_doubt: str = ""

    def metric(self, name: str) -> MetricSummary | None:
        return next((summary for summary in self.metrics if summary.metric == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatistics:
    stage: str
    statistics: tuple[DeviceStatistics, ...]


LOST_CLASSES = ("hollow", "low_use", "throttled", "waiting_for_input", "idle", "unused", "startup", "tail", "gpu_lost")
GPU_TIME_CLASSES = ("computing", "short_pauses", *LOST_CLASSES, "no_samples", "no_job")
"""Classes of GPU time; at 80% of the reference clock, a fifth of the time is `throttled`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    name: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTime:
    """The time of one GPU from first to last sample, by class. `parts` divides the time by known cause."""

    device: str
    seconds: tuple[tuple[str, float], ...]
    parts: tuple[TimePart, ...] = ()

    @property
    def no_job_seconds(self) -> float:
        return dict(self.seconds).get("no_job", 0.0)

    @property
    def job_seconds(self) -> float:
        """Time in which a job may have held the GPU; shares are relative to this time."""
        return fsum(amount for name, amount in self.seconds if name != "no_job")

    @property
    def seen_seconds(self) -> float:
        return self.job_seconds - dict(self.seconds).get("no_samples", 0.0)


def sum_seconds_by_class(times: Iterable[Iterable[tuple[str, float]]]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for name, amount in chain.from_iterable(times):
        seconds[name] = seconds.get(name, 0.0) + amount
    return seconds


NOTABLE = 0.1
"""Share of the observed job time above which short pauses are reported."""


def measure_pauses_ratio(seconds: Mapping[str, float]) -> float:
    """Return the share of short pauses in the job time, given each class's GPU-seconds."""
    observed = fsum(amount for name, amount in seconds.items() if name not in {"no_samples", "no_job"})
    return seconds.get("short_pauses", 0.0) / observed if observed else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """The price of one GPU-hour (None if unknown), and its source."""

    device: str
    amount: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a run in money and carbon. `idle` is the cost of idle and unused time.

    `counted` is true if the driver counted all energy. Carbon is CO2 equivalent.
    """

    currency: str
    date: str
    gpus: tuple[GpuPrice, ...]
    total: float | None
    idle: float | None
    carbon_intensity: float | None
    carbon_source: str
    energy_joules: float | None
    counted: bool
    carbon_grams: float | None

    def cost_of(self, finding: Finding) -> float | None:
        """Return the maximum cost of a finding, or None if its loss or a price is unknown."""
        wanted = [gpu.amount for gpu in self.gpus if not finding.devices or gpu.device in finding.devices]
        prices = [amount for amount in wanted if amount is not None]
        if finding.lost_gpu_seconds is None or not prices or len(prices) < len(wanted):
            return None
        return finding.lost_gpu_seconds / _HOUR * sum(prices) / len(prices)


class Effect(StrEnum):
    """Whether a clock event reason on a busy GPU is intended or indicates a fault."""

    BENIGN = "benign"
    HARMFUL = "harmful"
    UNCLASSIFIED = "unclassified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockEventTotal:
    """How a clock event reason (its NVML name or bit) affected a busy GPU.

    The reference is the clock in other busy samples or, failing that, the highest clock.
    """

    device: str
    reason: str
    effect: Effect
    busy_seconds: float | None
    counted: CounterReading | None
    clock_hertz: float | None
    reference_hertz: float | None
    reference: str
    lost_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedJob:
    """When the processes of a job were first and last seen, in microseconds."""

    started: int | None = None
    ended: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Pauses too long for samples to cover but shorter than log gaps. Values are maxima over GPUs."""

    count: int
    longest_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The results of analysing one run.

    `limits` are sentences about what samples cannot show, and `limit_codes` their codes. `answers` has one entry per
    kind and group of devices. `coverage_ratio` is the share of the run's time that samples cover, over all GPUs.
    `in_turn` is true if several GPUs were recorded one after another.

    Attributes:
        run: the run.
        findings: sorted by severity, then lost time, then start.
        not_judged: kinds that could not be judged, and why.
        statistics: one entry for each device; for GPUs, over the time in jobs.
        gpu_time: one entry for each GPU.
        cost: the cost of the run; None if neither prices nor carbon are known.
        jobs: the jobs in chronological order; empty if no GPU was used.
        phases: start-up, steady and tail, in order.
        stages: one entry for each stage, in chronological order.
    """

    run: Run
    phases: tuple[Phase, ...]
    statistics: tuple[DeviceStatistics, ...]
    gpu_time: tuple[GpuTime, ...]
    findings: tuple[Finding, ...]
    not_judged: tuple[NotJudged, ...]
    limits: tuple[str, ...] = ()
    stages: tuple[StageStatistics, ...] = ()
    throttle_ledger: tuple[ClockEventTotal, ...] = ()
    cost: Cost | None = None
    answers: tuple[Answer, ...] = ()
    checklist: tuple[ChecklistEntry, ...] = ()
    pauses: Pauses | None = None
    limit_codes: tuple[str, ...] = ()
    whole_statistics: tuple[DeviceStatistics, ...] = ()
    coverage_ratio: float | None = None
    jobs: tuple[Job, ...] = ()
    no_job: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)
    observed_job: ObservedJob = field(default_factory=ObservedJob)
    in_turn: bool = False

    @property
    def seconds(self) -> float:
        """Time from first to last sample, without the time between and after jobs."""
        length = (self.run.ended - self.run.started) / 1e6
        return fsum(job.interval.seconds for job in self.jobs) if self.no_job and self.jobs else length

    @property
    def job_gpu_seconds(self) -> float:
        return fsum(gpu.job_seconds for gpu in self.gpu_time)

    @property
    def no_job_gpu_seconds(self) -> float:
        return fsum(gpu.no_job_seconds for gpu in self.gpu_time)
