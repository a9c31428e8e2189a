"""Prints what reading a large export of neptune-exporter costs beside pandas with a filter.

Run by hand: `python -m tests.benchmarks.neptune [--rows 1000000] [--rounds 5]`. The two take turns, each a process of
its own; pandas is given what it needs for hardware series alone, gpureport makes a whole recording, training included.
Figures are medians; the ratios are what counts.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.benchmarks import cost
from tests.benchmarks.cost import Cost
from tests.importers.trackers.neptune.dumps import SCHEMA

_TIME, _MEMORY = 0.15, 0.35
_GPUS, _TICKS = 8, 8640
_START = 1_773_480_413_123
_GROUP = 100_000


def series(rows: int) -> Iterator[tuple[str, int, int]]:
    """Yield path, points and milliseconds between them of each series of a day of training on eight GPUs."""
    yield from ((f"monitoring/training/{name}", _TICKS, 10_000) for name in ("cpu", "memory"))
    for gpu in range(_GPUS):
        yield from (
            (f"monitoring/training/{name}_{gpu}", _TICKS, 10_000) for name in ("gpu", "gpu_memory", "gpu_power")
        )
    left = rows - (2 + 3 * _GPUS) * _TICKS
    yield from ((f"train/metric_{place}", left // 10, 86_400_000 * 10 // left) for place in range(10))


def write(path: Path, rows: int) -> None:
    """Write an export of about so many rows, with the codecs and row groups of the exporter."""
    random = np.random.default_rng(7)
    with parquet.ParquetWriter(path, SCHEMA, compression="snappy") as writer:
        writer.write_table(_table("sys/name", {"attribute_type": ["string"], "string_value": ["day"]}, 1))
        writer.write_table(
            _table("monitoring/training/hostname", {"attribute_type": ["string"], "string_value": ["a"]}, 1)
        )
        for name, count, every in series(rows):
            values = random.integers(1, 100, count).astype(np.float64)
            for start in range(0, count, _GROUP):
                steps = np.arange(start, min(start + _GROUP, count))
                writer.write_table(_points(name, steps, _START + every * steps, values[start : start + _GROUP]))


def _points(name: str, steps: Any, times: Any, values: Any) -> "pa.Table":  # noqa: ANN401 - arrays
    count = len(steps)
    given = {
        "attribute_type": ["float_series"] * count,
        "step": pa.array(steps.tolist(), pa.int64()).cast(pa.decimal128(25, 6)).cast(pa.decimal128(18, 6)),
        "timestamp": pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC")),
        "float_value": pa.array(values),
    }
    return _table(name, given, count)


def _table(name: str, given: dict[str, Any], count: int) -> "pa.Table":
    known = {"project_id": ["acme/opt"] * count, "run_id": ["OPT-1"] * count, "attribute_path": [name] * count} | given
    arrays = [
        known[field.name]
        if isinstance(known.get(field.name), pa.Array)
        else pa.array(known.get(field.name) or [None] * count, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def with_pandas(path: str) -> int:
    """Read an export as its documentation shows, and filter it to hardware series; return how many rows they have."""
    import pandas as pd  # noqa: PLC0415 - a candidate loads what it needs

    frame = pd.read_parquet(path)
    found = frame[frame["attribute_path"].str.startswith("monitoring/") & (frame["attribute_type"] == "float_series")]
    return len(found)


def with_gpureport(path: str) -> int:
    """Make a recording of an export; return how many points it is made of."""
    from gpureport.importers import Labels, ReadOptions, Selection, TrackedReading, find_tracker, join_attached_logs  # noqa: PLC0415 - as above

    found = find_tracker(path)
    assert found is not None
    (run,) = found.runs(path, Selection()).runs
    reading = TrackedReading(found.kind, run, ReadOptions(), Labels(), strict=False, join=join_attached_logs)
    return reading.recording().run.quality.lines


CANDIDATES = {"pandas": with_pandas, "gpureport": with_gpureport}


def taken(name: str, path: Path) -> tuple[Cost, float]:
    """Run a candidate in a process of its own; return what the process took, and the reading alone in seconds."""
    seconds = path.with_name("seconds")
    spent = cost.of([sys.executable, "-m", "tests.benchmarks.neptune", "--candidate", name, str(path), str(seconds)])
    return spent, float(seconds.read_text())


def candidate(name: str, path: str, out: str) -> None:
    """Be a candidate: load what it needs, then read, and write down how long the reading took."""
    loaded = {"pandas": "pandas", "gpureport": "gpureport.importers"}
    __import__(loaded[name])
    __import__("pyarrow.parquet")
    start = time.perf_counter()
    CANDIDATES[name](path)
    Path(out).write_text(f"{time.perf_counter() - start}", encoding="utf-8")


def compare(rows: int, rounds: int, path: Path) -> list[str]:
    """Return what both took, and the ratios."""
    write(path, rows)
    costs: dict[str, list[tuple[Cost, float]]] = {name: [] for name in CANDIDATES}
    for _ in range(rounds):
        for name, each in costs.items():
            each.append(taken(name, path))
    seconds = {name: median(each for _, each in found) for name, found in costs.items()}
    memory = {name: median(each.memory for each, _ in found) for name, found in costs.items()}
    lines = [f"{rows} rows, {path.stat().st_size / 1e6:.1f} MB, {rounds} rounds"]
    lines += [f"  {name:10} {seconds[name]:6.2f} s  {memory[name] / 1e6:6.0f} MB" for name in CANDIDATES]
    time_ratio, memory_ratio = (each["gpureport"] / each["pandas"] for each in (seconds, memory))
    lines.append(f"  time   {time_ratio:.3f} of pandas, goal {_TIME}")
    return [*lines, f"  memory {memory_ratio:.3f} of pandas, goal {_MEMORY}"]


def main() -> None:
    """Compare, or be one of the candidates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--candidate", nargs=3)
    given = parser.parse_args()
    if given.candidate:
        candidate(*given.candidate)
        return
    with TemporaryDirectory() as folder:
        print("\n".join(compare(given.rows, given.rounds, Path(folder, "OPT-1_part_0.parquet"))))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
