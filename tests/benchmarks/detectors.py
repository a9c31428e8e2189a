"""Prints what finding idle stretches costs beside a sum of the same bytes, and what polars and pandas take for it.

Run by hand: `python -m tests.benchmarks.detectors [--samples 100000000] [--rounds 5]`. Times are of processors.
The whole search of the rule needs some 100 bytes a sample, so it is timed on fewer and scaled, as are the peers.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from gpureport import testing
from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import build_device_series
from gpureport.analysis.signals import idle_runs
from gpureport.testing import Interval

ENTER, LEAVE = 0.05, 0.12
_PEER_SAMPLES = 10_000_000
_MEAN_SECONDS = (300, 40, 60, 120)
_LEVELS = (0.95, 0.0, 0.7, 0.2)

Floats32 = npt.NDArray[np.float32]


def samples(count: int) -> Floats32:
    """Return utilisation of a job that trains, rests, evaluates and waits."""
    chance = np.random.default_rng(20261121)
    kinds = chance.choice(4, size=count // 40 + 1_000, p=[0.55, 0.15, 0.1, 0.2])
    lengths = 1 + chance.exponential(np.take(_MEAN_SECONDS, kinds)).astype(np.int64)
    levels = np.repeat(np.take(_LEVELS, kinds).astype(np.float32), lengths)[:count]
    for begin in range(0, count, _PEER_SAMPLES):
        part = levels[begin : begin + _PEER_SAMPLES]
        part += (part > 0) * chance.integers(0, 4, len(part)).astype(np.float32) / np.float32(100)
    return levels


def ours(values: Floats32) -> int:
    """Return how many stretches the function the rules use finds."""
    return len(intervals.find_hysteresis_runs(values, enter=ENTER, leave=LEAVE)[0])  # type: ignore[arg-type]  # of any float


def as_polars(values: Floats32) -> int:
    """Return how many polars finds: runs of middling or low values that hold a low one."""
    value = pl.col("value")
    frame = pl.LazyFrame({"value": values}).with_columns(run=(value > LEAVE).rle_id())
    lows = frame.filter(value <= LEAVE).group_by("run").agg(low=value.min())
    return lows.filter(pl.col("low") <= ENTER).collect().height


def as_pandas(values: Floats32) -> int:
    """Return how many pandas finds, the same way."""
    series = pd.Series(values)
    busy = series > LEAVE
    run = (busy != busy.shift()).cumsum()
    return int((series[~busy].groupby(run[~busy]).min() <= ENTER).sum())


def whole_rule(values: Floats32) -> Callable[[Floats32], int]:
    """Return the search of the idle-gap rule on a recording of these samples, from its Arrow columns on."""
    recording = testing.recording(util=values.astype(np.float64) * 100, power=np.full(len(values), 250.0))
    device = recording.run.devices[0]
    window = Interval(recording.run.started, recording.run.ended)
    rule = IdleGap()
    limits = idle_runs.Limits(idle=rule.idle.value, still=rule.still.value, shortest_seconds=rule.shortest.value)

    def search(part: Floats32) -> int:
        del part
        return len(idle_runs.find_idle_runs(build_device_series(recording, device), limits, window))

    return search


def seconds(function: Callable[[Floats32], Any], values: Floats32, rounds: int) -> tuple[float, Any]:
    """Return the processor time of a call, and what it returned."""
    taken, result = [], None
    for _ in range(rounds):
        begin = time.process_time()
        result = function(values)
        taken.append(time.process_time() - begin)
    return median(taken), result


def compare(count: int, rounds: int) -> Sequence[str]:
    """Return a line for each way."""
    values = samples(count)
    floor, _ = seconds(np.sum, values, rounds)
    few = values[: min(count, _PEER_SAMPLES)]
    ways: dict[str, tuple[Callable[[Floats32], int], Floats32]] = {
        "hysteresis": (ours, values),
        "polars": (as_polars, few),
        "pandas": (as_pandas, few),
        "whole rule": (whole_rule(few), few),
    }
    lines = [f"{count} samples, {rounds} rounds; np.sum {floor:.4f} s"]
    for name, (function, part) in ways.items():
        taken, found = seconds(function, part, rounds)
        scaled = taken * count / len(part)
        lines.append(
            f"  {name:10} {scaled:8.3f} s {scaled / floor:7.1f} x np.sum  {found} found in {len(part)} samples"
        )
    return [*lines, "  goal: hysteresis at most 10 x np.sum, 0.4 x polars, 0.04 x pandas"]


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("\n".join(compare(given.samples, given.rounds)))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
