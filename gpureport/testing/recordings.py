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

_COLUMNS: dict[str, tuple[str, float]] = {
    "util": ("gpu_utilization_ratio", 0.01),
    "memory_controller": ("gpu_memory_controller_ratio", 0.01),
    "memory": ("gpu_memory_used_bytes", GIB),
    "power": ("gpu_power_watts", 1),
    "power_limit": ("gpu_power_limit_watts", 1),
    "default_limit": ("gpu_power_limit_default_watts", 1),
    "temperature": ("gpu_temperature_celsius", 1),
    "margin": ("gpu_temperature_margin_celsius", 1),
    "clock": ("gpu_sm_clock_hertz", 1e6),
    "clock_max": ("gpu_sm_clock_max_hertz", 1e6),
    "energy": ("gpu_energy_joules_total", 1),
    "unknown_bits": ("clock_event_unknown_bits", 1),
    "sm_active": ("gpu_sm_active_ratio", 0.01),
    "tensor_active": ("gpu_tensor_active_ratio", 0.01),
    "dram_active": ("gpu_dram_active_ratio", 0.01),
    "received": ("pcie_receive_bytes_per_second", 1e9),
    "sent": ("pcie_transmit_bytes_per_second", 1e9),
    "link_generation": ("pcie_link_generation", 1),
    "link_width": ("pcie_link_width", 1),
}
_HOST_COLUMNS: dict[str, tuple[str, float]] = {
    "cpu": ("cpu_utilization_ratio", 0.01),
    "core": ("cpu_busiest_core_ratio", 0.01),
    "iowait": ("cpu_iowait_ratio", 0.01),
    "cores_of_process": ("process_cpu_cores", 1),
    "cores_of_job": ("job_cpu_cores", 1),
    "host_memory": ("host_memory_used_ratio", 0.01),
    "cores": ("cpu_logical_cores", 1),
}
_COLUMNS |= {
    "link_generation_max": ("pcie_link_generation_max", 1),
    "link_width_max": ("pcie_link_width_max", 1),
    "corrected": ("gpu_ecc_corrected_total", 1),
    "uncorrected": ("gpu_ecc_uncorrected_total", 1),
    "remapped": ("gpu_remapped_rows_uncorrectable_total", 1),
    "remap_pending": ("gpu_remapped_rows_pending", 1),
    "remap_failure": ("gpu_remapped_rows_failure", 1),
    "xid": ("gpu_xid_code", 1),
}
_EVENTS = (*CLOCK_EVENT_BITS, *(f"{reason}_seconds_total" for reason in COUNTED_CLOCK_EVENTS))
_COLUMNS |= {name: (f"clock_event_{name}", 1) for name in _EVENTS}

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

    Args:
        every: seconds between samples of a GPU.
        times: seconds of each sample instead.
        cpu: CPU use in per cent, one value a sample of the host.
        cpu_every: seconds between samples of the host.
        host: what else the host recorded: `core`, `iowait` and `host_memory` in per cent, `cores_of_process`,
            `cores_of_job`, `cores`.
        model: the GPUs' name.
        memory_total: memory installed in bytes.
        reserved: memory the driver keeps, in bytes.
        series: `util` and `memory_controller` in per cent, `memory` in GiB, `power`, `power_limit` and `default_limit`
            in W, `energy` in J as counted, `temperature` and `margin` in degrees Celsius, `clock` and `clock_max` in
            MHz, `sm_active`, `tensor_active` and `dram_active` in per cent, `received` and `sent` in GB/s,
            `link_generation`, `link_width` and their `_max`, clock event reasons and their counters by name,
            `unknown_bits` as a number, counters of errors, `xid`; a number, one series for all GPUs, or one series a
            GPU. NaN is null.
    """
    arrays = dict(zip(series, np.broadcast_arrays(*map(_table, series.values())), strict=True))
    count, length = next(iter(arrays.values())).shape
    seconds = np.asarray(np.arange(length) * every if times is None else times, dtype=np.float64)
    known = gpus.find_gpu(model)
    devices = [
        Device(
            id=f"gpu:{index}",
            index=index,
            model=model,
            memory_total_bytes=memory_total,
            memory_reserved_bytes=reserved,
            power_window=known.power_window if known else "unknown",
        )
        for index in range(count)
    ]
    values = {_COLUMNS[name][0]: array * _COLUMNS[name][1] for name, array in arrays.items()}
    blocks: list[tuple[Floats, dict[str, Floats]]] = [
        (seconds, {name: array[index] for name, array in values.items()}) for index in range(count)
    ]
    beside = {**({} if cpu is None else {"cpu": cpu}), **(host or {})}
    if beside:
        block = {
            _HOST_COLUMNS[name][0]: np.asarray(held, dtype=np.float64) * _HOST_COLUMNS[name][1]
            for name, held in beside.items()
        }
        at_seconds: Floats = np.arange(len(next(iter(block.values()))), dtype=np.float64) * cpu_every
        devices.append(Device(id=HOST))
        blocks.append((at_seconds, block))
    return Recording(run=_run(tuple(devices), seconds, every), series=_series(devices, blocks))


def repeated(values: npt.ArrayLike, times: int) -> Floats:
    """Return a series with each value repeated, as a log holds that is written faster than the driver refreshes."""
    return np.repeat(np.asarray(values, dtype=np.float64), times, axis=-1)


def with_quality(run: Recording, **fields: object) -> Recording:
    """Return a recording whose quality says something else."""
    quality: Any = replace(run.run.quality, **fields)  # type: ignore[arg-type]  # each caller names real fields
    return replace(run, run=replace(run.run, quality=quality))


def with_params(run: Recording, **params: str) -> Recording:
    """Return a recording whose run was configured with params."""
    return replace(run, run=replace(run.run, params=tuple(params.items())))


def with_training(
    run: Recording, points: Sequence[tuple[float | None, str, float | None]], steps: Sequence[int] | None = None
) -> Recording:
    """Return a recording with training metrics: seconds, None where no time was written, name and value.

    Args:
        run: the recording.
        points: one a value.
        steps: the step of each point; counted from 0 without.
    """
    times = [None if seconds is None else at(seconds) for seconds, _, _ in points]
    arrays: list[Any] = [
        pa.array(times, pa.timestamp("us")),
        pa.array(range(len(points)) if steps is None else steps, pa.int64()),
        pa.array([name for _, name, _ in points], pa.string()).cast(pa.dictionary(pa.int32(), pa.string())),
        pa.array([value for _, _, value in points], pa.float64()),
    ]
    return replace(run, training=pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA))


def with_host(run: Recording, times: npt.ArrayLike, host: Device = _HOST, /, **series: npt.ArrayLike) -> Recording:
    """Return a recording with a host of these columns, sampled at these seconds; in place of none it may have."""
    seconds = np.asarray(times, dtype=np.float64)
    values = {name: np.broadcast_to(np.asarray(one, dtype=np.float64), seconds.shape) for name, one in series.items()}
    added = _series([host], [(seconds, values)])
    return Recording(
        run=replace(run.run, devices=(*run.run.devices, host), ended=max(run.run.ended, at(float(seconds[-1])))),
        series=arrange_series([run.series, added]),
        training=run.training,
    )


def event(kind: str, seconds: float | None, text: str = "", *, line: int = 1, device: str | None = None) -> LogEvent:
    """Return what a log says happened, at a time in seconds."""
    return LogEvent(kind=kind, at=None if seconds is None else at(seconds), line=line, device=device, text=text)


def _table(values: npt.ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(values, dtype=np.float64))


def _run(devices: tuple[Device, ...], seconds: Floats, every: float) -> Run:
    return Run(
        id="0123abcd",
        name="made by hand",
        started=at(float(seconds[0])),
        ended=at(float(seconds[-1])),
        sources=(),
        devices=devices,
        quality=Quality(),
        interval=every,
    )


def _series(devices: list[Device], blocks: list[tuple[Floats, dict[str, Floats]]]) -> "pa.Table":
    codes = np.concatenate([np.full(len(seconds), code) for code, (seconds, _) in enumerate(blocks)])
    stamps = np.concatenate([START + np.round(seconds * 1e6).astype(np.int64) for seconds, _ in blocks])
    names = pa.array([device.id for device in devices], pa.string())
    table: dict[str, Any] = {
        "device": pa.DictionaryArray.from_arrays(columns.to_arrow(codes, pa.int32()), names),
        "timestamp": columns.to_arrow(stamps, pa.timestamp("us")),
    }
    for metric, kind in METRIC_TYPES.items():
        if any(metric in block for _, block in blocks):
            parts = [block.get(metric, np.full(len(seconds), np.nan)) for seconds, block in blocks]
            table[metric] = columns.nan_to_null(np.concatenate(parts), kind)
    return pa.table(table)


def found(analysis: Analysis, kind: str) -> list[Finding]:
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
