"""What is said of each kind over several runs: an extent and a sentence, with the figures of the evidence in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the evidence.

    Attributes:
        metric: name of the column or quantity.
        statistics: beginnings of the statistic, in full where one ends with a dot; the least and the most of all count.
        convert: what is made of the value before it is printed.
        unit: unit to print it in; that of the evidence when empty.
    """

    metric: str
    statistics: tuple[str, ...]
    convert: Callable[[float], float] = float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWording:
    """What is said of a kind over several runs; braces hold names of figures.

    Attributes:
        extent: how much there is of it.
        summary: one sentence.
        figures: figures of the evidence by name, beside `gpus`, `lost` and `lost_share`.
    """

    extent: str
    summary: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)


def _complement(ratio: float) -> float:
    return 1 - ratio


_UTILISATION = "gpu_utilization_ratio"
_LENGTH = Figure(metric="duration", statistics=("length.",))
_EPISODES = Figure(metric="duration", statistics=("total",))
_SHARE = Figure(metric="duration", statistics=("share of the run", "share of the jobs' time"))
_MEAN = Figure(metric=_UTILISATION, statistics=("mean.", "mean within the job"))
LOST = "{lost} lost, {lost_share} of {run}"
_CPU = Figure(metric="cpu_utilization_ratio", statistics=("median", "mean"))
_WAITING = {"length": _EPISODES, "mean": _MEAN, "cpu": _CPU}
_THROTTLED = {
    "length": _EPISODES,
    "fall": Figure(metric="gpu_sm_clock_hertz", statistics=("mean, of",), convert=_complement),
    "temperature": Figure(metric="gpu_temperature_celsius", statistics=("max",)),
}
_USED = "gpu_memory_used_bytes"

