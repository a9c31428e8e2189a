"""Prints what a byte of each form of nvidia-smi's output costs to read, as a ratio to a byte of CSV of a query.

Run by hand: `python -m tests.benchmarks.forms [--size 50MB] [--rounds 5]`. Forms take turns in one process; figures are
medians of wall and processor time for reading a whole log into batches, with nothing stored.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from tests.benchmarks import log
from tests.importers.logs.nvidia_smi.forms import outputs

CSV = "query CSV"
GOALS = {"dmon": 3.0, "tables": 3.0, "-q": 6.0, "-q -x": 6.0}
"""Times the cost of CSV at most."""
_START = datetime(2026, 3, 14, 9)  # noqa: DTZ001 - nvidia-smi writes local time
_GPUS = 8
_EVERY = 44
"""Rows between two pairs of headings."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds for a MB, on the clock and of processors."""

    wall: float
    cpu: float


def _readings(seed: int) -> Iterator[tuple[datetime, int, random.Random]]:
    """Yield a time, a GPU and chances for its readings, without end."""
    chance = random.Random(seed)
    for tick in count():
        now = _START + timedelta(seconds=tick)
        for gpu in range(_GPUS):
            yield now, gpu, chance


def dmon() -> Iterator[str]:
    """Yield the lines of `dmon -o DT`, without end."""
    names = (
        "#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk "
    )
    units = (
        "#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %      %      %      %      %    MHz    MHz "
    )
    for row, (now, gpu, chance) in enumerate(_readings(1)):
        if row % _EVERY == 0:
            yield names
            yield units
        used = chance.randint(80, 100)
        cells = (gpu, chance.randint(400, 700), 60 + gpu, 70, used, used // 2, 0, 0, 0, 0, 2619, 1980 - 15 * (used % 4))
        yield f" {now:%Y%m%d   %H:%M:%S} " + " ".join(f"{cell:6d}" for cell in cells) + " "


def _shown() -> Iterator[tuple[str, list[outputs.Reading]]]:
    """Yield a time and what each GPU shows, without end."""
    chance = random.Random(2)
    for tick in count():
        yield (
            outputs.asctime(5 * tick),
            [
                outputs.gpu(
                    gpu,
                    busy=f"{chance.randint(80, 100)}%",
                    watts=f"{chance.randint(400, 700)}W",
                    celsius=f"{chance.randint(40, 80)}C",
                    used=f"{chance.randint(1000, 20_000)}MiB",
                    clock=f"{1980 - 15 * chance.randint(0, 9)} MHz",
                )
                for gpu in range(_GPUS)
            ],
        )


def tables() -> Iterator[str]:
    """Yield what `nvidia-smi -l 5` draws, without end."""
    for now, shown in _shown():
        yield outputs.table(shown, time=now).rstrip("\n")


def texts() -> Iterator[str]:
    """Yield what `nvidia-smi -q -l 5` writes, without end."""
    for now, shown in _shown():
        yield outputs.query(shown, now)


def documents() -> Iterator[str]:
    """Yield what `nvidia-smi -q -x -l 5` writes, without end."""
    for now, shown in _shown():
        yield outputs.document(shown, now)


FORMS: dict[str, Callable[[], Iterator[str]]] = {"dmon": dmon, "tables": tables, "-q": texts, "-q -x": documents}
"""Lines of each form, without end."""


def write(path: Path, lines: Iterator[str], size: int) -> None:
    """Write lines until a file has about so many bytes."""
    left = size
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            left -= file.write(f"{line}\n")
            if left <= 0:
                return


def taken(path: Path) -> Taken:
    """Read a log and return what it took."""
    (inputs,) = find_runs(path)
    wall, cpu = time.perf_counter(), time.process_time()
    rows = sum(len(batch) for batch in Reading(inputs, ReadOptions(), Labels()).batches())
    if not rows:
        raise SystemExit(1)
    size = path.stat().st_size / 1e6
    return Taken((time.perf_counter() - wall) / size, (time.process_time() - cpu) / size)


def main() -> None:
    """Compare all forms in turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=log.size_of, default=log.size_of("50MB"))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{place}.log" for place, name in enumerate((CSV, *FORMS))}
        log.write(paths[CSV], given.size)
        for name, lines in FORMS.items():
            write(paths[name], lines(), given.size)
        rounds = [{name: taken(path) for name, path in paths.items()} for _ in range(given.rounds)]
    for name in paths:
        wall = median(each[name].wall for each in rounds)
        cpu = median(each[name].cpu for each in rounds)
        by_wall = median(each[name].wall / each[CSV].wall for each in rounds)
        by_cpu = median(each[name].cpu / each[CSV].cpu for each in rounds)
        goal = f", goal {GOALS[name]}" if name in GOALS else ""
        sys.stdout.write(
            f"{name:12} {1 / wall:6.0f} MB/s {1 / cpu:6.0f} MB/cpu-s  {by_wall:.2f} x wall, {by_cpu:.2f} x cpu{goal}\n"
        )


if __name__ == "__main__":
    main()
