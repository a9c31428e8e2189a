"""Small runs made by hand, for tests of comparison and report."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import FloatArray
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.series_table import KEY_FIELDS, METRIC_TYPES
from gpureport.testing import (
    AbsentCells,
    Analysis,
    Confidence,
    Device,
    DeviceStatistics,
    Evidence,
    Finding,
    GpuTime,
    Interval,
    LogGap,
    MetricSummary,
    NotJudged,
    Phase,
    Provenance,
    Quality,
    Recording,
    Rejected,
    Run,
    Severity,
    Source,
    Threshold,
    Work,
)

Pair = tuple[Recording, Analysis]
"""A run as `build` takes it."""

START = 1_773_480_413_000_000
UTILISATION = "gpu_utilization_ratio"


def at(seconds: float) -> int:
    """Return a moment of a run, in microseconds."""
    return START + round(seconds * 1e6)


def run(  # noqa: PLR0913 - each argument is a field a test sets
    name: str = "baseline",
    *,
    gpus: int = 2,
    seconds: int = 600,
    step: str | None = None,
    work: Work | None = None,
    quality: Quality | None = None,
    model: str | None = "NVIDIA H100 80GB HBM3",
    timezone: str | None = None,
) -> Run:
    """Return a run sampled every second."""
    devices = tuple(Device(id=f"gpu:{index}", index=index, model=model, driver="550.54") for index in range(gpus))
    rows = gpus * (seconds + 1)
    return Run(
        id=sha256(name.encode()).hexdigest()[:8],
        name=name,
        started=at(0),
        ended=at(seconds),
        sources=(Source(kind="nvidia_smi", locator=f"{name}.csv", sha256="ab" * 32),),
        devices=devices,
        quality=quality or Quality(lines=rows + 1, rows_kept=rows, headers=1, coverage_ratio=1.0),
        step=step,
        work=work,
        interval=1.0,
        timezone=timezone,
    )


def recording(info: Run, utilisation: Sequence[FloatArray] | None = None) -> Recording:
    """Return a recording with one utilisation series a GPU; NaN is a row without a value."""
    count = round((info.ended - info.started) / 1e6) + 1
    series = utilisation or [np.full(count, 0.9) for _ in info.gpus]
    counts = [np.arange(len(values), dtype=np.int64) for values in series]
    stamps = np.concatenate([*counts, np.zeros(0, dtype=np.int64)]) * 1_000_000 + info.started
    codes = np.repeat(np.arange(len(series), dtype=np.int32), [len(values) for values in series])
    values = np.concatenate([*series, np.zeros(0)])
    names = pa.array([gpu.id for gpu in info.gpus], pa.string())
    arrays = [
        pa.DictionaryArray.from_arrays(columns.to_arrow(codes, pa.int32()), names),
        columns.to_arrow(stamps, pa.timestamp("us")),
        pa.nulls(len(values), pa.dictionary(pa.int32(), pa.string())),
        columns.to_arrow(np.zeros(len(values)), pa.bool_()),
        columns.nan_to_null(values, METRIC_TYPES[UTILISATION]),
    ]
    schema = pa.schema([*KEY_FIELDS, pa.field(UTILISATION, METRIC_TYPES[UTILISATION])])
    return Recording(run=info, series=pa.Table.from_arrays(arrays, schema=schema))


def summary(metric: str, value: float, seconds: float = 600.0) -> MetricSummary:
    """Return the summary of a metric that never changes."""
    return MetricSummary(
        metric=metric,
        mean=value,
        sample_mean=value,
        p5=value,
        p50=value,
        p95=value,
        max=value,
        min=value,
        seconds=seconds,
        samples=round(seconds) + 1,
        changes=0,
        repeated_ratio=1.0,
        refresh_seconds=None,
        effective_samples=round(seconds) + 1,
    )


def statistics(device: str, *, idle: float | None = 60.0, celsius: float = 70.0, **changed: float) -> DeviceStatistics:
    """Return what one GPU did in 600 s."""
    metrics = {
        UTILISATION: 0.8,
        "gpu_power_watts": 500.0,
        "gpu_temperature_celsius": celsius,
        "gpu_sm_clock_hertz": 1.98e9,
    } | changed
    return DeviceStatistics(
        device=device,
        metrics=tuple(summary(metric, value) for metric, value in metrics.items()),
        idle_seconds=idle,
        memory_peak_bytes=40 * 2**30,
        memory_headroom_ratio=0.5,
        energy_joules=300_000.0,
        observed_seconds=600.0,
    )


def limit(value: float, unit: str) -> Threshold:
    """Return a limit with an origin."""
    return Threshold(value=value, unit=unit, provenance=Provenance.LITERATURE, source="a published study")


def idle_gap(device: str, start: float, end: float, summary: str | None = None) -> Finding:
    """Return one idle gap."""
    text = summary or f"{device.replace('gpu:', 'GPU ')} was idle for {end - start:.0f} s."
    return Finding(
        kind="idle_gap",
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        devices=(device,),
        intervals=(Interval(at(start), at(end)),),
        evidence=(
            Evidence(
                metric=UTILISATION, statistic="mean", observed=0.0, unit="1", threshold=limit(0.05, "1"), relation="<="
            ),
            Evidence(
                metric="duration", statistic="", observed=end - start, unit="s", threshold=limit(5, "s"), relation=">="
            ),
        ),
        lost_gpu_seconds=end - start,
        summary=text,
        recommendation="Prefetch the next batch while the GPU computes.",
        samples=round(end - start),
    )


def throttling(device: str, start: float, end: float) -> Finding:
    """Return an episode of reduced clock."""
    return Finding(
        kind="thermal_throttle",
        severity=Severity.PROBLEM,
        confidence=Confidence.MEDIUM,
        devices=(device,),
        intervals=(Interval(at(start), at(end)),),
        evidence=(Evidence(metric="gpu_sm_clock_hertz", statistic="median", observed=1.533e9, unit="Hz"),),
        lost_gpu_seconds=(end - start) * 0.2,
        summary="The clock fell to 1533 MHz while the GPU was at 87 °C.",
        recommendation="Check airflow and fan of this slot.",
        ruled_out=("the power limit: power stayed below it",),
    )


NOT_JUDGED = (
    NotJudged(
        kind="cpu_bound",
        device=None,
        reason="No CPU utilisation was recorded.",
        recording="a log of the CPU",
    ),
    NotJudged(
        kind="io_bound",
        device=None,
        reason="No CPU utilisation was recorded.",
        recording="a log of the CPU",
    ),
)


def analysis(
    info: Run,
    *,
    findings: tuple[Finding, ...] = (),
    not_judged: tuple[NotJudged, ...] = (),
    statistics_of: tuple[DeviceStatistics, ...] | None = None,
    idle: float = 60.0,
) -> Analysis:
    """Return an analysis in which each GPU computes but for `idle` seconds."""
    length = (info.ended - info.started) / 1e6
    classes = (("computing", length - idle), ("idle", idle))
    return Analysis(
        run=info,
        phases=(Phase(kind="steady", interval=Interval(info.started, info.ended)),),
        statistics=statistics_of or tuple(statistics(gpu.id, idle=idle) for gpu in info.gpus),
        gpu_time=tuple(GpuTime(device=gpu.id, seconds=classes) for gpu in info.gpus),
        findings=findings,
        not_judged=not_judged,
        limits=("Gaps shorter than 5 s cannot be seen at this sampling.",),
        coverage_ratio=info.quality.coverage_ratio,
    )


def sampled(*analyses: Analysis) -> list[SampledRun]:
    """Return runs as a comparison takes them, without any series."""
    return [SampledRun(analysis=analysis) for analysis in analyses]


def with_gap(info: Run) -> Run:
    """Return the run with a dirty log: a gap, rejected lines and absent values."""
    rows = info.quality.rows_kept - 60
    return replace(
        info,
        quality=Quality(
            lines=rows + 4,
            rows_kept=rows,
            rejected=(Rejected(reason="truncated line", rows=2, first_line=811),),
            headers=1,
            events=1,
            absent_cells=(AbsentCells(column="gpu_fan_ratio", reason="N/A", cells=rows),),
            gaps=(LogGap(device="gpu:0", start=at(300), end=at(360)),),
            coverage_ratio=0.95,
            notes=("Times are the local time of the recording machine.",),
        ),
    )


def pair(
    info: Run,
    findings: tuple[Finding, ...] = (),
    not_judged: tuple[NotJudged, ...] = (),
    idle: float = 60.0,
) -> Pair:
    """Return a run as `build` takes it."""
    return recording(info), analysis(info, findings=findings, not_judged=not_judged, idle=idle)
