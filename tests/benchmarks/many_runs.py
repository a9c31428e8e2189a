"""Many runs to measure growth by: a folder of logs, a store of copies of a run, a history of nights."""

import os
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from gpureport.cli.runs.run_sampling import sample_runs
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.nightly.history import capture
from gpureport.nightly.history.night_history import History
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.store import Entry, Store, run_json
from gpureport.testing import Run, analyze
from tests.benchmarks.long_runs import LongRun
from tests.local_place import local
from tests.nightly.made import day

_HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, "
    "power.draw [W], clocks.current.sm [MHz]\n"
)
_FIRST = datetime(2026, 3, 1)  # noqa: DTZ001 - a log of local times
_WRITTEN = 1_772_323_200
"""Seconds since 1970 of the time at which copies of a run seem to have been written."""
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
            folder_of_run = local(entry.folder)
            _describe_run(shutil.copytree(folder_of_run, folder_of_run.with_name(name)), entry, entry.run)
            runs.append(replace(captured, run_id=name))
        command = "gpureport nightly"
        history.append(NightlyRecord(date=day(number), label="", command=command, version="1", runs=tuple(runs)))
    return store


def write_copies(folder: Path, count: int) -> Store:
    """Fill a store with a run, and with descriptions of copies under other ids, names and users; return it."""
    store = Store(folder / "store")
    entry = store.write(LongRun(gpus=8, hours=0.1, gap_every=None), IMPORTER_VERSION)
    for number in range(1, count):
        copy = local(entry.folder).with_name(f"{number:032x}")
        copy.mkdir()
        tags = (("user", f"user{number % 97}"), ("node", f"node{number % 31}"))
        _describe_run(copy, entry, replace(entry.run, name=f"job{number}", tags=tags))
    return store


def _describe_run(folder: Path, entry: Entry, run: Run) -> None:
    """Write the `run.json` of a copy of a run into its folder."""
    stored = replace(entry.stored, run=replace(run, id=folder.name))
    (folder / "run.json").write_text(run_json.dump_run(stored), encoding="utf-8")
    # an index does not trust what was written in its last seconds
    os.utime(folder / "run.json", (_WRITTEN, _WRITTEN))
