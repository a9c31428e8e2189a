"""Random valid recordings: every column there or not, odd stamps, extreme values, whatever an importer may hand on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import gap_seconds
from gpureport.metrics import BY_NAME, METRICS, Metric, MetricKind
from gpureport.sampling_rate import measure_sampling_rate as pace_of
from gpureport.series_table import METRIC_TYPES, TRAINING_SCHEMA, arrange_series, empty_training
from gpureport.testing import (
    AbsentCells,
    ClockStep,
    Device,
    LogEvent,
    LogGap,
    Quality,
    Recording,
    Rejected,
    Run,
    Source,
    Stage,
    Work,
)

Floats = npt.NDArray[np.float64]
Stamps = npt.NDArray[np.int64]

_GIB = 2**30
_MOST = 2.0**62
"""Nothing that an importer hands on is larger (`units.quantity`)."""
_MODELS = (
    *("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA GeForce RTX 3090", "Tesla V100-SXM2-16GB"),
    *("A card of tomorrow", None),
)
_STARTS = (0, 946_684_800, 1_773_480_413, 4_102_444_800)
"""Seconds since 1970 at which logs begin, a clock that was never set among them."""
_INTERVALS = (0.005, 0.1, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0)
_HOLES = (7.0, 60.0, 900.0, 3_700.0, 86_400.0, 3e7, 6e8)
"""Seconds without samples, up to twenty years."""
_BASE = {
    *("gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts", "gpu_sm_clock_hertz"),
    "cpu_utilization_ratio",
}
"""What most logs hold."""
_TRAINING = ("loss", "val_loss", "val_acc", "samples_per_second", "tokens/s", "step_time", "epoch_time", "lr", "x y")
_PARAMS = {
    "batch_size": ("32", "64", "0", "-1", "1e9", "nan", "many"),
    "num_workers": ("0", "1", "16", "x"),
    "precision": ("bf16", "32", "16-mixed"),
    "amp": ("true", "False"),
    "gpu_hour_price": ("2.5",),
    "per_device_train_batch_size": ("8", "inf"),
}
_EVENTS = ("gpu_lost", "driver_restart", "no_devices", "driver_message")
_TEXTS = ("Unable to determine the device handle for GPU0: GPU is lost", "NVRM: Xid (PCI:0000:01:00): 79", "", "é <b>")


def recording(number: int) -> Recording:
    """Return the recording of a number; three in a row may be runs of one kind."""
    shape = np.random.default_rng([number // 3, 7])
    rng = np.random.default_rng([number, 11])
    if shape.random() < 0.5:
        shape = rng
    devices = _devices(shape)
    # rules find most in logs that are as they should be, and fail in those that are not
    calm = shape.random() < 0.5
    base = _even(shape) if calm else _stamps(shape)
    tables, stamps = [], {}
    forms = {name: "work" if calm and name in _BASE else _form(shape, name) for name in BY_NAME}
    for device in devices:
        times = stamps[device.id] = base if calm and rng.random() < 0.95 else _own(rng, base)
        tables.append(_table(rng, device, times, forms))
    started = min(int(times[0]) for times in stamps.values())
    ended = max(int(times[-1]) for times in stamps.values())
    stages = tuple(_stages(rng, started, ended))
    run = Run(
        id=f"{number:08x}",
        name=f"run {number}",
        step=None if shape.random() < 0.6 else str(shape.integers(3)),
        started=started,
        ended=ended,
        timezone=_one(shape, (None, "UTC", "Europe/Berlin", "America/New_York")),
        interval=_interval(stamps.values()),
        sources=(Source(kind=_one(rng, ("nvidia_smi", "mlflow", "dcgm")), locator="log.csv", sha256="0" * 64),),
        devices=devices,
        stages=stages,
        params=tuple((key, str(_one(rng, _PARAMS[key]))) for key in _PARAMS if rng.random() < 0.3),
        tags=(("by", "hand"),) if rng.random() < 0.3 else (),
        work=Work(amount=float(rng.choice([0.5, 1.0, 1e6, 1e15])), unit="steps") if rng.random() < 0.3 else None,
        quality=_quality(rng, stamps, sum(map(len, stamps.values()))),
    )
    series = _staged(rng, arrange_series(tables), stages)
    return Recording(run=run, series=series, training=_training(rng, started, ended))


def _one(rng: np.random.Generator, choices: Sequence[Any]) -> Any:  # noqa: ANN401 - one of what is given
    return choices[int(rng.integers(len(choices)))]


def _devices(rng: np.random.Generator) -> tuple[Device, ...]:
    nodes = [None] if rng.random() < 0.8 else ["node_1", "node_2"]
    count = int(rng.integers(6))
    hosts = count == 0 or rng.random() < 0.5
    model, alike = _one(rng, _MODELS), rng.random() < 0.8
    mixed = count == 1 and rng.random() < 0.3
    found = []
    for place in range(count):
        node = nodes[place % len(nodes)]
        own = model if alike else _one(rng, _MODELS)
        found.append(_gpu(rng, place // len(nodes), node, own, mixed=mixed))
    found.sort(key=lambda device: (device.node or "", device.index))
    return (*found, *(Device(id=_named("host", node), node=node) for node in nodes if hosts))


def _named(name: str, node: str | None) -> str:
    return f"{node}/{name}" if node else name


def _gpu(rng: np.random.Generator, index: int, node: str | None, model: str | None, *, mixed: bool) -> Device:
    return Device(
        id=_named(f"gpu:{index}", node),
        index=index,
        node=node,
        uuid=f"GPU-{node}-{index}" if rng.random() < 0.5 else None,
        model=model,
        memory_total_bytes=_one(rng, (None, 80 * _GIB, 16 * _GIB, 1)),
        memory_reserved_bytes=_one(rng, (None, None, _GIB // 2)),
        power_limit_watts=_one(rng, (None, 400.0, 70.0)),
        power_limit_default_watts=_one(rng, (None, 400.0)),
        power_window=_one(rng, ("1 s", "instant", "unknown")),
        driver=_one(rng, (None, "550.54")),
        mig=_one(rng, (None, False, True)),
        mixed=mixed,
    )


def _stamps(rng: np.random.Generator) -> Stamps:
    """Return stamps of several paces, with holes and with equal ones."""
    rows = int(rng.integers(1, 120)) if rng.random() < 0.7 else int(rng.integers(100, 300))
    steps = np.full(rows, _one(rng, _INTERVALS))
    while rng.random() < 0.25:
        first = int(rng.integers(rows))
        steps[first : first + int(rng.integers(1, 60))] = _one(rng, _INTERVALS)
    while rng.random() < 0.4:
        steps[int(rng.integers(rows))] = _one(rng, _HOLES)
    if rng.random() < 0.1:
        steps[min(2, rows - 1)] = _HOLES[-1]
    if rng.random() < 0.2:
        steps[rng.random(rows) < rng.random()] = 0.0
    if rng.random() < 0.3:
        steps *= 1 + 0.2 * rng.random(rows)
    steps[0] = 0.0
    return np.asarray(_one(rng, _STARTS) * 1_000_000 + np.round(np.cumsum(steps) * 1e6), dtype=np.int64)


def _even(rng: np.random.Generator) -> Stamps:
    """Return stamps of one pace, with a hole at most."""
    steps = np.full(int(rng.integers(150, 350)), _one(rng, (0.5, 1.0, 1.0, 2.0, 5.0)))
    steps[0] = 0.0
    if rng.random() < 0.2:
        steps[int(rng.integers(1, len(steps)))] = _one(rng, _HOLES)
    return np.asarray(_STARTS[2] * 1_000_000 + np.round(np.cumsum(steps) * 1e6), dtype=np.int64)


def _own(rng: np.random.Generator, base: Stamps) -> Stamps:
    """Return the stamps of one device among those of a run."""
    form = rng.random()
    if form < 0.6:
        return base + int(rng.integers(0, 3)) * 1_000
    if form < 0.7:
        return base[[int(rng.integers(len(base)))]]
    if form < 0.8:
        first = int(rng.integers(len(base)))
        return base[first : first + int(rng.integers(1, len(base) + 1))]
    if form < 0.9:
        kept = base[rng.random(len(base)) < 0.5]
        return kept if len(kept) else base[:1]
    if form < 0.95:
        return np.full(len(base), base[0])
    return _stamps(rng) - _STARTS[0] + int(base[0]) % 10**15


def _interval(stamps: Any) -> float | None:  # noqa: ANN401 - views of a mapping have no public type
    found = [pace.interval for times in stamps if (pace := pace_of(times)) is not None]
    return float(np.median(found)) if found else None


def _form(rng: np.random.Generator, name: str) -> str:
    """Return in which form a column is there."""
    there = rng.random() < (0.85 if name in _BASE else rng.choice([0.15, 0.6]))
    if not there:
        return "absent"
    return str(rng.choice(["work", "work", "work", "work", "random", "constant", "zero", "extreme", "null", "once"]))


def _table(rng: np.random.Generator, device: Device, times: Stamps, forms: dict[str, str]) -> "pa.Table":
    rows = len(times)
    busy, work = rng.random(rows) < 0.5, _phases(rng, rows)
    used = work if rng.random() < 0.7 else np.full(rows, _one(rng, (0.0, 1.0, 1.0)))
    arrays: dict[str, Any] = {
        "device": columns.category(device.id, rows),
        "timestamp": columns.to_arrow(times, pa.timestamp("us")),
        "imputed": columns.to_arrow(rng.random(rows) < 0.05, pa.bool_()),
    }
    for metric in METRICS:
        form = forms[metric.name] if rng.random() < 0.9 else _form(rng, metric.name)
        if metric.scope is not device.scope or form == "absent":
            continue
        values = _values(rng, metric, form, used if rng.random() < 0.8 else work)
        if rng.random() < 0.15:
            values[rng.random(rows) < rng.random()] = np.nan
        if rng.random() < 0.03:
            values[busy] = np.nan
        arrays[metric.name] = columns.nan_to_null(values, METRIC_TYPES[metric.name])
    return pa.table(arrays)


def _phases(rng: np.random.Generator, rows: int) -> Floats:
    """Return how hard a GPU works: stretches of some levels, or a rhythm."""
    if rng.random() < 0.3:
        period, width = int(rng.integers(4, 60)), int(rng.integers(1, 16))
        return np.where(np.arange(rows) % period < width, 0.0, 0.97)
    edges = np.sort(rng.integers(0, rows + 1, int(rng.integers(0, 7))))
    level = np.zeros(rows)
    for first, stop in pairwise([0, *edges.tolist(), rows]):
        level[first:stop] = _one(rng, (0.0, 0.0, 0.02, 0.3, 0.6, 0.97, 1.0))
    return level


def _values(rng: np.random.Generator, metric: Metric, form: str, work: Floats) -> Floats:
    if metric.kind is MetricKind.COUNTER:
        return _counted(rng, metric, form, len(work))
    if form == "extreme":
        return _extreme(rng, metric, len(work))
    if form == "work" and metric.kind is not MetricKind.STATE:
        return _working(rng, metric, work)
    rows, top = len(work), _top(metric)
    found = {
        "once": np.where(np.arange(rows) == int(rng.integers(rows)), top / 2, np.nan),
        "null": np.full(rows, np.nan),
        "zero": np.zeros(rows),
        "constant": np.full(rows, top * rng.random()),
    }
    return _whole(metric, found[form] if form in found else top * rng.random(rows))


def _working(rng: np.random.Generator, metric: Metric, work: Floats) -> Floats:
    """Return values that follow the work, or rise all the time."""
    level = work if rng.random() < 0.9 else 1 - work
    low, high = np.sort(rng.random(2)) if rng.random() < 0.3 else (0.0, 0.95)
    if rng.random() < 0.15:
        level = np.linspace(0, 1, len(work))
    wavering = 0.01 * rng.normal(size=len(work))
    return _whole(metric, _top(metric) * np.clip(low + (high - low) * level + wavering, 0, 1))


def _top(metric: Metric) -> float:
    """Return what a metric reaches in ordinary logs."""
    named = {"gpu_performance_state": 15, "pcie_link_generation": 5, "pcie_link_generation_max": 5, "gpu_xid_code": 80}
    named |= {"pcie_link_width": 16, "pcie_link_width_max": 16, "clock_event_unknown_bits": 2**14, "gpu_processes": 9}
    units = {"1": 1.0, "By": 80.0 * _GIB, "W": 400.0, "Cel": 100.0, "Hz": 2e9, "By/s": 3e10, "s": 1.0, "J": 1e6}
    return float(named.get(metric.name, units.get(metric.unit, 1.0 if metric.dtype == "bool" else 100.0)))


def _whole(metric: Metric, values: Floats) -> Floats:
    """Return values as logs write them: whole where the column is."""
    if metric.dtype == "bool":
        return np.where(np.isnan(values), np.nan, values >= 0.5)
    if metric.unit == "1":
        return np.round(values, 2)
    return values if metric.dtype.startswith("float") and metric.unit != "Hz" else np.round(values)


def _extreme(rng: np.random.Generator, metric: Metric, rows: int) -> Floats:
    """Return the least and the most a column may hold, by turns or all the time."""
    high = {"int8": 127.0, "int16": 2.0**15 - 1, "int32": 2.0**31 - 1, "bool": 1.0, "int64": _MOST, "uint64": 2.0**63}
    most = _top(metric) if metric.unit == "1" else high.get(metric.dtype, float(np.float32(1e18)))
    least = -270.0 if metric.unit == "Cel" else 0.0
    if metric.unit in {"Cel", "W", "Hz"} and rng.random() < 0.5:
        most = 10 * _top(metric)
    return np.where(rng.random(rows) < rng.choice([0.02, 0.5, 1.0]), most, least)


def _counted(rng: np.random.Generator, metric: Metric, form: str, rows: int) -> Floats:
    """Return a counter: it rises, stands still or begins anew."""
    if form in {"null", "zero"}:
        return np.full(rows, np.nan if form == "null" else 0.0)
    if form == "once":
        return np.where(np.arange(rows) == rows - 1, 5.0, np.nan)
    most = 1e15 if form == "extreme" else float(rng.choice([1.0, 500.0]))
    risen = np.cumsum(most * rng.random(rows) * (rng.random(rows) < rng.choice([0.05, 1.0])))
    if form == "random":
        risen -= risen[min(int(rng.integers(rows)), rows - 1)] * (np.arange(rows) > rows // 2)
    risen = np.clip(risen, 0.0, _MOST)
    return np.asarray(risen if metric.dtype == "float64" else np.floor(risen), dtype=np.float64)


def _stages(rng: np.random.Generator, started: int, ended: int) -> Iterator[Stage]:
    if rng.random() < 0.75:
        return
    edges = np.sort(rng.integers(started, ended + 1, int(rng.integers(2, 5))))
    for name, (start, end) in zip(("training", "validation", "é" * 80), pairwise(edges.tolist()), strict=False):
        yield Stage(name=name, start=start, end=end)


def _staged(rng: np.random.Generator, series: "pa.Table", stages: Sequence[Stage]) -> "pa.Table":
    """Return the series with the column that says to which stage a row belongs, where it has one."""
    if not stages or rng.random() < 0.5:
        return series
    codes = rng.integers(-1, len(stages), len(series))
    column = columns.categories(np.maximum(codes, 0), [stage.name for stage in stages], codes >= 0)
    return arrange_series([series.append_column("stage", column)])


def _training(rng: np.random.Generator, started: int, ended: int) -> "pa.Table":
    if rng.random() < 0.6:
        return empty_training()
    names = [name for name in _TRAINING if rng.random() < 0.4] or ["loss"]
    points = int(rng.integers(1, 60))
    span = max(ended - started, 1)
    margin = int(span * rng.choice([0.0, 0.2]))
    times = np.sort(rng.integers(started - margin, ended + margin + 1, points))
    if rng.random() < 0.1:
        times[:] = started
    value = _one(rng, (1.0, 0.0, 1e12)) * np.linspace(1, rng.random(), points) * (1 + 0.1 * rng.normal(size=points))
    known = rng.random(points) < _one(rng, (1.0, 1.0, 0.5, 0.0))
    if rng.random() < 0.1:
        value[rng.random(points) < 0.2] = _one(rng, (np.inf, np.nan, -np.inf))
    arrays: list[Any] = [
        columns.to_arrow(times, pa.timestamp("us"), rng.random(points) < _one(rng, (1.0, 1.0, 0.5, 0.0))),
        columns.to_arrow(np.arange(points) * int(rng.integers(0, 3)), pa.int64(), known),
        columns.categories(rng.integers(0, len(names), points), names),
        columns.to_arrow(value, pa.float64(), rng.random(points) < _one(rng, (1.0, 0.7))),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


def _quality(rng: np.random.Generator, stamps: dict[str, Stamps], rows: int) -> Quality:
    gaps = tuple(
        LogGap(device=device, start=int(times[row]), end=int(times[row + 1]))
        for device, times in stamps.items()
        if (pace := pace_of(times)) is not None
        for row in np.flatnonzero(np.diff(times) > gap_seconds(pace.interval) * 1e6)
    )
    quality = Quality(lines=rows + 1, rows_kept=rows, headers=1, gaps=gaps, synthetic_time=rng.random() < 0.05)
    if rng.random() < 0.6:
        return quality
    moment = int(next(iter(stamps.values()))[0])
    names = [*stamps, None]
    events = tuple(
        LogEvent(
            kind=_one(rng, _EVENTS),
            at=_one(rng, (None, moment, moment + int(rng.integers(10**8)))),
            line=int(rng.integers(1, 99)),
            device=_one(rng, names),
            text=_one(rng, _TEXTS),
        )
        for _ in range(int(rng.integers(4)))
    )
    step = ClockStep(
        device=next(iter(stamps)), at=moment, step_seconds=-3600.0, shift_seconds=3600.0, cause="clock set back"
    )
    return replace(
        quality,
        lines=rows + 8,
        rejected=(Rejected(reason="torn", rows=7, first_line=_one(rng, (None, 3))),),
        absent_cells=(AbsentCells(column="power.draw", reason="N/A", cells=rows),),
        log_events=events,
        clock_steps=(step,) if rng.random() < 0.3 else (),
        duplicates=int(rng.integers(3)),
        coverage_ratio=_one(rng, (None, 1.0, 0.5, 0.0)),
        notes=("what else a reader must know",),
    )
