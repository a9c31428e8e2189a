"""What comparing ten long runs of the store costs, and what two scripts as people write them take for the same runs.

Run by hand: `python -m tests.benchmarks.comparison [--runs 10] [--hours 24] [--rounds 5] [--store FOLDER]`. With
`--store` the runs are made there once, and found there the next time.
"""

import argparse
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks import cost, log
from tests.benchmarks.cost import Cost

OURS = "gpureport"
PEERS = ("pandas", "columns")
_BYTES_A_TICK = 8 * 170
_BLOCKS = 4
"""Blocks of a log that a run of a day begins after another."""
_GOAL_SECONDS = 10.0
_IDLE, _GAP_SECONDS, _RESAMPLES = 0.05, 5, 100


def filled(folder: Path, runs: int, hours: float) -> list[str]:
    """Return the names of runs in a store, which is made where there is none."""
    names = [f"day-{number}" for number in range(runs)]
    source = folder / "log.csv"
    for number, name in enumerate(names):
        if len(list(folder.glob("store/runs/*/run.json"))) > number:
            continue
        log.write(source, round(hours * 3600 * _BYTES_A_TICK), number * _BLOCKS)
        command = ["ingest", str(source), "--name", name, "--store", str(folder / "store")]
        subprocess.run([sys.executable, "-m", "gpureport", *command], check=True, stdout=subprocess.DEVNULL)
        source.unlink()
    return names


def pandas(files: list[str]) -> None:
    """Answer as people do with pandas and scipy: figures of each GPU, gaps, intervals by resampling, tests.

    Its intervals and tests take samples for independent, so that most of what they say is wrong; it knows no steady
    state, no throttling, no cause of a gap, and nothing of what makes two recordings comparable.
    """
    import numpy as np  # noqa: PLC0415 - what a peer imports is part of its time
    import pandas as pd  # noqa: PLC0415 - as above
    from scipy import stats  # noqa: PLC0415 - as above

    figures = ["gpu_utilization_ratio", "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_memory_used_bytes"]
    runs = [pd.read_parquet(file) for file in files]
    for frame in runs:
        used = frame["gpu_utilization_ratio"]
        frame["idle"] = used <= _IDLE
        frame.groupby("device", observed=True)[[*figures, "idle"]].describe()
        changed = (frame["idle"] != frame["idle"].shift()) | (frame["device"] != frame["device"].shift())
        gaps = frame[frame["idle"]].groupby(changed.cumsum()[frame["idle"]])["timestamp"].agg(["min", "max"])
        gaps[gaps["max"] - gaps["min"] >= pd.Timedelta(seconds=_GAP_SECONDS)].describe()
        stats.bootstrap((used.dropna().to_numpy(),), np.mean, n_resamples=_RESAMPLES, batch=1, method="basic")
    for before, after in pairwise(runs):
        for figure in figures:
            stats.ttest_ind(before[figure].dropna(), after[figure].dropna(), equal_var=False)


def columns(files: list[str]) -> None:
    """Only read the columns that a comparison needs: nothing can be faster and still look at every row."""
    from pyarrow import parquet  # noqa: PLC0415 - what a peer imports is part of its time

    for file in files:
        parquet.ParquetFile(file).read()


def taken(command: list[str], rounds: int) -> Cost:
    """Return what a command takes, the middle of some rounds."""
    costs = [cost.of(command) for _ in range(rounds)]
    return Cost(
        wall=median(one.wall for one in costs),
        cpu=median(one.cpu for one in costs),
        memory=round(median(one.memory for one in costs)),
    )


def compare(folder: Path, runs: int, hours: float, rounds: int) -> list[str]:
    """Return a line for each way, and one for each goal."""
    names = filled(folder, runs, hours)
    files = sorted(str(path) for path in folder.glob("store/runs/*/hardware.parquet"))[:runs]
    commands = {
        OURS: [sys.executable, "-m", "gpureport", "compare", *names, "--store", str(folder / "store")],
        **{peer: [sys.executable, "-m", "tests.benchmarks.comparison", "--peer", peer, *files] for peer in PEERS},
    }
    costs = {name: taken(command, rounds) for name, command in commands.items()}
    lines = [f"{runs} runs of {hours:g} h on {log.GPUS} GPUs, {rounds} rounds"]
    for name, each in costs.items():
        lines.append(f"  {name:10} {each.wall:6.2f} s {each.cpu:6.2f} s cpu {each.memory / 1e6:6.0f} MB")
    ours = costs[OURS]
    lines += [
        f"  {ours.wall / costs[name].wall:.2f} x {name} (cpu {ours.cpu / costs[name].cpu:.2f} x)" for name in PEERS
    ]
    return [*lines, f"  goals: {_GOAL_SECONDS:g} s on two cores, no longer than pandas"]


def main() -> None:
    """Compare, or be a peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--peer", choices=PEERS)
    parser.add_argument("file", nargs="*")
    given = parser.parse_args()
    if given.peer:
        {"pandas": pandas, "columns": columns}[given.peer](given.file)
        return
    with TemporaryDirectory() as name:
        folder = given.store or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        print("\n".join(compare(folder, given.runs, given.hours, given.rounds)))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
