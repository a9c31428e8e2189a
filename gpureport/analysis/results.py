"""What an analysis consists of: jobs, statistics, GPU time, costs, findings."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import fsum

from gpureport.findings import Answer, ChecklistEntry, Finding, Interval, NotJudged
from gpureport.recording import Run

_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of the job: `startup`, `steady` or `tail`."""

    kind: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a log: GPUs held without a break, and sustained work on some of them.

    Attributes:
        number: from 1, in the order of time.
        interval: from when the first GPU was held to when the last was free; the first job begins with the log.
        window: from the first to the last sustained activity of any GPU in it.
        active: the same of each GPU that worked, keyed by device id.
    """

    number: int
    interval: Interval
    window: Interval
    active: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric of one device over the whole recording.

    Attributes:
        metric: column name.
        mean: weighted by the time of each sample, log gaps excluded.
        sample_mean: plain mean of the rows.
        p5: 5% quantile, time-weighted like `p50` and `p95`.
        p50: median.
        p95: 95% quantile.
        max: highest value.
        min: lowest value.
        seconds: time the figures rest on.
        samples: rows with a value.
        changes, repeated_ratio, refresh_seconds: None; they were measured from changes of the value.
        effective_samples: the same as `samples`.
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
    changes: None = None
    repeated_ratio: None = None
    refresh_seconds: None = None
    effective_samples: int
    below: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """What a counter of the driver rose by from its first reading to its last.

    Attributes:
        total: the rise, in the unit of the counter; after a restart what it holds then is counted, not what it held
            since the reading before.
        in_gaps: the part of it counted across log gaps.
        seconds: time between the first and the last reading.
        restarts: how often it fell, since the driver was loaded again.
        impossible: rises left out because no GPU can show them.
    """

    total: float
    in_gaps: float
    seconds: float
    restarts: int = 0
    impossible: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """What one device did, without the time in which no job held it; None is not recorded.

    Attributes:
        device: device id.
        metrics: a summary for each recorded metric.
        idle_seconds: time with utilisation <= 5%, start-up and tail included, log gaps excluded.
        memory_peak_bytes: highest memory in use.
        memory_headroom_ratio: 1 - peak / total.
        energy_joules: integral of power; None also for a single sample, which has no length.
        observed_seconds: time that samples own, half an interval at both ends included.
        energy_counter: what the driver's energy counter rose by, in joules, from the first to the last sample of the
            log; None where it was not read twice.
        energy_seconds: time of the run the integral covers.
        energy_bridged_seconds: the part of it that no sample owns, between samples too near for a log gap.
        power_doubt: why power was recorded and cannot be right, as words on it, so that no energy is stated; empty
            where nothing speaks against it.
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
    "hollow",
    "low_use",
    "throttled",
    "waiting_for_input",
    "idle",
    "unused",
    "startup",
    "tail",
    "gpu_lost",
    "no_samples",
    "no_job",
)
"""Classes a GPU-second falls into, the one shown first first.

Throttled is not the time in which clocks were lowered but what that cost: of a second of work at 80% of the
reference clock, a fifth. It stays 0 where no clock tells.
"""

