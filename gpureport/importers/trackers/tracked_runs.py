"""A run of a tracker with what follows from its series: its span, its gaps, and the work it did."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.tracker import Tracked
from gpureport.importers.trackers.device_tables import add_timing, read_clocks, usual_interval
from gpureport.importers.trackers.training_metrics import (
    TrainingMetric,
    build_training_table,
    describe_training,
    measure_work,
)
from gpureport.recording import Device


def build_tracked(  # noqa: PLR0913 - what a run consists of
    locator: str,
    devices: Sequence[Device],
    series: Mapping[str, "pa.Table"],
    metrics: Sequence[TrainingMetric],
    *,
    quality: Quality,
    throughput: str | None,
    **about: Any,
) -> Tracked:
    """Return a run of these devices and training metrics.

    Args:
        locator: what a person can call it.
        devices: its devices.
        series: rows of each device.
        metrics: its training metrics.
        quality: what became of its points, without gaps and without notes on the training.
        throughput: name of the metric that counts work, if a person names one.
        about: the other fields of `Tracked`.

    Raises:
        SourceError: when none of them has a sample.
    """
    clocks = read_clocks(series[device.id] for device in devices)
    times = [(clock.first or 0, clock.last or 0) for clock in clocks]
    times = times or [(int(each.times.min()), int(each.times.max())) for each in metrics if len(each.times)]
    if not times and any(entry.reason == NOT_SELECTED for entry in quality.rejected):
        raise SourceError(locator, "it holds none of the GPUs asked for", "leave out --gpus", code="gpus_not_held")
    if not times:
        raise SourceError(
            locator, "the run has no metrics", "name another one; --list shows the runs", code="no_metrics"
        )
    span = min(first for first, _ in times), max(last for _, last in times)
    work = measure_work(metrics, throughput, span)
    trained = describe_training([each.name for each in metrics], work, throughput)
    notes = (*quality.notes, *(f"{note[0].upper()}{note[1:]}." for note in trained))
    return Tracked(
        span=span,
        devices=tuple(devices),
        series=dict(series),
        training=build_training_table(metrics),
        work=None if work is None else work[0],
        quality=add_timing(replace(quality, notes=notes), clocks),
        interval=usual_interval(clocks),
        **about,
    )
