"""Reads tables with one row per run and no series: `sacct -P` with GPU use, and CodeCarbon's emissions.csv.

A row has means over the whole run. They give GPU-hours, mean use and energy, but are too little for any check.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers import source_text
from gpureport.importers.clock import load_zone, parse_time, to_utc
from gpureport.importers.headings import parse_number
from gpureport.importers.mlflow.stores import LocalStore
from gpureport.importers.protocol import ReadOptions
from gpureport.importers.protocol.tracker import RunInfo, Selection, Tracked, Tracker, describe_devices
from gpureport.importers.source_text import RawFile
from gpureport.importers.sources import take_stream
from gpureport.importers.tracker_series import build_device_table, build_tracked
from gpureport.names import BY_COLUMN
from gpureport.parsing import FIRST_MICROSECOND, MOST_GPUS, MOST_RECORD_BYTES
from gpureport.recording import Device

_SLURM, _CODECARBON = "JobID|", "timestamp,project_name,run_id,"
_NOTE = "The table holds one mean of the whole run, shown at its start and its end."
_LONGEST = 1e9
_RUNNING = {"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "STOPPED"}
Cells = Mapping[str, str]


class _Row(NamedTuple):
    """One run in a table: its `start` and whether that is UTC, the `means` of each GPU, and what it `lacks`."""

    id: str
    name: str
    start: tuple[int, bool] | None = None
    seconds: float = 0.0
    gpus: int = 0
    model: str | None = None
    means: Mapping[str, float] = {}
    tags: Mapping[str, str] = {}
    status: str = "finished"
    lacks: str = ""


class Table(LocalStore):
    def __init__(self, where: str) -> None:
        super().__init__(take_stream(where) or Path(where), where)
        file = RawFile(self.path)
        if not self.path.is_file() or file.size > MOST_RECORD_BYTES:
            what = f"not a file of at most {MOST_RECORD_BYTES >> 30} GiB"
            raise SourceError(where, what, "check the path", code="cannot_read")
        of_jobs = source_text.head(file.again(), len(_SLURM)) == _SLURM.encode()
        # sacct does not quote cells, and a job name may contain a quote
        form: dict[str, Any] = {"delimiter": "|", "quoting": csv.QUOTE_NONE} if of_jobs else {}
        lines = (line for line in source_text.Text(file) if not line.isspace())
        try:
            cells = list(csv.DictReader(lines, restkey="", restval="", **form))
        except csv.Error as error:
            raise SourceError(where, str(error), "export it again", code="cannot_read") from error
        found = list(_read_jobs(cells) if of_jobs else map(_read_emissions, cells))
        self.rows = {f"{row.id} {row.start}": row for row in found}
        again = Counter(row.id for row in self.rows.values())
        for key, row in self.rows.items():
            if again[row.id] > 1 and row.start is not None:
                self.rows[key] = row._replace(id=f"{row.id}@{row.start[0] // 1_000_000}")

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        return [
            RunInfo(
                id=row.id,
                key=key,
                name=row.name,
                status=row.status,
                started=row.start and row.start[0],
                hardware=describe_devices({*range(row.gpus if row.means else 0)}),
                lacks=row.lacks,
                timezone="UTC" if row.start is None or row.start[1] else None,
            )
            for key, row in self.rows.items()
            if experiment in {None, row.tags.get("project")}
        ]


def _holds(path: Path) -> bool:
    if not path.is_file():
        return False
    first = source_text.head_text(source_text.head(RawFile(path), 4096)).partition("\n")[0]
    return first.startswith(_CODECARBON) or (first.startswith(_SLURM) and "TRESUsageIn" in first)


def _record(store: Table, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    row, locator = store.rows[info.key], f"accounting:{store.where}#{info.id}"
    if row.lacks:
        raise SourceError(locator, row.lacks, "name another one; --list shows the runs", code="no_metrics")
    start, is_utc = row.start or (0, False)
    times = np.array([start, start + round(row.seconds * 1e6)])
    if options.tz and row.start and not is_utc:
        times = to_utc(times, load_zone(options.tz))
    gpus = [gpu for gpu in range(row.gpus) if options.gpus is None or gpu in options.gpus]
    means = {name: np.full(2, value) for name, value in row.means.items()}
    count = 2 * len(gpus)
    return build_tracked(
        locator,
        {Device(id=f"gpu:{n}", index=n, model=row.model): build_device_table(f"gpu:{n}", times, means) for n in gpus},
        {},
        name=row.name,
        quality=Quality(lines=count, rows_kept=count, synthetic_time=row.start is None, notes=(_NOTE,)),
        throughput=selection.throughput,
        tags=tuple(row.tags.items()),
        state=row,
        timezone="UTC" if is_utc else None,
    )


ACCOUNTING = Tracker(
    kind="accounting", title="accounting table", holds=_holds, open=lambda path, *_: Table(path), record=_record
)


def _read_jobs(table: Iterable[Cells]) -> Iterator[_Row]:
    """Yield Slurm jobs with the mean use of their GPUs.

    Slurm states the use of a job step as the sum over its GPUs, averaged over its tasks; a batch script is one task. If
    Slurm cannot read a GPU, use and memory are both 0, which does not mean that it was idle.
    """
    jobs: list[tuple[str, list[Cells]]] = []
    for cells in table:
        job, _, part = cells["JobID"].partition(".")
        if not part or not jobs or jobs[-1][0] != job:
            # a requeued job has rows for each attempt
            jobs.append((job, []))
        jobs[-1][1].append(cells)
    for job, rows in jobs:
        own, *steps = rows
        gpus, seconds, used, seen = int(_count(own, "AllocTRES", "gpu")), _read_seconds(own), 0.0, 0
        for step in steps:
            name = step["JobID"].rpartition(".")[2]
            tasks = parse_number(step.get("NTasks"))
            use, memory = (_count(step, "TRESUsageInAve", part) for part in ("gpuutil", "gpumem"))
            if name != "extern" and use + memory > 0:
                used += use / 100 * (tasks or (1 if name == "batch" else np.nan)) * _read_seconds(step)
                seen = max(seen, int(_count(step, "AllocTRES", "gpu")) or gpus)
        mean = used / (gpus * seconds) if 0 < gpus <= min(seen, MOST_GPUS) and seconds else np.nan
        # such as `CANCELLED by 1000`
        state = own.get("State", "").partition(" by ")[0]
        faults = {
            "still running": state in _RUNNING,
            "not started": not seconds,
            "without a GPU": not gpus,
            "without rows of its steps (give sacct no -X)": not steps,
            "without a record of the use of all its GPUs": not 0 <= mean <= 1.01,  # noqa: PLR2004 - rounding; NaN is not either
        }
        lacks = next((fault for fault, holds in faults.items() if holds), "")
        tags = {BY_COLUMN[key.lower()].name: text for key, text in own.items() if text and key.lower() in BY_COLUMN}
        model = re.search(r"gres/gpu:([^=,]+)=", own.get("AllocTRES", ""))
        name = f"{own.get('JobName') or 'job'}-{job}"
        start = parse_time(own.get("Start", ""))
        means = {} if lacks else {"gpu_utilization_ratio": min(mean, 1.0)}
        tags, status = tags | {"job_state": state}, state or "state not recorded"
        yield _Row(job, name, start, seconds, gpus, model and model[1], means, tags, status, lacks)


def _read_emissions(cells: Cells) -> _Row:
    run, project, ended = cells["run_id"], cells["project_name"] or "run", parse_time(cells["timestamp"])
    names = ("duration", "gpu_count", "gpu_energy", "gpu_utilization_percent")
    seconds, gpus, energy, use = (parse_number(cells.get(name)) or 0.0 for name in names)
    if not (1 <= gpus <= MOST_GPUS and 0 < seconds <= _LONGEST and 0 < energy <= _LONGEST):
        return _Row(run, run, lacks="without the energy of its GPUs" if gpus else "without a GPU")
    means = {"gpu_power_watts": energy * 3.6e6 / seconds / int(gpus)}
    means |= {"gpu_utilization_ratio": use / 100} if 0 < use <= 100 else {}  # noqa: PLR2004 - per cent
    # a cell with several models does not identify the model of one GPU
    model = re.fullmatch(r"\d+ x ((?:(?!\d x ).)+)", cells.get("gpu_model", ""))
    units = {"cpu_energy": "kWh", "ram_energy": "kWh", "emissions": "kg CO2e"}
    tags = {"project": project} | {name: f"{cells[name]} {unit}" for name, unit in units.items() if cells.get(name)}
    start = None if ended is None else (max(ended[0] - round(seconds * 1e6), FIRST_MICROSECOND), ended[1])
    return _Row(run, f"{project}-{run[:8]}", start, seconds, int(gpus), model and model[1], means, tags)


def _count(cells: Cells, column: str, name: str) -> float:
    found = re.search(rf"(?:^|,)gres/{name}=(\d{{1,15}})(?:,|$)", cells.get(column, ""))
    return float(found[1]) if found else 0.0


def _read_seconds(cells: Cells) -> float:
    found = re.fullmatch(r"(?:(\d{1,4})-)?(?:(\d\d):)?(\d\d):(\d\d)", cells.get("Elapsed", ""), re.ASCII)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
