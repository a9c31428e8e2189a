"""Measure how the cost of commands grows with GPUs, hours, gaps, runs and nights, and write a table of it.

`python .ci/growth.py [--only WORDS] [--update]` prints the table; `--update` writes it into
docs/explanation/performance.md. Each point is one command in its own process: processor seconds minus those of
`gpureport --version`, and peak memory. The exponent is the slope of log(time) over log(size), from the first point to
the last. It takes about half an hour.
"""

import argparse
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workload import Cost, Job, measure, write_log

ROOT = Path(__file__).resolve().parents[1]
_PAGE = ROOT / "docs/explanation/performance.md"
_TABLE = re.compile(r"(?<=<!-- growth: begin -->\n).*(?=<!-- growth: end -->)", re.DOTALL)
_HEAD = "| Command | Size | Processor time, s | Exponent | Peak memory, MiB |\n|---|---|---|---|---|\n"
_LEAST = 0.02
"""Seconds below which a difference between two processes means nothing."""
_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A command on inputs of growing size; `prepare` writes the input to the folder and returns the command's words."""

    title: str
    unit: str
    sizes: tuple[int, int, int]
    prepare: Callable[[Path, int], list[str]]
    again: bool = False


def _run(words: list[str], folder: Path, night: int = 0) -> Cost:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SOURCE_DATE_EPOCH": str(1_773_500_000 + night * _DAY)}
    return measure([sys.executable, "-m", "gpureport", "--quiet", *words], folder, environment)


def _stored(folder: Path, job: Job) -> str:
    """Store the log of a job and return its name in the store."""
    _run(["ingest", str(write_log(folder / "job.csv", job))], folder)
    (folder / "job.csv").unlink()
    return "job"


def _logs(folder: Path, count: int) -> str:
    (folder / "logs").mkdir()
    for number in range(count):
        job = Job(gpus=1, seconds=300, gap_every=100, pause=20, start=1_773_480_413 + 400 * number)
        write_log(folder / "logs" / f"job{number:05}.csv", job)
    return "logs"


def _after(words: list[str], folder: Path, then: list[str]) -> list[str]:
    """Run a command that the measured one builds on, and return the measured one."""
    _run(words, folder)
    return then


def _nights(folder: Path, count: int) -> list[str]:
    for night in range(count):
        job = Job(gpus=8, seconds=600, gap_every=200, pause=20, start=1_773_480_413 + night * _DAY)
        write_log(folder / "night.csv", job)
        _run(["nightly", "night.csv", "--site", "site", "--fail-on", "idle_ratio <= 50%"], folder, night)
    return ["nightly", "--site", "other-site"]


_GPUS, _RUNS, _LOGS, _NIGHTS = (8, 64, 512), (100, 1_000, 10_000), (50, 200, 800), (30, 120, 365)
GROWTHS = (
    Growth(
        title="`analyze`, 2 h at 10 s",
        unit="GPUs",
        sizes=_GPUS,
        prepare=lambda at, n: ["analyze", _stored(at, Job(gpus=n, seconds=7200, interval=10))],
    ),
    Growth(
        title="`analyze`, 8 GPUs at 1 s",
        unit="hours",
        sizes=(6, 24, 96),
        prepare=lambda at, n: ["analyze", _stored(at, Job(seconds=3600 * n, gap_every=21_600))],
    ),
    Growth(
        title="`analyze`, 8 GPUs, 24 h at 1 s",
        unit="idle gaps per GPU",
        sizes=(9, 36, 144),
        prepare=lambda at, n: ["analyze", _stored(at, Job(seconds=_DAY, gap_every=_DAY / n))],
    ),
    Growth(
        title="`report` as a page, 2 h at 10 s",
        unit="GPUs",
        sizes=_GPUS,
        prepare=lambda at, n: ["report", _stored(at, Job(gpus=n, seconds=7200, interval=10)), "-o", "report.html"],
    ),
    Growth(
        title="`ingest` of a folder, 300 rows per log",
        unit="logs",
        sizes=_LOGS,
        prepare=lambda at, n: ["ingest", _logs(at, n)],
    ),
    Growth(
        title="`runs list`",
        unit="runs",
        sizes=_RUNS,
        prepare=lambda at, n: _after(["ingest", _logs(at, n)], at, ["runs", "list", "--format", "csv"]),
    ),
    *(
        Growth(
            title=f"`fleet`, {when}",
            unit="runs",
            sizes=_LOGS,
            prepare=lambda at, n: _after(["ingest", _logs(at, n)], at, ["fleet"]),
            again=again,
        )
        for when, again in (("the first time", False), ("nothing new", True))
    ),
    Growth(title="`nightly`, a lost site", unit="nights", sizes=_NIGHTS, prepare=_nights),
    Growth(title="`nightly`, the pages again", unit="nights", sizes=_NIGHTS, prepare=_nights, again=True),
)


def _measure_size(growth: Growth, size: int) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = growth.prepare(folder, size)
        if growth.again:
            _run(words, folder)
        return _run(words, folder)


def _measure_growth(growth: Growth, start: float) -> str:
    """Return the table row of a command."""
    costs = [_measure_size(growth, size) for size in growth.sizes]
    seconds = [max(each.cpu - start, _LEAST) for each in costs]
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(growth.sizes[-1] / growth.sizes[0])
    sizes = ", ".join(f"{size:,}" for size in growth.sizes)
    figures = ", ".join(f"{each:.2f}" for each in seconds)
    return f"| {growth.title} | {sizes} {growth.unit} | {figures} | {exponent:.2f} | {costs[-1].memory / 2**20:,.0f} |"


def main() -> None:
    """Print the table, and write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="measure only titles that contain this")
    given = parser.parse_args()
    start = min(_run(["--version"], ROOT).cpu for _ in range(3))
    rows = []
    for growth in GROWTHS:
        if given.only in growth.title:
            rows.append(_measure_growth(growth, start))
            print(rows[-1], flush=True)
    if given.update:
        text = _PAGE.read_text(encoding="utf-8")
        _PAGE.write_text(_TABLE.sub(_HEAD + "\n".join(rows) + "\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