RANGES: Mapping[str, RangeWording] = {
    "startup_idle": RangeWording(
        extent="{length}, {share} of {run}",
        summary="The first work came after {length}, {share} of {run}.",
        figures={"length": _LENGTH, "share": _SHARE},
    ),
    "tail_idle": RangeWording(
        extent="{length}, {share} of {run}",
        summary="{gpus} sat idle for {length} after the last work.",
        figures={"length": _LENGTH, "share": _SHARE},
    ),
    "idle_gap": RangeWording(
        extent="{lost}, {lost_share} of {run}",
        summary="{gpus} sat idle during the job for {lost}, {lost_share} of {run}.",
    ),
    "periodic_stall": RangeWording(
        extent="{lost}, {share} of the job",
        summary="{gpus} stalled every {period} for {stall}: {share} of the job.",
        figures={
            "period": Figure(metric="period", statistics=("mean distance",)),
            "stall": Figure(metric="idle time", statistics=("mean of one period",)),
            "share": Figure(metric="idle time", statistics=("share of the job",)),
        },
    ),
    "thermal_throttle": RangeWording(
        extent=LOST,
        summary="{gpus} reached {temperature}; the clock fell {fall} for {length}.",
        figures=_THROTTLED,
    ),
    "hw_throttle": RangeWording(
        extent=LOST,
        summary="The hardware cut the clock of {gpus} by {fall} for {length}.",
        figures=_THROTTLED,
    ),
    "power_cap": RangeWording(
        extent="{busy} of the busy time",
        summary="{gpus} ran at the power limit for {busy} of the busy time.",
        figures={"busy": Figure(metric="power cap", statistics=("share of busy time",))},
    ),
    "power_limited": RangeWording(
        extent="limit at {limit} of the default",
        summary="{gpus} ran with a power limit of {limit} of the default.",
        figures={"limit": Figure(metric="gpu_power_limit_watts", statistics=("median",))},
    ),
    "clocks_locked": RangeWording(
        extent="clock at {clock} of the highest",
        summary="The clock of {gpus} was locked at {clock} of the highest.",
        figures={"clock": Figure(metric="gpu_sm_clock_hertz", statistics=("median while busy",))},
    ),
    "cpu_bound": RangeWording(
        extent=LOST,
        summary="The CPU was {cpu} busy while {gpus} averaged {mean} utilisation over {length}.",
        figures=_WAITING,
    ),
    "cpu_bound_single": RangeWording(
        extent=LOST,
        summary="One thread was busy all of {length} while {gpus} averaged {mean} utilisation; "
        "all cores together were {cpu} busy.",
        figures=_WAITING,
    ),
    "io_bound": RangeWording(
        extent=LOST,
        summary="The host waited on storage for {length} while {gpus} averaged {mean} utilisation.",
        figures=_WAITING,
    ),
    "transfer_bound": RangeWording(
        extent=LOST,
        summary="Copies used {traffic} of the PCIe bandwidth while {gpus} averaged {mean} utilisation over {length}.",
        figures={**_WAITING, "traffic": Figure(metric="PCIe traffic", statistics=("mean of the busier",))},
    ),
    "underutilised": RangeWording(
        extent=LOST,
        summary="{gpus} averaged {mean} utilisation over {length}; the CPU as a whole was not the bottleneck.",
        figures=_WAITING,
    ),
    "low_util_cause_unknown": RangeWording(
        extent=LOST,
        summary="{gpus} averaged {mean} utilisation over {length}; the log doesn't show why.",
        figures=_WAITING,
    ),
    "hollow_util": RangeWording(
        extent=LOST, summary="{gpus} looked busy at low power for {length}.", figures={"length": _EPISODES}
    ),
    "full_precision": RangeWording(
        extent="",
        summary="Tensor cores worked for {tensor} of the busy time; 16-bit precision may be faster.",
        figures={"tensor": Figure(metric="gpu_tensor_active_ratio", statistics=("mean over busy time",))},
    ),
    "mem_headroom": RangeWording(
        extent="{free} unused",
        summary="{free} of GPU memory, {share}, was never used.",
        figures={
            "free": Figure(metric=_USED, statistics=("free at the peak",)),
            "share": Figure(metric=_USED, statistics=("max, of",), convert=_complement),
        },
    ),
    "mem_pressure": RangeWording(
        extent="{full} full, {free} left",
        summary="The memory of {gpus} was {full} full: {free} was left.",
        figures={
            "full": Figure(metric=_USED, statistics=("max, of",)),
            "free": Figure(metric=_USED, statistics=("free at the peak",)),
        },
    ),
    "ecc_error": RangeWording(
        extent="{errors} counted",
        summary="{gpus} counted memory errors: {errors}.",
        figures={"errors": Figure(metric="gpu_ecc_uncorrected_total", statistics=("rise",))},
    ),
    "mem_prealloc": RangeWording(
        extent="{step} taken at once",
        summary="{step} of the memory of {gpus} was taken at once; the real need is not known.",
        figures={"step": Figure(metric=_USED, statistics=("largest step",))},
    ),
    "mem_leak": RangeWording(
        extent="{rate} a minute",
        summary="The memory of {gpus} grew by {rate} a minute.",
        figures={
            "rate": Figure(metric=_USED, statistics=("growth a second",), convert=lambda rate: 60 * rate, unit="By")
        },
    ),
    "workers_headroom": RangeWording(
        extent="host memory {memory} full",
        summary="GPUs waited while host memory was {memory} full and the CPU {cpu} busy.",
        figures={"memory": Figure(metric="host_memory_used_ratio", statistics=("p95",)), "cpu": _CPU},
    ),
    "host_memory_pressure": RangeWording(
        extent="{memory} full",
        summary="Host memory was {memory} full while GPUs waited.",
        figures={"memory": Figure(metric="host_memory_used_ratio", statistics=("p95",))},
    ),
    "imbalance": RangeWording(
        extent=LOST,
        summary="{gpus} averaged {mean} utilisation, the others {peers}.",
        figures={"mean": _MEAN, "peers": Figure(metric=_UTILISATION, statistics=("median of the means",))},
    ),
    "unused_gpu": RangeWording(extent="{lost}, {lost_share} of {run}", summary="{gpus} never worked."),
    "zombie_memory": RangeWording(
        extent="{held} for {time}",
        summary="{gpus} still held {held} {time} after the last work.",
        figures={
            "held": Figure(metric=_USED, statistics=("last.",)),
            "time": Figure(metric="time without work", statistics=("to the last sample",)),
        },
    ),
    "oversized_gpu": RangeWording(
        extent="{mean} utilisation",
        summary="A smaller GPU may suffice: {gpus} averaged {mean} utilisation.",
        figures={"mean": _MEAN},
    ),
    "pcie_degraded": RangeWording(
        extent="{rate} of the data rate",
        summary="The PCIe link of {gpus} ran at {rate} of its data rate.",
        figures={"rate": Figure(metric="data rate of the link", statistics=("of the highest",))},
    ),
    "gpu_lost": RangeWording(
        extent="{lost}, {lost_share} of {run}", summary="{gpus} did not answer for {lost}, {lost_share} of {run}."
    ),
    "log_gap": RangeWording(
        extent="{missing} missing",
        summary="{missing} of the log is missing.",
        figures={"missing": Figure(metric="time without samples", statistics=("sum",))},
    ),
    "monitoring_ended": RangeWording(
        extent="{missing}, {share} of {run}",
        summary="The GPU log stops {missing} before the host log, {share} of {run}.",
        figures={
            "missing": Figure(metric="time without samples at the end", statistics=("length",)),
            "share": Figure(metric="time without samples at the end", statistics=("share",)),
        },
    ),
    "rate_falls": RangeWording(
        extent="{fall} slower for {length}",
        summary="The training rate fell by {fall}, for {length}.",
        figures={"fall": Figure(metric="rate of the training", statistics=("fall",)), "length": _EPISODES},
    ),
    "slow_gpu": RangeWording(
        extent="{fall} slower",
        summary="{gpus} ran {fall} below equal GPUs.",
        figures={"fall": Figure(metric="gpu_sm_clock_hertz", statistics=("difference",))},
    ),
    "unexplained_change": RangeWording(extent="for {length}", figures={"length": _EPISODES}),
    "no_progress": RangeWording(
        extent="{share} of {run}",
        summary="{share} of the job came after the best value.",
        figures={"share": Figure(metric="time after the best value", statistics=("share of the job",))},
    ),
}
"""The words of each kind. A kind without an entry shows its lost time, and the sentence of its worst run."""
