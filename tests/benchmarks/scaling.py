"""Prints how the time of hard inputs grows with their size: four times the input in about four times the time.

Each input once made a reader look at everything before each line, so that four times as much took sixteen times as
long. Run by hand: `python -m tests.benchmarks.scaling [--rounds 3]`; it fails when a ratio is above 8. Times are of
the processor, the least of the rounds.
"""

import argparse
import gzip
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from random import Random
from string import ascii_lowercase
from time import process_time

import numpy as np

import gpureport
from gpureport.columns import strings_to_arrow
from gpureport.errors import SourceError
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.identification import Devices
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.ordering.backward_clocks import place_rows
from gpureport.importers.values import stamps
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.site import site_writing
from tests.importers import other_tools
from tests.importers.ordering.test_backward_clocks import track
from tests.importers.written_logs import HEADER
from tests.nightly.made import year

Work = Callable[[], object]

_TIMES = 4
_MOST = 8.0
"""Ratio between four, of what is linear, and sixteen, of what is quadratic."""

_SHORTEST = 1e-4
"""Seconds below which a clock of the processor tells nothing."""


def _reading(path: Path, content: bytes) -> Work:
    """Return the reading of a file, which may be refused."""
    path.write_bytes(content)

    def read() -> None:
        with suppress(SourceError):
            gpureport.read(path)

    return read


def _letters(folder: Path, count: int) -> Work:
    chance = Random(1)
    return _reading(
        folder / "gpu.csv", "".join([f"{HEADER}\n", *(chance.choice("ab1,;-#\n") for _ in range(count))]).encode()
    )


def _words(folder: Path, count: int) -> Work:
    words = islice(product(ascii_lowercase, repeat=4), count)
    return _reading(folder / "words.gz", gzip.compress("\n".join(map("".join, words)).encode()))


def _one_line(folder: Path, count: int) -> Work:
    return _reading(folder / "line.gz", gzip.compress(b"time,cpu," + b"mem_b," * count))


def _heading(_: Path, count: int) -> Work:
    line = "a" + "_" * count + "!,utilization.gpu [%]"
    return lambda: QueryGpuDialect().header(line)


def _reversed(_: Path, count: int) -> Work:
    times = [1.7e9 - 100.0 * part + second for part in range(count) for second in range(20)]
    log = track(times, seams=range(20, len(times), 20))
    return lambda: place_rows(log, None)


def _gpus(_: Path, count: int) -> Work:
    codes = np.arange(count, dtype=np.int32).repeat(2)
    names = Values(codes, np.ones(2 * count, dtype=np.bool_), [f"GPU-{gpu}" for gpu in range(count)])
    return lambda: Devices(None).assign({"uuid": names}, np.arange(2 * count))


def _spreadsheet(_: Path, count: int) -> Work:
    texts = (f"{1 + n // 86_400 % 28}.03.2026 {n // 3600 % 24}:{n // 60 % 60:02}:{n % 60:02}" for n in range(count))
    column = strings_to_arrow(list(texts))
    return lambda: stamps.parse(column, day_first=True)


def _lines_of(make: Callable[[int], str]) -> Callable[[Path, int], Work]:
    return lambda folder, count: _reading(folder / "log.csv", make(count).encode())


def _nights(folder: Path, count: int) -> Work:
    history = year(count)
    target = folder / f"site{count}"
    return lambda: site_writing.write_site(target, history, build_trends(history), lambda _: None)


INPUTS: dict[str, tuple[Callable[[Path, int], Work], int]] = {
    "letters under a header": (_letters, 50_000),
    "a packed list of words": (_words, 100_000),
    "a packed line without end": (_one_line, 100_000),
    "a heading of underscores": (_heading, 60_000),
    "recordings in reverse order": (_reversed, 5_000),
    "names of GPUs": (_gpus, 10_000),
    "stamps of a spreadsheet": (_spreadsheet, 50_000),
    "gpustat": (_lines_of(other_tools.gpustat_log), 500),
    "nvitop": (_lines_of(other_tools.nvitop_csv), 1_000),
    "dmon": (_lines_of(other_tools.dmon_log), 1_000),
    "W&B, a table": (_lines_of(other_tools.wandb_csv), 1_000),
    "W&B, lines": (_lines_of(other_tools.wandb_lines), 1_000),
    "DCGM, long": (_lines_of(other_tools.long_csv), 1_000),
    "DCGM, wide": (_lines_of(other_tools.wide_csv), 1_000),
    "nights of a site": (_nights, 90),
}
"""Inputs by name: what makes the work of a size, and the smaller of the two sizes."""


def _seconds(work: Work, rounds: int) -> float:
    """Return the least time of the processor that a work takes."""
    taken = []
    for _ in range(rounds):
        begin = process_time()
        work()
        taken.append(process_time() - begin)
    return max(min(taken), _SHORTEST)


def main() -> None:
    """Print the two times of each input and their ratio; fail where one grows faster than its input."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    steep = []
    for name, (made, count) in INPUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            small, large = (_seconds(made(Path(folder), size), rounds) for size in (count, _TIMES * count))
        print(f"{name:28} {1000 * small:9.1f} ms {1000 * large:9.1f} ms {large / small:6.1f} x")  # noqa: T201 - what it is run for
        steep += [name] if large / small > _MOST else []
    if steep:
        raise SystemExit(f"more than {_MOST:g} times the time for {_TIMES} times the input: {', '.join(steep)}")


if __name__ == "__main__":
    main()
