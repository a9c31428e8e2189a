"""Print cost ratios: `ingest` against polars, and this checkout against an older one, measured alternately.

    python .ci/ratios.py [--size 200MB ...] [--rounds 5]
    python .ci/ratios.py --old CHECKOUT [--rounds 5] [--only WORDS]

Each figure is the median over the rounds. Wall-clock times are valid only if nothing else runs.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from workload import Cost, Job, measure, size_of, write_log

ROOT = Path(__file__).resolve().parents[1]
_POLARS = """
import sys, polars as pl
names = {names!r}
table = pl.scan_csv(sys.argv[1], has_header=False, skip_rows=1, new_columns=names, infer_schema=False)
cell = lambda name, unit, kind: (
    pl.col(name).str.strip_chars_start().str.strip_suffix(unit).replace("[N/A]", None).cast(kind, strict=True)
)
numbers = dict(zip(names[3:11], (" %", " %", " MiB", " MiB", "", " W", " MHz", " MHz")))
table.select(
    pl.col("timestamp").str.to_datetime("%Y/%m/%d %H:%M:%S%.3f"), cell("index", "", pl.Int32),
    pl.col("uuid").cast(pl.Categorical), *(cell(n, unit, pl.Float64) for n, unit in numbers.items()),
    pl.col(names[11]).str.strip_chars(),
).sink_parquet(sys.argv[2], compression="zstd")
"""


def _commands(folder: Path) -> dict[str, Callable[[], list[str]]]:
    """Return the commands to compare: a name, and a function that writes the input and returns the words."""

    def log(name: str, job: Job, size: int | None = None) -> str:
        return str(write_log(folder / name, job, size))

    def many() -> str:
        (folder / "many").mkdir()
        for number in range(300):
            job = Job(gpus=1, seconds=300, gap_every=100, pause=20, start=1_773_480_413 + 400 * number)
            write_log(folder / "many" / f"job{number:03}.csv", job)
        return str(folder / "many")

    pair = [("a.csv", Job(gpus=2)), ("b.csv", Job(gpus=2, gap_every=1200.0))]
    return {
        "--help": lambda: ["--help"],
        "ingest, 300 rows": lambda: ["ingest", log("300.csv", Job(gpus=1, seconds=300))],
        "ingest, 51,405 rows": lambda: ["ingest", log("51405.csv", Job(gpus=5, seconds=10_281))],
        "ingest, 200 MB": lambda: ["ingest", log("200MB.csv", Job(seconds=1e6), size_of("200MB"))],
        "ingest, a folder of 300 logs": lambda: ["ingest", many()],
        "analyze, 8 GPUs x 2 h": lambda: ["analyze", log("2h.csv", Job(seconds=7200))],
        "report, 8 GPUs x 2 h": lambda: ["report", log("2h.csv", Job(seconds=7200)), "-o", str(folder / "report.html")],
        "compare, two runs of 1 h": lambda: ["compare", *(log(name, job) for name, job in pair)],
    }


def _typical(costs: list[Cost]) -> Cost:
    return Cost(
        cpu=median(each.cpu for each in costs),
        wall=median(each.wall for each in costs),
        memory=round(median(each.memory for each in costs)),
    )


def _in_turn(words: dict[str, list[str]], trees: dict[str, Path], rounds: int) -> dict[str, Cost]:
    """Return the typical cost of each candidate; they take turns, each in its own folder."""
    costs: dict[str, list[Cost]] = {name: [] for name in words}
    for _ in range(rounds):
        for name, each in words.items():
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "PYTHONPATH": str(trees.get(name, ROOT))}
                costs[name].append(measure(each, Path(folder), environment))
    return {name: _typical(each) for name, each in costs.items()}


def _say(title: str, ours: Cost, other: Cost) -> None:
    ratios = (ours.cpu / other.cpu, ours.wall / other.wall, ours.memory / other.memory)
    times = f"processor {ours.cpu:7.2f} s, {ratios[0]:.2f} times; clock {ours.wall:7.2f} s, {ratios[1]:.2f} times"
    print(f"{title:32} {times}; memory {ours.memory / 2**20:6.0f} MiB, {ratios[2]:.2f} times", flush=True)


def main() -> None:
    """Compare what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", type=size_of)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    program = [sys.executable, "-m", "gpureport"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.old:
            for title, prepare in _commands(folder).items():
                if given.only in title:
                    words = [*program, *prepare()]
                    trees = {"now": ROOT, "old": given.old.resolve()}
                    costs = _in_turn({"now": words, "old": words}, trees, given.rounds)
                    _say(title, costs["now"], costs["old"])
            return
        from workload import NAMES

        for size in given.size or [size_of("10MB"), size_of("200MB")]:
            log = str(write_log(folder / "log.csv", Job(seconds=1e8), size))
            peer = [sys.executable, "-c", _POLARS.replace("{names!r}", repr(NAMES)), log, "peer.parquet"]
            costs = _in_turn({"ours": [*program, "ingest", log], "polars": peer}, {}, given.rounds)
            _say(f"ingest of {size / 1e6:.0f} MB beside polars", costs["ours"], costs["polars"])


if __name__ == "__main__":
    main()
