"""Figures of each stage of a run: preprocessing, training, validation."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.analysis.results import StageStatistics
from gpureport.analysis.series import implausible_power
from gpureport.analysis.series.device_series import DeviceSeries, series_by_device
from gpureport.analysis.series.statistics import compute_statistics
from gpureport.columns import IntArray
from gpureport.recording import Recording

_COLUMN = "stage"


def summarise_stages(recording: Recording) -> Iterator[StageStatistics]:
    """Yield the figures of each stage, in the order the stages began.

    A row belongs to the stage that recorded it. If a stage resumed, the time in between does not count.
    """
    if not recording.run.stages or _COLUMN not in recording.rows.schema.names:
        return
    names, codes = _read_stage_codes(recording)
    whole = series_by_device(recording)
    for name in dict.fromkeys(stage.name for stage in recording.run.stages):
        rows = np.flatnonzero(codes == names.index(name)) if name in names else np.zeros(0, dtype=np.int64)
        own = recording.with_series(recording.series.take(columns.to_arrow(rows, pa.int64())))
        series = [_inherit_doubts(one, whole[device]) for device, one in series_by_device(own).items()]
        yield StageStatistics(stage=name, statistics=tuple(compute_statistics(one) for one in series if len(one)))


def _inherit_doubts(part: DeviceSeries, whole: DeviceSeries) -> DeviceSeries:
    """Return the series of a stage with the implausible metrics of the whole run."""
    for metric in implausible_power.POWER_METRICS:
        part.memoize(("implausible", metric), lambda metric=metric: whole.explain_implausibility(metric))  # type: ignore[misc]  # bound early
    return part


def _read_stage_codes(recording: Recording) -> tuple[list[str], IntArray]:
    """Return the names of stages, and which of them each row belongs to; -1 for none."""
    chunks: list[Any] = recording.series.column(_COLUMN).unify_dictionaries().chunks
    names = chunks[0].dictionary.to_pylist() if chunks else []
    parts = [columns.integers(chunk.indices, null=-1) for chunk in chunks]
    return names, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
