"""Prints what a whole analysis of a stored run costs, rule by rule, and what a confidence interval costs.

Run by hand: `python -m tests.benchmarks.analysis [--rows 1000000] [--rounds 3]`. Times are of processors. The goals are
6 million rows a second for a pass from Parquet on, and no more for the interval of a mean than for mean and deviation.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gpureport.analysis import RULES, analyze
from gpureport.columns import FloatArray
from gpureport.comparison.statistics.batch_means import batch_means
from gpureport.importers import IMPORTER_VERSION
from gpureport.recording import Recording
from gpureport.store import Store
from tests.benchmarks import log
from tests.comparison.processes import processes
from tests.store.runs import reading

_SAMPLES = 1_000_000
_BYTES_A_ROW = 170


def seconds(function: Callable[[], Any], rounds: int) -> float:
    """Return the processor time of a call, the median of several."""
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        function()
        taken.append(time.process_time() - begin)
    return median(taken)


def passes(folder: Path, rows: int, rounds: int) -> Iterator[str]:
    """Yield a line for each part of an analysis of a log of so many rows."""
    path = folder / "nvidia-smi.csv"
    log.write(path, rows * _BYTES_A_ROW)
    store = Store(folder / "store")
    entry = store.write(reading(path), IMPORTER_VERSION)
    recording = store.read(entry)
    rows = len(recording.series)
    read = seconds(partial(store.read, entry), rounds)
    whole = read + seconds(partial(analyze, recording), rounds)
    bare = seconds(partial(analyze, recording, ()), rounds)
    yield f"{rows} rows: read {read:.2f} s, no rule {bare:.2f} s, all rules {whole - read:.2f} s"
    yield f"  {rows / whole / 1e6:.2f} million rows a second; goal: 6"
    yield from _rules(recording, bare, rounds)


def _rules(recording: Recording, bare: float, rounds: int) -> Iterator[str]:
    """Yield what each rule takes by itself, without the findings it builds on, dearest first."""
    alone = [(seconds(partial(analyze, recording, (rule,)), rounds) - bare, rule.kinds[0]) for rule in RULES]
    yield from (f"  {name:24} {taken:7.3f} s" for taken, name in sorted(alone, reverse=True))


def intervals(rounds: int) -> Iterator[str]:
    """Yield what the interval of a mean takes beside mean and deviation of the same samples."""
    rng = np.random.default_rng(20_261_121)
    for process in processes():
        values = process.make(_SAMPLES, rng)
        plain = seconds(partial(_plain, values), rounds)
        taken = seconds(partial(batch_means, values), rounds)
        yield f"  {process.name:24} {taken:7.4f} s, mean and deviation {plain:.4f} s: {taken / plain:.1f} x; goal: 1"


def _plain(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std())


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [*passes(Path(folder), given.rows, given.rounds), *intervals(given.rounds)]
    print("\n".join(lines))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
