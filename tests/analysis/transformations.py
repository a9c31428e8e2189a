"""The same run told otherwise: sampled less often, its GPUs in another order, a stretch of it not recorded."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.series_table import arrange_series
from gpureport.testing import Recording, Run

Rows = npt.NDArray[np.bool_]


def every_second(recording: Recording) -> Recording:
    """Return a recording with every second row of each device, as one taken at twice the interval holds."""
    names = _names(recording.series)
    seen: dict[str, int] = dict.fromkeys(names, -1)
    kept = np.zeros(len(names), dtype=np.bool_)
    for row, name in enumerate(names):
        seen[name] += 1
        kept[row] = seen[name] % 2 == 0
    interval = recording.run.interval
    return _kept(recording, kept, replace(recording.run, interval=None if interval is None else 2 * interval))


def without(recording: Recording, start: float, end: float) -> Recording:
    """Return a recording that holds no rows of a part of its time, given in shares of it."""
    run, times = recording.run, columns.integers(recording.series.column("timestamp"))
    first, stop = (run.started + share * (run.ended - run.started) for share in (start, end))
    return _kept(recording, (times < first) | (times >= stop), run)


def reordered(recording: Recording, order: Sequence[int]) -> Recording:
    """Return a recording in which the GPU at each place of `order` has the place's number."""
    named = {f"gpu:{old}": f"gpu:{new}" for new, old in enumerate(order)}
    devices = [
        replace(device, id=named[device.id], index=int(named[device.id][4:])) if device.id in named else device
        for device in recording.run.devices
    ]
    devices.sort(key=lambda device: (device.index is None, device.index or 0))
    names = [named.get(name, name) for name in _names(recording.series)]
    rank = {device.id: place for place, device in enumerate(devices)}
    series = _renamed(recording.series, names)
    by_device = np.argsort([rank[name] for name in names], kind="stable")
    run = replace(recording.run, devices=tuple(devices))
    return replace(recording, run=run).with_series(series.take(by_device))


def _names(series: pa.Table) -> list[str]:
    return [str(name) for name in series.column("device").to_pylist()]


def _renamed(series: pa.Table, names: list[str]) -> pa.Table:
    place = series.schema.get_field_index("device")
    return series.set_column(place, "device", pa.array(names, pa.string()).dictionary_encode())


def _kept(recording: Recording, rows: Rows, run: Run) -> Recording:
    series = recording.series.filter(columns.to_arrow(rows, pa.bool_()))
    ended = min(int(columns.integers(series.column("timestamp")).max()), run.ended)
    return replace(recording, run=replace(run, ended=ended)).with_series(arrange_series([series]))
