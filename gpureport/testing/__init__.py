"""Helpers for tests besides the public API: synthetic recordings, result types, and one call per stage.

Tests of gpureport and of additions to it import only this package, `gpureport`, `gpureport.cli.main` and
`gpureport.errors`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.analysis import RULES
from gpureport.analysis.results import GPU_TIME_CLASSES, ClockEventTotal, Cost, DeviceStatistics, MetricSummary
from gpureport.api import Analysis, Comparison, analyze, compare
from gpureport.api.results import build_content
from gpureport.checks.changes import compare_with_baseline
from gpureport.checks.evaluation import CheckInput, evaluate_policy, step_name
from gpureport.checks.policy import read_policy
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.comparison.training import parse_target, read_goals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.data_quality import AbsentCells, ClockStep, LogEvent, LogGap, Quality, Rejected
from gpureport.findings import AdvisedStep, Check, Confidence, Evidence, Finding, Interval, NotJudged, Severity
from gpureport.importers.account import find_note_code, find_reject_code
from gpureport.importers.reading import Reading
from gpureport.metrics import CLOCK_EVENT_BITS, COUNTED_CLOCK_EVENTS, find_gpu
from gpureport.recording import HOST, METRIC_TYPES, Device, Recording, Run, Source, Stage, Work, arrange_series
from gpureport.report import render
from gpureport.report.formats import comparison_json
from gpureport.settings import Settings, check_sections, read_settings
from gpureport.store.store import Store

__all__ = ["HOST", "Device", "Recording", "Run", "Source", "Stage", "Work", "find_note_code", "find_reject_code"]
__all__ += ["AbsentCells", "ClockStep", "Delta", "LogEvent", "LogGap", "Quality", "Rejected", "Verdict"]
__all__ += ["AdvisedStep", "Check", "Confidence", "Evidence", "Finding", "Interval", "NotJudged", "Severity"]
__all__ += ["GPU_TIME_CLASSES", "Analysis", "ClockEventTotal", "Cost", "DeviceStatistics", "MetricSummary"]
__all__ += ["Comparison", "analyze", "compare"]

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
"""The metric of each argument of `recording`, and the argument's unit in base units."""
_HOST = Device(id=HOST)

Floats = npt.NDArray[np.float64]


def at(seconds: float) -> int:
    return START + round(seconds * 1e6)


def steps(*parts: tuple[float, int]) -> Floats:
    return np.concatenate([np.full(count, value, dtype=np.float64) for value, count in parts])


def recording(  # noqa: PLR0913 - each argument is a property that tests vary
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
    """Return a recording of one or more GPUs, and of a host if `cpu` or `host` is given.

    The keywords in `series` are names in `_NAMES`, clock event reasons, or their counters. Each value is
    a number, one series for all GPUs, or one series per GPU. The units are per cent, GiB, W, J, degrees
    Celsius, MHz and GB/s, and NaN means null. Samples are `every` seconds apart, or at these `times`.
    `memory_total` and `reserved` are in bytes.
    """
    tables = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in series.values())
    arrays = _scale(dict(zip(series, np.broadcast_arrays(*tables), strict=True)))
    count, length = next(iter(arrays.values())).shape
    seconds = np.asarray(np.arange(length) * every if times is None else times, dtype=np.float64)
    known = find_gpu(model)
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
    return {_COLUMNS[name][0]: array * _COLUMNS[name][1] for name, array in given.items()}


def _series(devices: Sequence[Device], blocks: Sequence[tuple[Floats, Mapping[str, Floats]]]) -> "pa.Table":
    """Return a series from one block per device, with its times in seconds and its values by metric."""
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


def with_quality(run: Recording, **fields: Any) -> Recording:
    return replace(run, run=replace(run.run, quality=replace(run.run.quality, **fields)))


def with_params(run: Recording, **params: str) -> Recording:
    return replace(run, run=replace(run.run, params=tuple(params.items())))


def with_training(
    run: Recording, points: Sequence[tuple[float | None, str, float | None]], steps: Sequence[int] | None = None
) -> Recording:
    """Return a recording with training metrics, given as seconds (None if not logged), name and value.

    Without `steps`, points are numbered from 0.
    """
    times = [None if seconds is None else at(seconds) for seconds, _, _ in points]
    table: dict[str, Any] = {
        "timestamp": pa.array(times, pa.timestamp("us")),
        "step": pa.array(range(len(points)) if steps is None else steps, pa.int64()),
        "name": pa.array([name for _, name, _ in points], pa.string()),
        "value": pa.array([value for _, _, value in points], pa.float64()),
    }
    return replace(run, training=pa.table(table).cast(run.training.schema))


