"""Small recordings made by hand, so that a test of a rule is five lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns, gpus
from gpureport.analysis.results import Analysis
from gpureport.data_quality import LogEvent, Quality
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity
from gpureport.metrics import CLOCK_EVENT_BITS, COUNTED_CLOCK_EVENTS
from gpureport.recording import HOST, Device, Recording, Run
from gpureport.series_table import METRIC_TYPES, TRAINING_SCHEMA, arrange_series

START = 1_773_480_413_000_000
GIB = 2**30

_NAMES: dict[float, str] = {
    0.01: "util=gpu_utilization_ratio memory_controller=gpu_memory_controller_ratio sm_active=gpu_sm_active_ratio "
    "tensor_active=gpu_tensor_active_ratio dram_active=gpu_dram_active_ratio cpu=cpu_utilization_ratio "
    "core=cpu_busiest_core_ratio iowait=cpu_iowait_ratio host_memory=host_memory_used_ratio",
    1: "power=gpu_power_watts power_limit=gpu_power_limit_watts default_limit=gpu_power_limit_default_watts "
    "temperature=gpu_temperature_celsius margin=gpu_temperature_margin_celsius energy=gpu_energy_joules_total "
    "unknown_bits=clock_event_unknown_bits link_generation=pcie_link_generation link_width=pcie_link_width "
    "link_generation_max=pcie_link_generation_max link_width_max=pcie_link_width_max corrected=gpu_ecc_corrected_total "
    "uncorrected=gpu_ecc_uncorrected_total remapped=gpu_remapped_rows_uncorrectable_total xid=gpu_xid_code "
    "remap_pending=gpu_remapped_rows_pending remap_failure=gpu_remapped_rows_failure "
    "cores_of_process=process_cpu_cores cores_of_job=job_cpu_cores cores=cpu_logical_cores",
    1e6: "clock=gpu_sm_clock_hertz clock_max=gpu_sm_clock_max_hertz",
    1e9: "received=pcie_receive_bytes_per_second sent=pcie_transmit_bytes_per_second",
    GIB: "memory=gpu_memory_used_bytes",
}
_EVENTS = (*CLOCK_EVENT_BITS, *(f"{reason}_seconds_total" for reason in COUNTED_CLOCK_EVENTS))
_COLUMNS: dict[str, tuple[str, float]] = {
    name: (metric, scale)
    for scale, pairs in _NAMES.items()
    for name, metric in (pair.split("=") for pair in pairs.split())
} | {name: (f"clock_event_{name}", 1) for name in _EVENTS}
"""Metric of each argument of `recording`, and how many base units one of it is."""
_HOST = Device(id=HOST)

Floats = npt.NDArray[np.float64]


def at(seconds: float) -> int:
    """Return a moment of a recording, in microseconds."""
    return START + round(seconds * 1e6)


def steps(*parts: tuple[float, int]) -> Floats:
    """Return a series that holds each value for a number of samples."""
    return np.concatenate([np.full(count, value, dtype=np.float64) for value, count in parts])


def recording(  # noqa: PLR0913 - each argument is something a test varies
    *,
    every: float = 1.0,
    times: npt.ArrayLike | None = None,
    cpu: npt.ArrayLike | None = None,
    cpu_every: float = 1.0,
    host: Mapping[str, npt.ArrayLike] | None = None,
    model: str | None = "NVIDIA A100-SXM4-80GB",
    memory_total: int | None = 80 * GIB,
    reserved: int | None = None,
    **series: npt.ArrayLike,
) -> Recording:
    """Return a recording of one or several GPUs, and of a host when `cpu` or `host` is given.

    Arguments are `_NAMES`, per cent of shares, GiB, W, J as counted, degrees Celsius, MHz, GB/s and numbers, and clock
    event reasons and their counters by name: a number, one series for all GPUs, or one series a GPU. NaN is null.
    Samples are so many seconds apart, or at these `times`; memory is in bytes.
    """
    tables = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in series.values())
    arrays = _scale(dict(zip(series, np.broadcast_arrays(*tables), strict=True)))
    count, length = next(iter(arrays.values())).shape
    seconds = np.asarray(np.arange(length) * every if times is None else times, dtype=np.float64)
    known = gpus.find_gpu(model)
    gpu = Device(
        id="",
        model=model,
        memory_total_bytes=memory_total,
        memory_reserved_bytes=reserved,
        power_window=known.power_window if known else "unknown",
    )
    devices = [replace(gpu, id=f"gpu:{index}", index=index) for index in range(count)]
    blocks = [(seconds, {name: array[index] for name, array in arrays.items()}) for index in range(count)]
    if beside := {**({} if cpu is None else {"cpu": cpu}), **(host or {})}:
        block = _scale({name: np.asarray(held, dtype=np.float64) for name, held in beside.items()})
        devices.append(_HOST)
        blocks.append((np.arange(len(next(iter(block.values()))), dtype=np.float64) * cpu_every, block))
    run = Run(
        id="0123abcd",
        name="made by hand",
        started=at(float(seconds[0])),
        ended=at(float(seconds[-1])),
        sources=(),
        devices=tuple(devices),
        quality=Quality(),
        interval=every,
    )
    return Recording(run=run, series=_series(devices, blocks))


def _scale(given: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return arrays by metric, in base units."""
    return {_COLUMNS[name][0]: array * _COLUMNS[name][1] for name, array in given.items()}


