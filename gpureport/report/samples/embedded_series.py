"""The samples behind the timelines, packed into a page: one byte a value, deflated, in base64.

A page that would get too large holds the smallest, mean and largest value of buckets instead, and says so. These bytes
are for charts only: the text of a report never comes from them.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, log10
from typing import Any

import numpy as np

from gpureport.report.charts import plotted_metrics
from gpureport.report.charts.plotted_metrics import PlottedMetric
from gpureport.report.model.time_charts import Timeline
from gpureport.report.samples import series_index, series_packing
from gpureport.report.wording import display

BUDGET = 10_000_000
"""Most bytes of samples in a page."""

_EXACT = 1e-9
"""Rounding error of the computation, as a part of a digit."""

LEVELS = (0, 5, 10, 30, 60, 300, 900, 3600)
"""Seconds of buckets to fall back to, one after the other; 0 is every sample."""

_LEAST_BUCKET = 4
"""Fewest samples in a bucket: with fewer, its three values would be no smaller than its samples."""

_THREADS = 2
_EFFORTS = (1, 6)
"""Levels of deflate: the first takes a third of the time of the second and some hundredths more bytes, so that the
second is for what would not fit.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBlob:
    """Packed series of one device: the id of its element, and what it holds."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSeries:
    """Every sample of a report as a page holds it.

    Attributes:
        index: JSON that says what the blobs hold, fit for a script element.
        blobs: packed series, one a device.
        note: in words, what is there and how exact it is.
    """

    index: str
    blobs: tuple[SeriesBlob, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _PackedRun:
    """One run's part of the index, with its blobs not yet deflated."""

    index: dict[str, Any]
    raw: tuple[tuple[str, bytes], ...]
    values: int
    bucket: int
    rounded: tuple[tuple[PlottedMetric, float], ...]


def embed_series(runs: Sequence[Timeline], budget: int = BUDGET, detail: int | None = None) -> EmbeddedSeries | None:
    """Return the samples of every run, None where there is nothing to look at.

    Args:
        runs: the timelines of a report.
        budget: most bytes that the packed samples may take; coarser buckets are tried until they fit.
        detail: seconds of the buckets whatever the budget, 0 for every sample.
    """
    shown = [(place, run) for place, run in enumerate(runs) if run.strips and run.seconds > 0]
    if not shown:
        return None
    levels = LEVELS if detail is None else (detail,)
    for level in levels:
        packed = [_pack_run(place, run, level) for place, run in shown]
        blobs = _compress_to_fit([entry for run in packed for entry in run.raw], budget if level < levels[-1] else None)
        if blobs is not None:
            break
    index = series_index.describe_axis([run for _, run in shown]) | {"runs": [run.index for run in packed]}
    text = json.dumps(_clean(index), separators=(",", ":")).replace("<", "\\u003c")
    return EmbeddedSeries(
        index=text, blobs=tuple(blobs or ()), note=_describe_embedding(packed, budget if detail is None else None)
    )


def _clean(value: Any) -> Any:
    """Return a JSON value with control characters removed from its strings."""
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return display.clean(value) if isinstance(value, str) else value


def _compress_to_fit(raw: Sequence[tuple[str, bytes]], budget: int | None) -> list[SeriesBlob] | None:
    """Return the blobs compressed with the least effort that makes them fit, None if none does."""
    tries = (_compress(raw, budget, effort) for effort in _EFFORTS)
    return next((blobs for blobs in tries if blobs is not None), None)


def _compress(raw: Sequence[tuple[str, bytes]], budget: int | None, effort: int) -> list[SeriesBlob] | None:
    """Return the blobs, None as soon as they are more than the budget allows."""
    blobs, size = [], 0
    with ThreadPoolExecutor(_THREADS) as threads:
        # deflate lets other threads run
        for name, text in threads.map(partial(_deflate, effort), raw):
            size += len(text)
            if budget is not None and size > budget:
                threads.shutdown(cancel_futures=True)
                return None
            blobs.append(SeriesBlob(id=name, text=text))
    return blobs


