"""GPU utilisation over time: the typical run of each step, on one axis, with the classes of GPU time below it."""

from collections.abc import Mapping, Sequence
from math import fsum

import numpy as np

from gpureport.analysis.series.device_series import build_device_series
from gpureport.columns import FloatArray
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import count_jobs
from gpureport.comparison.steps import Step
from gpureport.report.charts.elements import place_time_ticks
from gpureport.report.model.pictures import UseOverTime, UseRow
from gpureport.report.runs.over_time import ClassHistory, CumulativeSums, accumulate
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.time_spent import choose_steps
from gpureport.report.wording import display

_BUCKETS = 240


def build_use_over_time(
    comparison: Comparison, runs: Sequence[ReportRun], histories: Mapping[int, ClassHistory]
) -> UseOverTime | None:
    """Return one row a step; None for a single run, whose signals say more, and where no run has a length.

    Histories are the classes of runs over time, by their place among them.
    """
    if len(runs) == 1:
        return None
    place_of = {run.run.id: place for place, run in enumerate(runs)}
    known = [step for step in comparison.steps if _choose_typical_run(step)]
    chosen = [
        (step, place_of[identity])
        for step in choose_steps(known)
        if (identity := _choose_typical_run(step)) in place_of
    ]
    seconds = max((runs[place].seconds for _, place in chosen), default=0.0)
    if seconds <= 0:
        return None
    several = any(len(step.runs) > 1 for step in comparison.steps)
    undrawn = len(known) - len(chosen)
    return UseOverTime(
        caption=f"{'The middle run of each' if several else 'Each'} step. The band has the colours from above.",
        rows=tuple(_build_row(step, runs[place], histories[place], seconds) for step, place in chosen),
        seconds=seconds,
        ticks=place_time_ticks(0.0, seconds),
        rest=f"{display.plural(undrawn, 'step')} not drawn." if undrawn else "",
    )


def _choose_typical_run(step: Step) -> str:
    """Return the id of the run with the median GPU time, of an even number the shorter one; empty without a length."""
    held = [run.analysis for run in count_jobs(step.runs).counted if run.analysis.run.ended > run.analysis.run.started]
    ordered = sorted(held, key=lambda analysis: analysis.job_gpu_seconds)
    return ordered[(len(ordered) - 1) // 2].run.id if ordered else ""


def _build_row(step: Step, run: ReportRun, history: ClassHistory, axis: float) -> UseRow:
    finest = max(axis / _BUCKETS, run.run.interval or 0.0)
    # the last bucket ends with the run, not beyond the axis
    count = max(int(np.ceil(run.seconds / finest - 1e-9)), 1)
    bucket = run.seconds / count
    sums = []
    for gpu in run.run.gpus:
        series = build_device_series(run.recording, gpu)
        # a value speaks of the window before its stamp, so it lies that much earlier
        start, end = ((each - run.run.started - series.shift) / 1e6 for each in (series.start, series.end))
        sums.append(accumulate(start, end, series.values("gpu_utilization_ratio")))
    number = [each.analysis.run.id for each in step.runs].index(run.run.id) + 1
    return UseRow(
        label=display.clean(step.label),
        small=f"run {number} of {len(step.runs)}" if len(step.runs) > 1 else "",
        mean=_average(sums, np.arange(count + 1, dtype=np.float64) * bucket),
        bucket_seconds=bucket,
        band=history.list_stretches([gpu.id for gpu in run.run.gpus]),
        band_seconds=history.bucket_seconds,
        total=display.duration(run.seconds),
        text=_describe(run, sums),
    )


def _average(sums: Sequence[CumulativeSums], edges: FloatArray) -> FloatArray:
    """Return the mean utilisation of GPUs between edges; NaN where none has a sample, as in a run of a host alone."""
    means = np.array([each.means(edges) for each in sums]).reshape(-1, len(edges) - 1)
    count = (~np.isnan(means)).sum(axis=0)
    averaged: FloatArray = np.where(count, np.nansum(means, axis=0) / np.maximum(count, 1), np.nan)
    return np.clip(averaged, 0.0, 1.0)


def _describe(run: ReportRun, sums: Sequence[CumulativeSums]) -> str:
    """Return how busy GPUs were from the first to the last sustained work."""
    steady = [phase.interval for phase in run.analysis.phases if phase.kind == "steady"]
    seconds = fsum(part.seconds for part in steady)
    if seconds <= 0:
        return "no sustained GPU work"
    edges = (np.array([run.since_start(part.start), run.since_start(part.end)]) for part in steady)
    means = [float(_average(sums, each)[0]) for each in edges]
    busy = fsum(mean * part.seconds for mean, part in zip(means, steady, strict=True)) / seconds
    if np.isnan(busy):
        return "utilisation not recorded"
    who = "GPUs" if len(run.run.gpus) > 1 else "GPU"
    return f"{who} {display.percent(busy)} busy in {display.duration(seconds)} of training"