def _series(devices: Sequence[Device], blocks: Sequence[tuple[Floats, Mapping[str, Floats]]]) -> "pa.Table":
    """Return the series of devices, each as its seconds and its values by metric."""
    codes = np.concatenate([np.full(len(seconds), code) for code, (seconds, _) in enumerate(blocks)])
    stamps = np.concatenate([START + np.round(seconds * 1e6).astype(np.int64) for seconds, _ in blocks])
    table: dict[str, Any] = {
        "device": columns.categories(codes, [device.id for device in devices]),
        "timestamp": columns.to_arrow(stamps, pa.timestamp("us")),
    }
    for metric, kind in METRIC_TYPES.items():
        if any(metric in block for _, block in blocks):
            parts = [block.get(metric, np.full(len(seconds), np.nan)) for seconds, block in blocks]
            table[metric] = columns.nan_to_null(np.concatenate(parts), kind)
    return pa.table(table)


def with_quality(run: Recording, **fields: object) -> Recording:
    """Return a recording whose quality says something else."""
    # each caller names real fields
    quality: Any = replace(run.run.quality, **fields)  # type: ignore[arg-type]
    return replace(run, run=replace(run.run, quality=quality))


def with_params(run: Recording, **params: str) -> Recording:
    """Return a recording whose run was configured with params."""
    return replace(run, run=replace(run.run, params=tuple(params.items())))


def with_training(
    run: Recording, points: Sequence[tuple[float | None, str, float | None]], steps: Sequence[int] | None = None
) -> Recording:
    """Return a recording with training metrics: seconds, None where no time was written, name and value.

    The step of each point is counted from 0 where none are given.
    """
    rows = {
        "timestamp": [None if seconds is None else at(seconds) for seconds, _, _ in points],
        "step": range(len(points)) if steps is None else steps,
        "name": [name for _, name, _ in points],
        "value": [value for _, _, value in points],
    }
    kinds = {"timestamp": pa.timestamp("us"), "step": pa.int64(), "name": pa.string(), "value": pa.float64()}
    table = pa.table({name: pa.array(rows[name], kind) for name, kind in kinds.items()})
    return replace(run, training=table.cast(TRAINING_SCHEMA))


def with_host(run: Recording, times: npt.ArrayLike, host: Device = _HOST, /, **series: npt.ArrayLike) -> Recording:
    """Return a recording with a host of these columns, sampled at these seconds; in place of none it may have."""
    seconds = np.asarray(times, dtype=np.float64)
    values = {name: np.broadcast_to(np.asarray(one, dtype=np.float64), seconds.shape) for name, one in series.items()}
    return Recording(
        run=replace(run.run, devices=(*run.run.devices, host), ended=max(run.run.ended, at(float(seconds[-1])))),
        series=arrange_series([run.series, _series([host], [(seconds, values)])]),
        training=run.training,
    )


def event(kind: str, seconds: float | None, text: str = "", *, line: int = 1, device: str | None = None) -> LogEvent:
    """Return what a log says happened, at a time in seconds."""
    return LogEvent(kind=kind, at=None if seconds is None else at(seconds), line=line, device=device, text=text)


def findings_of(analysis: Analysis, kind: str) -> list[Finding]:
    """Return the findings of one kind, by time and device."""
    chosen = [finding for finding in analysis.findings if finding.kind == kind]
    return sorted(chosen, key=lambda finding: (finding.intervals, finding.devices))


def unjudged(analysis: Analysis, kind: str) -> list[NotJudged]:
    """Return what could not be judged of one kind."""
    return [entry for entry in analysis.not_judged if entry.kind == kind]


def spans(finding: Finding) -> list[tuple[float, float]]:
    """Return a finding's intervals in seconds since the first sample."""
    return [((part.start - START) / 1e6, (part.end - START) / 1e6) for part in finding.intervals]


def finding(
    kind: str,
    *stretches: tuple[float, float],
    devices: tuple[str, ...] = ("gpu:0",),
    lost: float | None = None,
    cause: str | None = None,
    confidence: Confidence = Confidence.HIGH,
) -> Finding:
    """Return a finding made by hand, its stretches in seconds since the first sample."""
    return Finding(
        kind=kind,
        severity=Severity.WARNING,
        confidence=confidence,
        devices=devices,
        intervals=tuple(Interval(at(start), at(end)) for start, end in stretches),
        evidence=(),
        lost_gpu_seconds=lost,
        cause=cause,
        summary=f"{kind} was made by hand.",
        recommendation="Do what helps.",
    )