def _deflate(effort: int, entry: tuple[str, bytes]) -> tuple[str, str]:
    name, raw = entry
    return name, b64encode(zlib.compress(raw, effort)).decode()


def _pack_run(place: int, run: Timeline, level: int) -> _PackedRun:
    info = run.recording.run
    bucket = level if level >= _LEAST_BUCKET * (info.interval or 1.0) else 0
    metrics = list(plotted_metrics.select_metrics(_recorded_metrics(run)))
    devices = [series_packing.collect_samples(run, device, metrics, bucket) for device in info.devices]
    scales = [series_packing.fit_metric_scale(number, metric, devices, bucket) for number, metric in enumerate(metrics)]
    packed = [series_packing.pack_device(device, devices[:number], scales) for number, device in enumerate(devices)]
    names = [f"run{place}-series{number}" for number in range(len(devices))]
    limits = {limit.metric: (limit.value,) for strip in run.strips for limit in strip.limits}
    return _PackedRun(
        index=series_index.describe_run(
            place,
            run,
            bucket,
            names=[metric.metric for metric in metrics],
            metrics=[
                series_index.describe_metric(
                    metric,
                    found,
                    max(series_packing.largest_value(number, devices, found), *limits.get(metric.metric, (0.0,))),
                )
                for number, (metric, found) in enumerate(zip(metrics, scales, strict=True))
            ],
            devices=[
                series_index.describe_device(info, *each, bucket) for each in zip(names, devices, packed, strict=True)
            ],
        ),
        raw=tuple((name, one.raw) for name, one in zip(names, packed, strict=True)),
        values=sum(int((~np.isnan(part)).sum()) for device in devices for parts in device.parts for part in parts),
        bucket=bucket,
        rounded=tuple((metric, found.error) for metric, found in zip(metrics, scales, strict=True) if found.error),
    )


def _recorded_metrics(run: Timeline) -> set[str]:
    rows = [run.recording.rows.rows_of(device.id) for device in run.recording.run.devices]
    names = run.recording.rows.schema.names
    return {name for name in names if any(one.column(name).null_count < len(one) for one in rows)}


def _describe_rounding(packed: Sequence[_PackedRun]) -> list[str]:
    """Return the largest rounding error of each metric, in words."""
    errors: dict[PlottedMetric, float] = {}
    for metric, error in (entry for run in packed for entry in run.rounded):
        errors[metric] = max(error, errors.get(metric, 0.0))
    return [
        f"{metric.title} (by up to {_format_bound(error * metric.unit.factor)}{display.GAP}{metric.unit.symbol})"
        for metric, error in errors.items()
    ]


def _format_bound(error: float) -> str:
    digit = 10.0 ** floor(log10(error))
    bound = ceil(error / digit - _EXACT) * digit
    return f"{bound:.{max(-floor(log10(digit)), 0)}f}"


def _describe_embedding(packed: Sequence[_PackedRun], budget: int | None) -> str:
    values = display.integer(sum(run.values for run in packed))
    if any(run.bucket for run in packed):
        lengths = display.join_words(
            [f"{bucket}{display.GAP}s" for bucket in sorted({run.bucket for run in packed} - {0})]
        )
        heavy = f"All samples together would take more than {(budget or 0) / 1e6:g}{display.GAP}MB, so the charts hold"
        return (
            f"{'The charts hold, as asked,' if budget is None else heavy} smallest, mean and largest value of every "
            f"{lengths}. Text and tables are from the samples themselves."
        )
    rounded = _describe_rounding(packed)
    exact = f"rounded for the charts: {display.join_words(rounded)}" if rounded else "none of them rounded"
    return f"The charts hold every sample: {values} values, {exact}. Text and tables are from the samples themselves."
