"""How little GPUs worked, and what was asked of the machine meanwhile; its kinds and causes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, fsum

import numpy as np

from gpureport.analysis import certainty, phrases
from gpureport.analysis.job import params
from gpureport.analysis.job.params import JobParams, Setting
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context, Limits
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import BELOW, IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Severity

CORES, CPU, IOWAIT = "cpu_logical_cores", "cpu_utilization_ratio", "cpu_iowait_ratio"
CORE, PROCESS, JOB = "cpu_busiest_core_ratio", "process_cpu_cores", "job_cpu_cores"
RECEIVED, SENT = "pcie_receive_bytes_per_second", "pcie_transmit_bytes_per_second"

WAIT_KINDS = tuple(name for name, kind in KINDS.items() if kind.gpu_time_class == "waiting_for_input")
"""Kinds of waiting for input; each leaves out the time of earlier ones."""
LOW_USE_KINDS = ("underutilised", "low_util_cause_unknown")
"""Kinds of otherwise unexplained low use, with and without a CPU series."""
OTHER_LOAD, BESIDE_OTHERS = "other programs", "not shown beside other programs"
"""Causes where programs outside the job fill the CPU: of a wait, and with a job that hardly asks for it."""
COPYING = "copying"
"""Cause of a wait for data on its way between host and GPU."""
ROWS = 30
"""Point samples that make a mean."""
NOTABLE = 0.1
"""Share of the observed time of jobs from which short pauses are named: they may be hidden waits."""


def measure_pauses_ratio(seconds: Mapping[str, float]) -> float:
    """Return the share of short pauses in the observed time of jobs, by GPU-seconds per class."""
    observed = fsum(amount for name, amount in seconds.items() if name not in {"no_samples", "no_job"})
    return seconds.get("short_pauses", 0.0) / observed if observed else 0.0


def is_beside(host: DeviceSeries, gpu: DeviceSeries) -> bool:
    """Return whether a GPU is of the machine of a host."""
    return host.device.node in {None, gpu.device.node}


def list_hosts(context: Context, gpu: DeviceSeries) -> list[DeviceSeries]:
    """Return the machines of a GPU."""
    return [host for host in context.hosts().values() if is_beside(host, gpu)]


def is_hardly_used(job: FloatArray, cpu: FloatArray, cores: float, few: float) -> BoolArray:
    """Return where a job keeps fewer cores busy than the share `few` of the load, one at most."""
    return np.asarray(job < few * np.minimum(cpu * np.fmax(cores, 1.0), 1.0), dtype=np.bool_)


def count_logical_cores(host: DeviceSeries) -> float:
    """Return the cores that a host's log counted, NaN if none."""
    counted = host.known_values(CORES)
    return float(counted.max()) if len(counted) else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingParts:
    """What is said of low utilisation: why, by what evidence, and how surely.

    `problem` is the lost share of the job that decides its cost, `shortest` the limit of its length.
    """

    cause: str | None
    shown: Sequence[Evidence] = ()
    ruled_out: Sequence[str] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    case: str | None = None
    most: Confidence = Confidence.HIGH
    problem: float = np.inf
    shortest: str = "shortest"