LOST_CLASSES = tuple(
    name for name in GPU_TIME_CLASSES if name not in {"computing", "short_pauses", "no_samples", "no_job"}
)
"""Classes of GPU time that are lost: neither used, nor unknown, nor outside any job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """A part of a class of GPU time: the class, what lies behind the time in a word, and the seconds."""

    name: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTime:
    """Where the time of one GPU went.

    Attributes:
        device: device id.
        seconds: by class; to the microsecond, together they are the time from first to last sample of the run.
        parts: of the classes with causes, the same time by cause: idle by the cause of the gap, waiting for input by
            the kind that was found, throttled by what lowered the clock. Those without time are left out.
    """

    device: str
    seconds: tuple[tuple[str, float], ...]
    parts: tuple[TimePart, ...] = ()

    @property
    def no_job_seconds(self) -> float:
        """Time in which no job held the GPU."""
        return dict(self.seconds).get("no_job", 0.0)

    @property
    def job_seconds(self) -> float:
        """Time in which a job held the GPU, or may have: what shares of GPU time are shares of."""
        return fsum(amount for name, amount in self.seconds if name != "no_job")


def sum_seconds_by_class(times: Iterable[Iterable[tuple[str, float]]]) -> dict[str, float]:
    """Return the seconds of several GPUs in each class, each GPU given by its own."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for time in times:
        for name, amount in time:
            seconds[name] += amount
    return dict(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """What an hour of one GPU costs, and where the price is stated; the amount is None where it is not."""

    device: str
    amount: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run cost by stated prices, in money and in carbon.

    Attributes:
        currency: name of the currency, empty where none is stated.
        date: when the prices held, empty where not stated.
        gpus: price of each GPU.
        total: cost of the GPUs from first to last sample; None where a GPU has no price.
        idle: the part of it that idle gaps and idle samples cost; None as above, or where the utilisation of a GPU was
            not recorded.
        carbon_intensity: grams of CO2 equivalent a kWh, as stated; None where it is not.
        carbon_source: where the intensity is stated.
        energy_joules: energy of all GPUs, by the driver's counter where it is read, by the integral of power else;
            None unless every GPU has either.
        counted: whether the energy of every GPU is that of the counter.
        carbon_grams: what that energy emitted; None without energy or intensity.
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
        """Return what the time a finding lost cost at most; None where the loss or a price is not known."""
        wanted = [gpu.amount for gpu in self.gpus if not finding.devices or gpu.device in finding.devices]
        prices = [amount for amount in wanted if amount is not None]
        if finding.lost_gpu_seconds is None or not prices or len(prices) < len(wanted):
            return None
        return finding.lost_gpu_seconds / _HOUR * sum(prices) / len(prices)


class Effect(StrEnum):
    """What a clock event reason means for a busy GPU: by design or by choice, a fault, or not known."""

    BENIGN = "benign"
    HARMFUL = "harmful"
    UNCLASSIFIED = "unclassified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockEventTotal:
    """What one clock event reason did to one GPU, as far as it was recorded.

    Attributes:
        device: the GPU.
        reason: NVML's name of the reason, or the bit in hex where it has none here.
        effect: whether it is a fault.
        busy_seconds: time of the busy samples that show it; None where its bit was not recorded.
        counted: what the driver's counter of it rose by, in seconds; None where it was not read twice.
        clock_hertz: median clock of the busy samples that show it, None without any.
        reference_hertz: clock of other busy samples, or the highest clock; None where neither is known.
        reference: whose clock that is, in words; empty without one.
        lost_ratio: estimated share of the busy time that the lower clock cost; None where it is not known, and for
            reasons that lower no clock of work.
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
    """When the processes of a job were seen, in microseconds.

    Attributes:
        started: the first sample with them, after one without; None where the log does not show the beginning.
        ended: the last sample with them, before one without; None where the log does not show the end.
    """

    started: int | None = None
    ended: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Distances between samples too short for a log gap and too long for the samples to own all of it.

    Attributes:
        count: how many, of the GPU with most.
        longest_seconds: the longest, from sample to sample.
        seconds: the time in them that no sample owns, that of the GPU with most.
    """

    count: int
    longest_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All that was found out about one run.

    Attributes:
        run: the run.
        coverage_ratio: share of its time, over all GPUs, that samples own; None where that is not known.
        jobs: the jobs of the log, in the order of time; empty where no GPU worked.
        no_job: when no job held a GPU, by device id; GPUs without such time are left out.
        observed_job: when the job's own processes were seen to begin and to end.
        phases: start-up, steady and tail, in order.
        statistics: one entry a device, of GPUs over the time of the jobs.
        whole_statistics: the same over the whole recording, of the GPUs with time in which no job held them.
        gpu_time: one entry a GPU.
        findings: by severity, then lost time, then start.
        not_judged: kinds that could not be judged, and why.
        limits: what this sampling cannot show, one sentence each.
        limit_codes: the code of each of these sentences.
        stages: one entry a stage, in the order they began; empty where a run has none.
        throttle_ledger: one entry a GPU and clock event reason that was recorded; empty where none was.
        cost: what the run cost; None where nothing is known of prices or carbon.
        answers: every kind once for each group of devices: found, judged, or why not.
        checklist: the questions of the practice, answered.
        pauses: distances between samples below a log gap that no sample owns in full; None without any.
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

    @property
    def seconds(self) -> float:
        """Time from the first to the last sample, without that between jobs and after the last."""
        length = (self.run.ended - self.run.started) / 1e6
        return fsum(job.interval.seconds for job in self.jobs) if self.no_job and self.jobs else length

    @property
    def job_gpu_seconds(self) -> float:
        """GPU time in which a job held a GPU, or may have: what shares of GPU time are shares of."""
        return fsum(gpu.job_seconds for gpu in self.gpu_time)

    @property
    def no_job_gpu_seconds(self) -> float:
        """GPU time in which no job held a GPU."""
        return fsum(gpu.no_job_seconds for gpu in self.gpu_time)
