"""Many runs to measure growth by: a folder of logs, a store with a history of nights, a database of MLflow.

Run by hand: `python -m tests.benchmarks.many_runs [--logs 100 500 2000] [--nights 30 120 365] [--tracked 10 100 400]`
prints the processor time of each size: of finding and reading logs, of a site that was lost, and of the first and the
second reading of a tracker.
"""

import argparse
import shutil
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from gpureport.analysis import analyze
from gpureport.cli.runs.run_sampling import sample_runs
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.nightly.history import capture
from gpureport.nightly.history.night_history import History
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.store import Store, run_json
from tests.benchmarks import mlflow
from tests.benchmarks.report_cpu import cpu_seconds
from tests.nightly.made import day

_HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, "
    "power.draw [W], clocks.current.sm [MHz]\n"
)
_FIRST = datetime(2026, 3, 1)  # noqa: DTZ001 - a log of local times
_AT_ONCE = 4
"""Jobs that run at the same time in a folder of logs."""


def log_text(number: int, gpus: int = 1, rows: int = 300) -> str:
    """Return the log of a job of some seconds, on other cards than those of the jobs of its time."""
    chance, (slot, card) = Random(number), divmod(number, _AT_ONCE)
    lines = [_HEADER]
    for second in range(rows):
        stamp = f"{_FIRST + timedelta(seconds=rows * slot + second + card):%Y/%m/%d %H:%M:%S}.000"
        lines += [
            f"{stamp}, {gpu}, GPU-{card:08x}-0000-4000-8000-{gpu:012x}, NVIDIA A100-SXM4-80GB, "
            f"{chance.randint(60, 100)} %, 40000 MiB, 81920 MiB, 61, {chance.randint(200, 350)}.00 W, 1410 MHz\n"
            for gpu in range(gpus)
        ]
    return "".join(lines)


def write_logs(folder: Path, count: int, *, nested: bool = False) -> Path:
    """Write the logs of many jobs into a folder, or each into one of its own; return the folder."""
    for number in range(count):
        path = folder / f"job{number:04d}" / "gpu.csv" if nested else folder / f"job{number:04d}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log_text(number), encoding="ascii")
    return folder


def write_nights(folder: Path, nights: int, jobs: int = 3) -> Store:
    """Fill a store with nights of jobs of eight GPUs over an hour, each with its run; return it."""
    store = Store(folder / "store")
    history, entries = History(store.folder), []
    for job in range(jobs):
        log = folder / f"job{job}.csv"
        log.write_text(log_text(job, gpus=8, rows=3600), encoding="ascii")
        entry = store.write(Reading(find_runs(log)[0], ReadOptions(), Labels(step=f"job{job}")), IMPORTER_VERSION)
        recording = store.read(entry)
        (sampled,) = sample_runs([(recording, analyze(recording))])
        entries.append((entry, capture.capture_run(str(log), sampled)))
    for number in range(nights):
        runs = []
        for job, (entry, captured) in enumerate(entries):
            name = f"{number * jobs + job:016x}"
            copied = shutil.copytree(entry.folder, entry.folder.parent / name)
            stored = replace(entry.stored, run=replace(entry.run, id=name))
            (Path(copied) / "run.json").write_text(run_json.dump_run(stored), encoding="utf-8")
            runs.append(replace(captured, run_id=name))
        command = "gpureport nightly"
        history.append(NightlyRecord(date=day(number), label="", command=command, version="1", runs=tuple(runs)))
    return store


def _cost(*arguments: str) -> float:
    return cpu_seconds([sys.executable, "-m", "gpureport", "-q", *arguments])


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, nargs="*", default=[100, 500, 2000])
    parser.add_argument("--nights", type=int, nargs="*", default=[30, 120, 365])
    parser.add_argument("--tracked", type=int, nargs="*", default=[10, 100, 400])
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        for count in given.logs:
            for layout in ("flat", "nested"):
                logs = write_logs(Path(name, f"{layout}-{count}"), count, nested=layout == "nested")
                seconds = _cost("ingest", str(logs), "--store", f"{logs}-store")
                print(f"{count} logs, {layout}: ingest {seconds:.1f} s")  # noqa: T201 - its output is its use
        for count in given.nights:
            store = str(write_nights(Path(name, f"nights-{count}"), count).folder)
            lost, again = (_cost("nightly", "--store", store, "--site", f"{store}-site") for _ in range(2))
            print(f"{count} nights: lost site {lost:.1f} s, pages again {again:.1f} s")  # noqa: T201 - as above
        empty = mlflow.empty(Path(name, "empty.db"))
        for count in given.tracked:
            source = mlflow.filled(Path(shutil.copy(empty, Path(name, f"{count}.db"))), count, 1000)
            first, second = (_cost("ingest", f"mlflow:{source}", "--store", f"{source}-store") for _ in range(2))
            print(f"{count} runs of MLflow: first {first:.1f} s, again {second:.1f} s")  # noqa: T201 - as above
            source.unlink()


if __name__ == "__main__":
    main()