def with_host(run: Recording, times: npt.ArrayLike, host: Device = _HOST, /, **series: npt.ArrayLike) -> Recording:
    """Return a recording with a host added, whose columns are sampled at these times, in seconds."""
    seconds = np.asarray(times, dtype=np.float64)
    values = {name: np.broadcast_to(np.asarray(one, dtype=np.float64), seconds.shape) for name, one in series.items()}
    return Recording(
        run=replace(run.run, devices=(*run.run.devices, host), ended=max(run.run.ended, at(float(seconds[-1])))),
        series=arrange_series([run.series, _series([host], [(seconds, values)])]),
        training=run.training,
    )


def findings_of(analysis: Analysis, kind: str) -> list[Finding]:
    return sorted((one for one in analysis.findings if one.kind == kind), key=lambda one: (one.intervals, one.devices))


def unjudged(analysis: Analysis, kind: str) -> list[NotJudged]:
    return [entry for entry in analysis.not_judged if entry.kind == kind]


def finding(
    kind: str,
    *stretches: tuple[float, float],
    devices: tuple[str, ...] = ("gpu:0",),
    lost: float | None = None,
    cause: str | None = None,
    confidence: Confidence = Confidence.HIGH,
) -> Finding:
    """Return a synthetic finding. Its intervals are in seconds since the first sample."""
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
    )


# --- one call per stage


def check(
    rules: str | Sequence[str] | Mapping[str, Any] | Path,
    *runs: Recording | Analysis,
    baseline: Sequence[Recording | Analysis] = (),
    target: str | None = None,
) -> tuple[Check, ...]:
    """Check each rule on each run, and return the results in rule order. Raises SettingsError for an invalid rule.

    Rules are strings as for `--fail-on`, or a `gpureport.toml` with `[[policy]]`, or its
    content. Runs with the same step label are repetitions. Changes are measured against the
    `baseline`, and cannot be assessed without one. A `target` is a value that a training metric
    should reach, such as `"val_accuracy=0.78"`.
    """
    stated = Settings(content=dict(rules)) if isinstance(rules, Mapping) else Settings()
    stated = read_settings(rules) if isinstance(rules, Path) else check_sections(stated)
    limits = () if isinstance(rules, Path | Mapping) else [rules] if isinstance(rules, str) else rules
    goals = read_goals(stated).with_overrides((), None if target is None else parse_target(target))
    analyses, earlier = ([*map(_analysed, given)] for given in (runs, baseline))
    checked, before = ([build_sampled_run(run.recording, run) for run in given] for given in (analyses, earlier))
    by_step: dict[str, list[SampledRun]] = {}
    for run in checked:
        by_step.setdefault(step_name(run.analysis), []).append(run)
    changes = {label: compare_with_baseline(before, step, goals) for label, step in by_step.items() if before}
    return evaluate_policy(
        read_policy(stated).with_limits(limits),
        CheckInput(
            runs=tuple(checked),
            goals=goals,
            selected_kinds=frozenset(kind for run in analyses for kind in run.kinds),
            today=date(2026, 11, 21),  # decides whether an acknowledgement still applies
            comparisons=changes,
        ),
    )


def comparison_document(comparison: Comparison) -> Any:
    """Return the whole document that `gpureport compare --format json` prints for a comparison."""
    return json.loads(comparison_json.render(comparison, comparison.by))


def _analysed(run: Recording | Analysis) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


Results: TypeAlias = Recording | Analysis | Comparison | Sequence[Recording | Analysis]
"""The content of a page. Recordings are analysed first."""


def build_page(results: Results, form: str = "txt", title: str = "", *, full: bool = False) -> str:
    """Return a page on one run, on several runs as steps, or on a comparison, in a text format."""
    return build_file(results, form, title, full=full).decode()


def build_file(results: Results, form: str, title: str = "", *, full: bool = False) -> bytes:
    """Return the page as a report file. `txt` is what the terminal shows, detailed if `full`."""
    several = [results] if isinstance(results, Recording | Analysis) else results
    shown = several if isinstance(several, Comparison) else [*map(_analysed, several)]
    return render(build_content(shown, title or None), f".{form}", detail=0 if full else None)


@contextmanager
def fault(stage: str, error: Exception, run: str = "") -> Iterator[None]:
    """Make a stage of gpureport raise an error for runs whose name or log path ends with `run`."""
    stages = {"reading": (Reading, "recording"), "analysis": (type(RULES[0]), "find"), "storing": (Store, "write")}
    owner, name = stages[stage]
    whole = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        subject: Any = arguments[:2][-1]
        if str(subject.locator if isinstance(subject, Reading) else subject.recording.run.name).endswith(run):
            raise error
        return whole(*arguments, **named)

    with patch.object(owner, name, failing):
        yield