def build_finding(
    context: Context, limits: Limits, kind: str, spans: Mapping[str, Spans], parts: FindingParts
) -> Finding:
    """Return low utilisation of GPUs, by their stretches, with its cost."""
    series = [context.series[name] for name in spans]
    used = np.concatenate([one.values(UTILISATION) for one in series])
    cells = [(*one.averaging_windows(context.whole), spans[one.device.id]) for one in series]
    held = np.where(np.isnan(used), 0.0, np.concatenate([intervals.overlap_seconds(*cell) for cell in cells]))
    whole, lost = max(float(held.sum()), 1e-9), float(np.nansum((1 - np.clip(used, 0, 1)) * held))
    rows = {f"at {IDLE_RATIO:.0%} and less": used <= IDLE_RATIO + 1e-6}
    rows |= {f"below {level:.0%}": used < level - 1e-6 for level in BELOW}
    shares = {f"share of that time {where}": float(held[found].sum()) / whole for where, found in rows.items()}
    seconds, mean = max(map(intervals.total_seconds, spans.values())), 1 - lost / whole
    inside = (intervals.contains(spans[one.device.id], one.times) for one in series)
    samples = sum(one.count_readings(UTILISATION, rows) for one, rows in zip(series, inside, strict=True))
    least = parts.problem * (context.window or context.whole).seconds * len(series)
    sure = certainty.confidence_by_readings(samples // len(series), max(one.interval for one in series))
    use = f"{phrases.gpu_names(tuple(spans), tuple(context.gpus()))} averaged {phrases.percent(mean)} utilisation"
    return KINDS[kind].finding(
        Severity.PROBLEM if lost >= least else Severity.WARNING,
        certainty.lowest_confidence(parts.most, sure),
        spans,
        (
            limits.compare(UTILISATION, "mean", mean, "<", "gpu"),
            *(Evidence(metric=UTILISATION, statistic=each, observed=share, unit="1") for each, share in shares.items()),
            limits.compare("duration", "total of one GPU", seconds, ">=", parts.shortest),
            *parts.shown,
        ),
        spans=intervals.to_intervals(intervals.union(np.concatenate(list(spans.values())))),
        lost=lost,
        cause=parts.cause,
        case=parts.case,
        samples=samples,
        ruled_out=parts.ruled_out,
        use=f"{use} over {phrases.duration(seconds)}",
        **parts.words,
    )


def is_surely_below(samples: FloatArray, limit: float) -> bool:
    """Return whether the mean of point samples is surely below a limit: a long log has many low places."""
    known = known_of(samples)
    # by three standard errors
    return bool(len(known) > 1 and known.mean() + 3.0 * known.std(ddof=1) / np.sqrt(len(known)) <= limit)


def known_of(values: FloatArray) -> FloatArray:
    """Return values without NaN."""
    return values[~np.isnan(values)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCount:
    """Logical cores and the GPUs that share them: of a machine, or of one process for one GPU."""

    cores: float
    gpus: int
    is_of_process: bool = False

    @property
    def most_workers(self) -> int:
        """Loader workers of one process at one per core, at least one: PyTorch documents a warning above."""
        return max(floor(self.cores / self.gpus), 1)

    @property
    def words(self) -> str:
        """The fact: `the machine has 16 cores for 2 GPUs`."""
        cores = phrases.count_of(round(self.cores), "core")
        whose = f"each process has {cores}"
        return whose if self.is_of_process else f"the machine has {cores} for {phrases.count_of(self.gpus, 'GPU')}"

    @property
    def evidence(self) -> Evidence:
        """The same as evidence, which no limit belongs to."""
        return Evidence(metric=CORES, statistic="for each GPU", observed=self.cores / self.gpus, unit="")


def count_cores(params: JobParams, gpus: int) -> CoreCount | None:
    """Return the cores that params state, None where they do not."""
    if params.cores_per_process is not None and params.cores_per_process.value > 0:
        return CoreCount(cores=params.cores_per_process.value, gpus=1, is_of_process=True)
    if params.cores is not None and params.cores.value > 0 and gpus:
        return CoreCount(cores=params.cores.value, gpus=gpus)
    return None


def say_cores(cores: CoreCount | None) -> str:
    """Return the fact as a sentence, empty where it is not known."""
    return phrases.capitalize(cores.words) if cores else ""


def read_host_params(context: Context, host: DeviceSeries) -> JobParams:
    """Return what params say, with the counted cores of a host where they say none."""
    return add_counted_cores(params.read_params(context.recording.run.params_and_tags), count_logical_cores(host))


def add_counted_cores(params: JobParams, counted: float | None) -> JobParams:
    """Return params with the counted cores of a host where they say none."""
    if counted is None or not counted > 0 or params.cores is not None:
        return params
    return replace(params, cores=Setting(text=phrases.count_of(round(counted), "core"), value=counted))


def find_core_count(context: Context, host: DeviceSeries) -> CoreCount | None:
    """Return the cores of a host and its GPUs, None if no param or log states them."""
    return count_cores(read_host_params(context, host), sum(is_beside(host, one) for one in context.gpus().values()))
