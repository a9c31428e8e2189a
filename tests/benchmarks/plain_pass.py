"""Prints what a plain pass over stored runs costs: the one the goal of six million rows a second was set for.

Eight columns are decoded, four kinds of stretches are looked for, six metrics get their quantiles and utilisation its
interval, by the functions the rules and comparisons use. It is not what `analyze` does, which answers every kind, from
every column, and is measured by `tests.benchmarks.analysis`.
Run by hand: `python -m tests.benchmarks.plain_pass [--rows 12000000] [--rounds 3]`. Times are of processors.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from gpureport.analysis.series import intervals, statistics
from gpureport.analysis.series.device_series import DeviceSeries, series_by_device
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray
from gpureport.comparison.statistics.batch_means import BatchMeans, batch_means
from gpureport.importers import IMPORTER_VERSION
from gpureport.metrics import BY_NAME
from gpureport.store import Store, series_reader
from gpureport.store.store import Entry
from gpureport.testing import Recording
from tests.benchmarks import log
from tests.store.runs import reading

_ROWS_A_LOG = 250_000
_BYTES_A_ROW = 170
_BLOCKS_A_LOG = 2
_SHORTEST = 5.0
_UTILISATION = "gpu_utilization_ratio"
_METRICS = (
    _UTILISATION,
    "gpu_memory_controller_ratio",
    "gpu_memory_used_bytes",
    "gpu_temperature_celsius",
    "gpu_power_watts",
    "gpu_sm_clock_hertz",
)
_LOW = {_UTILISATION: (0.05, 0.12), "gpu_power_watts": (150.0, 200.0), "gpu_sm_clock_hertz": (1.7e9, 1.75e9)}
"""Metrics in which low stretches are looked for, with the limits that begin and end one."""


def _decoded(entry: Entry) -> Recording:
    """Return a run with eight of its columns, checksums verified."""
    devices = [device.id for device in entry.run.devices]
    path = entry.folder / "hardware.parquet"
    series = series_reader.read_series(path, ("device", "timestamp", *_METRICS), devices, entry.stored.series_sha256)
    return Recording(run=entry.run, series=series)


def _breaks(cells: DeviceSeries) -> BoolArray:
    rows = np.zeros(len(cells), dtype=np.bool_)
    rows[cells.gap_rows] = True
    return rows


def _stretches(cells: DeviceSeries) -> list[Spans]:
    """Return the log gaps of a GPU, and the stretches in which it is idle, draws little power, or is slow."""
    found, breaks = [intervals.to_spans(cells.gaps)], _breaks(cells)
    for metric, (enter, leave) in _LOW.items():
        first, stop = intervals.find_hysteresis_runs(cells.values(metric), enter=enter, leave=leave, breaks=breaks)
        edges = np.column_stack([cells.start[first], cells.end[stop - 1]])
        found.append(intervals.drop_shorter(edges, _SHORTEST))
    return found


def _quantiles(cells: DeviceSeries) -> list[list[float]]:
    return [_quantiles_of(cells, metric) for metric in _METRICS]


def _quantiles_of(cells: DeviceSeries, metric: str) -> list[float]:
    values, seconds = cells.values(metric), cells.seconds
    if not cells.is_complete(metric):
        rows = np.flatnonzero(cells.known_rows(metric))
        values, seconds = values[rows], seconds[rows]
    # of the statistics the functions that make quantiles, and no more of them
    quantum = statistics._QUANTUM[BY_NAME[metric].unit]  # noqa: SLF001 - times the private steps themselves
    levels = statistics._sort_levels(values, seconds, quantum, (float(values.min()), float(values.max())))  # noqa: SLF001 - times the private steps themselves
    return statistics._compute_quantiles(levels)  # noqa: SLF001 - times the private steps themselves


def _mean(cells: DeviceSeries) -> BatchMeans:
    return batch_means(cells.values(_UTILISATION)[np.flatnonzero(cells.known_rows(_UTILISATION))])


def measure(entries: Sequence[Entry]) -> list[float]:
    """Return the seconds that decoding, cells, stretches, quantiles and means take, run by run."""
    total = np.zeros(5)
    for entry in entries:
        times = [time.process_time()]
        recording = _decoded(entry)
        times.append(time.process_time())
        made = series_by_device(recording).values()
        times.append(time.process_time())
        for part in (_stretches, _quantiles, _mean):
            for cells in made:
                part(cells)
            times.append(time.process_time())
        total += [end - begin for begin, end in pairwise(times)]
    figures: list[float] = total.tolist()
    return figures


def stored(folder: Path, rows: int) -> list[Entry]:
    """Return runs of logs that hold so many rows together."""
    store = Store(folder / "store")
    for number in range(-(-rows // _ROWS_A_LOG)):
        path = folder / f"{number}.csv"
        log.write(path, _ROWS_A_LOG * _BYTES_A_ROW, first=_BLOCKS_A_LOG * number)
        store.write(reading(path), IMPORTER_VERSION)
        path.unlink()
    return store.entries()


def lines(entries: Sequence[Entry], rounds: int) -> Iterator[str]:
    """Yield what a pass takes, the median of several, and which part of it what takes."""
    taken = sorted((measure(entries) for _ in range(rounds)), key=sum)[rounds // 2]
    rows = sum(len(_decoded(entry).series) for entry in entries)
    speed = rows / sum(taken) / 1e6
    yield f"{len(entries)} runs, {rows} rows: {sum(taken):.2f} s, {speed:.2f} million rows a second; goal: 6"
    names = ("decoding", "cells", "stretches", "quantiles", "batch means")
    yield from (f"  {name:12} {seconds:6.3f} s" for name, seconds in zip(names, taken, strict=True))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(lines(stored(Path(folder), given.rows), given.rounds)))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
