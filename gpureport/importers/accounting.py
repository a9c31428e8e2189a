"""Tables with one row per run and no series: `sacct -P` with the use of GPUs, and CodeCarbon's emissions.csv.

A row states means of the whole run. They stand at the first and the last moment of each GPU: enough for GPU hours, mean
use and energy, and too little for anything to be judged.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from gpureport.data_quality import Quality
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.clock import load_zone, to_utc
from gpureport.importers.columns import parse_time
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, SkippedRun, Tracked
from gpureport.importers.tracker_series import add_timing, build_device_table, read_clocks
from gpureport.label_tags import BY_COLUMN
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_GPUS, MOST_RECORD_BYTES
from gpureport.recording import Device
from gpureport.regular_files import read_regular_file

_PREFIX = "accounting:"
_SLURM, _CODECARBON = "JobID|", "timestamp,project_name,run_id,"
"""What the tables begin with."""
_FORMAT = "JobID,User,Account,JobName,Partition,NodeList,State,Start,Elapsed,NTasks,AllocTRES,TRESUsageInAve"
_NOTE = "The table holds one mean of the whole run, which stands at its start and its end."
_LONGEST = 1e9
"""Seconds of a run, some thirty years."""
Cells = Mapping[str, str]


class _Row(NamedTuple):
    """What a table says of a run: its start and whether that is UTC, and metrics that are means of each GPU."""

    locator: str
    id: str
    name: str
    start: tuple[int, bool] | None
    seconds: float
    gpus: int
    model: str | None
    means: dict[str, float]
    tags: dict[str, str]
    fault: SourceError | None = None

    @property
    def key(self) -> str:
        """Its id, which another table may give to another run."""
        return f"{self.id} {self.start}"

    def read(self, options: ReadOptions) -> Tracked:
        """Return the run, with two samples of each GPU."""
        start, is_utc = self.start or (0, False)
        times = np.array([start, start + round(self.seconds * 1e6)])
        if options.tz and self.start and not is_utc:
            times = to_utc(times, load_zone(options.tz))
        numbers = [number for number in range(self.gpus) if options.gpus is None or number in options.gpus]
        devices = tuple(Device(id=f"gpu:{number}", index=number, model=self.model) for number in numbers)
        means = {name: np.full(2, value) for name, value in self.means.items()}
        series = {device.id: build_device_table(device.id, times, means) for device in devices}
        count = 2 * len(devices)
        quality = Quality(lines=count, rows_kept=count, synthetic_time=self.start is None, notes=(_NOTE,))
        return Tracked(
            name=self.name,
            span=(int(times[0]), int(times[1])),
            devices=devices,
            series=series,
            quality=add_timing(quality, read_clocks(series.values())),
            interval=self.seconds,
            tags=tuple(self.tags.items()),
            state=repr(self),
            timezone="UTC" if is_utc else None,
        )


class Accounting:
    """Reads tables with one row per run."""

    kind: ClassVar[str] = "accounting"
    title: ClassVar[str] = "accounting table"
    recognised_by: ClassVar[str] = (
        "What `sacct -P` prints with `JobID` first and `TRESUsageInAve`, or CodeCarbon's emissions.csv."
    )
    sample: ClassVar[str] = "accounting/sacct.txt"

    def claims(self, source: str) -> bool:
        """Return whether a locator or a file is such a table."""
        try:
            with Path(source.removeprefix(_PREFIX)).open("rb") as file:
                head = file.readline(4096).decode("utf-8-sig", errors="replace")
        except OSError:
            return source.startswith(_PREFIX)
        return head.startswith(_CODECARBON) or (head.startswith(_SLURM) and "TRESUsageIn" in head)

    def keeps_files(self, folder: Path) -> bool:
        """Return that no folder is one."""
        del folder
        return False

    def refuse_folder(self, folder: Path) -> None:
        """Refuse none."""

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs that are meant, and the rows left out."""
        rows, left = _read_table(source, selection)
        return SelectedRuns(runs=tuple(rows), skipped=tuple(left))

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a table holds."""
        starts = [(row, row.start[0] if row.start else None) for row in _read_table(source, selection)[0]]
        return [ListedRun(id=r.id, name=r.name, status="", started=at, holds=f"{r.gpus} GPUs") for r, at in starts]


def _read_table(source: str, selection: Selection) -> tuple[list[_Row], list[SkippedRun]]:
    if selection.filter is not None:
        what = "a table has no filter of its own"
        raise SettingsError("--filter", what, "name runs with --run, * is any", code="filter_needs_server")
    store, _, run = source.removeprefix(_PREFIX).partition("#")
    try:
        text = read_regular_file(Path(store), most=MOST_RECORD_BYTES).decode("utf-8-sig", errors="replace")
        lines, of_jobs = text.splitlines(), text.startswith(_SLURM)
        if of_jobs:
            # sacct quotes nothing, and the name of a job may hold a quote
            table = csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE, restkey="", restval="")
            found = list(_read_jobs(f"{_PREFIX}{store}", table))
        else:
            found = list(_read_emissions(f"{_PREFIX}{store}", csv.DictReader(lines, restkey="", restval="")))
    except (OSError, csv.Error) as error:
        what, hint = getattr(error, "strerror", None) or str(error), getattr(error, "hint", "check the path")
        raise SourceError(store, what, hint, code="cannot_read") from error
    rows = [each for each in found if isinstance(each, _Row)]
    left = [each for each in found if isinstance(each, SkippedRun)]
    if wanted := [*([run] if run else []), *selection.runs]:
        left = []
        rows = [row for row in rows if any(fnmatchcase(name, each) for each in wanted for name in (row.id, row.name))]
    if not rows:
        hint = f"print it with sacct -aP --format={_FORMAT}" if of_jobs else "--list shows its runs"
        raise SourceError(store, "it holds no such run with figures of its GPUs", hint, code="unknown_run")
    return sorted(rows, key=lambda row: row.start or (0, False))[-(selection.latest or 0) :], left


def _read_jobs(store: str, table: Iterable[Cells]) -> Iterator[_Row | SkippedRun]:
    """Yield the jobs of Slurm with the mean use of their GPUs, which stands in the rows of their steps.

    The use of a step is the sum over its GPUs, as a mean of its tasks; a batch script is one task. Where a GPU or its
    driver is not supported, use and memory are both 0, so that alone is no sign of rest.
    """
    jobs: dict[str, list[Cells]] = {}
    for cells in table:
        jobs.setdefault(cells["JobID"].partition(".")[0], []).append(cells)
    for job, (own, *steps) in jobs.items():
        gpus, seconds, used, seen = int(_count(own, "AllocTRES", "gpu")), _read_seconds(own), 0.0, 0
        for step in steps:
            name, tasks = step["JobID"].rpartition(".")[2], _read_number(step.get("NTasks"))
            use, memory = (_count(step, "TRESUsageInAve", part) for part in ("gpuutil", "gpumem"))
            if name != "extern" and use + memory > 0:
                used += use / 100 * (tasks or (1 if name == "batch" else np.nan)) * _read_seconds(step)
                seen = max(seen, int(_count(step, "AllocTRES", "gpu")) or gpus)
        mean = used / (gpus * seconds) if 0 < gpus <= min(seen, MOST_GPUS) and seconds else np.nan
        if not mean <= 1.01:  # noqa: PLR2004 - rounding; NaN is not either
            yield SkippedRun(name=job, reason="without the use of its GPUs")
            continue
        tags = {BY_COLUMN[key.lower()].name: text for key, text in own.items() if text and key.lower() in BY_COLUMN}
        # Slurm adds who cancelled a job
        tags |= {"job_state": own.get("State", "").partition(" by ")[0]}
        model, name = re.search(r"gres/gpu:([^=,]+)=", own["AllocTRES"]), f"{own.get('JobName') or 'job'}-{job}"
        means = {"gpu_utilization_ratio": min(mean, 1.0)}
        start = _read_time(own.get("Start", ""))
        yield _Row(f"{store}#{job}", job, name, start, seconds, gpus, model and model[1], means, tags)


def _read_emissions(store: str, table: Iterable[Cells]) -> Iterator[_Row | SkippedRun]:
    """Yield the runs of CodeCarbon, which writes a row when one ends, with the mean power of their GPUs."""
    for cells in table:
        run, project, ended = cells["run_id"], cells["project_name"] or "run", _read_time(cells["timestamp"])
        names = ("duration", "gpu_count", "gpu_energy", "gpu_utilization_percent")
        seconds, gpus, energy, use = (_read_number(cells.get(name)) for name in names)
        if not (1 <= gpus <= MOST_GPUS and 0 < seconds <= _LONGEST and energy > 0):
            yield SkippedRun(name=run, reason="without the energy of its GPUs")
            continue
        means = {"gpu_power_watts": energy * 3.6e6 / seconds / int(gpus)}
        means |= {"gpu_utilization_ratio": use / 100} if 0 < use <= 100 else {}  # noqa: PLR2004 - per cent
        # several models stand in one cell
        model = re.fullmatch(r"\d+ x ((?:(?!\d x ).)+)", cells.get("gpu_model", ""))
        start = None if ended is None else (max(ended[0] - round(seconds * 1e6), FIRST_MICROSECOND), ended[1])
        units = {"cpu_energy": "kWh", "ram_energy": "kWh", "emissions": "kg CO2e"}
        tags = {"project": project} | {name: f"{cells[name]} {unit}" for name, unit in units.items() if cells.get(name)}
        name = f"{project}-{run[:8]}"
        yield _Row(f"{store}#{run}", run, name, start, seconds, int(gpus), model and model[1], means, tags)


def _count(cells: Cells, column: str, name: str) -> float:
    """Return what a list of Slurm such as `cpu=32,gres/gpu=4` says of a resource; 0 where it says nothing."""
    found = re.search(rf"(?:^|,)gres/{name}=(\d{{1,15}})(?:,|$)", cells.get(column, ""))
    return float(found[1]) if found else 0.0


def _read_number(text: str | None) -> float:
    return float(text) if text and re.fullmatch(r"\d{1,12}(?:\.\d*)?(?:e-\d+)?", text, re.ASCII) else 0.0


def _read_seconds(cells: Cells) -> float:
    found = re.fullmatch(r"(?:(\d{1,4})-)?(\d\d):(\d\d):(\d\d)", cells.get("Elapsed", ""), re.ASCII)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _read_time(text: str) -> tuple[int, bool] | None:
    moment = parse_time(text)
    return moment if moment is not None and FIRST_MICROSECOND <= moment[0] < LAST_MICROSECOND else None
