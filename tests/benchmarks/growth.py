"""Measures how the cost of commands grows with GPUs, rows, gaps, runs and nights, and writes the page of it.

`python -m tests.benchmarks.growth [--only WORDS] [--update]` prints the table; `--update` writes it into
docs/explanation/performance.md. Each point is a command in a process of its own: time of processors, user and system,
less that of `gpureport --version`, and the memory at its peak. The exponent is the slope of the logarithm of time over
that of size, from the first to the last point. It takes about a quarter of an hour.
"""

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpureport.importers import IMPORTER_VERSION
from gpureport.store import Store
from tests.benchmarks import cost, mlflow
from tests.benchmarks.long_runs import LongRun
from tests.benchmarks.many_runs import write_copies, write_logs, write_nights

_PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/performance.md"
_TABLE = re.compile(r"(?<=<!-- growth: begin -->\n).*(?=<!-- growth: end -->)", re.DOTALL)
_HEAD = "| Command | Size | Processor time, s | Exponent | Peak memory, MiB |\n|---|---|---|---|---|\n"
_LEAST = 0.02
"""Seconds below which a difference of two processes tells nothing."""

Words = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A command on inputs of growing size.

    Attributes:
        title: the command, and what the input is.
        unit: what the size counts.
        sizes: from small to large.
        prepare: makes the input of a size in a folder, and returns the command on it.
        again: whether the second time is measured.
    """

    title: str
    unit: str
    sizes: tuple[int, int, int]
    prepare: Callable[[Path, int], Words]
    again: bool = False


def _of_long_run(command: str, run: LongRun, folder: Path, *more: str) -> Words:
    """Store a run and return a command on it."""
    Store(folder / "store").write(run, IMPORTER_VERSION)
    return [command, run.run_id, "--store", str(folder / "store"), *more]


def _analyze_gpus(folder: Path, gpus: int) -> Words:
    return _of_long_run("analyze", LongRun(gpus=gpus, hours=2, interval=10), folder)


def _analyze_hours(folder: Path, hours: int) -> Words:
    return _of_long_run("analyze", LongRun(hours=hours, gap_every=21_600), folder)


def _analyze_gaps(folder: Path, gaps: int) -> Words:
    return _of_long_run("analyze", LongRun(hours=24, gap_every=86_400 / gaps), folder)


def _report_gpus(folder: Path, gpus: int) -> Words:
    run = LongRun(gpus=gpus, hours=2, interval=10)
    return _of_long_run("report", run, folder, "-o", str(folder / "report.html"))


def _list_runs(folder: Path, runs: int) -> Words:
    return ["runs", "list", "--format", "csv", "--store", str(write_copies(folder, runs).folder)]


def _ingest_logs(folder: Path, logs: int) -> Words:
    return ["ingest", str(write_logs(folder / "logs", logs)), "--store", str(folder / "store")]


def _judge_fleet(folder: Path, logs: int) -> Words:
    words = _ingest_logs(folder, logs)
    _measure_command(words)
    return ["fleet", *words[2:]]


def _ingest_tracked(folder: Path, runs: int) -> Words:
    source = mlflow.filled(mlflow.empty(folder / "mlflow.db"), runs, 1000)
    return ["ingest", f"mlflow:{source}", "--store", str(folder / "store")]


def _write_lost_site(folder: Path, nights: int) -> Words:
    return ["nightly", "--store", str(write_nights(folder, nights).folder), "--site", str(folder / "site")]


_GPUS, _LISTED, _LOGS = (8, 64, 512), (100, 1_000, 10_000), (50, 200, 800)
_TRACKED, _NIGHTS = (25, 100, 400), (30, 120, 365)
GROWTHS = (
    Growth(title="`analyze`, 2 h at 10 s", unit="GPUs", sizes=_GPUS, prepare=_analyze_gpus),
    Growth(title="`analyze`, 8 GPUs at 1 s", unit="hours", sizes=(6, 24, 96), prepare=_analyze_hours),
    Growth(title="`analyze`, 8 GPUs, 24 h at 1 s", unit="idle gaps a GPU", sizes=(9, 36, 144), prepare=_analyze_gaps),
    Growth(title="`report` as a page, 2 h at 10 s", unit="GPUs", sizes=_GPUS, prepare=_report_gpus),
    Growth(title="`runs list`, the first time", unit="runs", sizes=_LISTED, prepare=_list_runs),
    Growth(title="`runs list`, again", unit="runs", sizes=_LISTED, prepare=_list_runs, again=True),
    Growth(title="`ingest` of a folder, 300 rows a log", unit="logs", sizes=_LOGS, prepare=_ingest_logs),
    Growth(title="`fleet`, the first time", unit="runs", sizes=_LOGS, prepare=_judge_fleet),
    Growth(title="`fleet`, nothing new", unit="runs", sizes=_LOGS, prepare=_judge_fleet, again=True),
    Growth(title="`ingest` of MLflow", unit="runs", sizes=_TRACKED, prepare=_ingest_tracked),
    Growth(title="`ingest` of MLflow, nothing new", unit="runs", sizes=_TRACKED, prepare=_ingest_tracked, again=True),
    Growth(title="`nightly`, a lost site", unit="nights", sizes=_NIGHTS, prepare=_write_lost_site),
    Growth(title="`nightly`, the pages again", unit="nights", sizes=_NIGHTS, prepare=_write_lost_site, again=True),
)


def _measure_command(words: Words) -> cost.Cost:
    return cost.of([sys.executable, "-m", "gpureport", "--quiet", *words])


def _measure_size(growth: Growth, size: int) -> cost.Cost:
    with tempfile.TemporaryDirectory() as name:
        words = growth.prepare(Path(name), size)
        if growth.again:
            _measure_command(words)
        return _measure_command(words)


def _measure_growth(growth: Growth, start: float) -> str:
    """Return the row of a command."""
    costs = [_measure_size(growth, size) for size in growth.sizes]
    seconds = [max(each.cpu - start, _LEAST) for each in costs]
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(growth.sizes[-1] / growth.sizes[0])
    sizes = ", ".join(f"{size:,}" for size in growth.sizes)
    figures = ", ".join(f"{each:.2f}" for each in seconds)
    return f"| {growth.title} | {sizes} {growth.unit} | {figures} | {exponent:.2f} | {costs[-1].memory / 2**20:,.0f} |"


def main() -> None:
    """Print the table, and write it into the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="part of the titles that are measured")
    given = parser.parse_args()
    start = min(_measure_command(["--version"]).cpu for _ in range(3))
    rows = []
    for growth in GROWTHS:
        if given.only in growth.title:
            rows.append(_measure_growth(growth, start))
            print(rows[-1], flush=True)  # noqa: T201 - what it is run for
    if given.update:
        text = _PAGE.read_text(encoding="utf-8")
        _PAGE.write_text(_TABLE.sub(_HEAD + "\n".join(rows) + "\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
