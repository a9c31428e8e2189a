"""Trackers whose store is a single file.

Trackio has one SQLite database per project, in which each set of logged values is a row of JSON
text. The tables of `sacct -P` and CodeCarbon contain one row per run, with means over the run. They
provide GPU-hours, mean use and energy, but not enough for any check.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport.columns import FloatArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers import source_text, tracker_series
from gpureport.importers.account import NOT_SELECTED, TORN
from gpureport.importers.clock import load_zone, parse_time, to_utc
from gpureport.importers.columns import extra_name
from gpureport.importers.headings import parse_number
from gpureport.importers.mlflow.stores import LocalStore, find_experiments
from gpureport.importers.protocol import ReadOptions, RunInfo, Selection, Tracked, Tracker, describe_devices
from gpureport.importers.read_only_sqlite import holds_tables, open_database
from gpureport.importers.sources import list_files, list_in_folder, take_stream
from gpureport.names import BY_COLUMN
from gpureport.parsing import FIRST_MICROSECOND, MOST_GPUS, MOST_RECORD_BYTES
from gpureport.recording import HOST, Device
from gpureport.regular_files import walk_folder

_TABLES = ("metrics", "system_metrics")
_GPU = re.compile(r"gpu/([0-9]{1,4})/(.+)")
_COLUMNS = {
    "utilization": ("gpu_utilization_ratio", 0.01),
    "memory_utilization": ("gpu_memory_controller_ratio", 0.01),
    "allocated_memory": ("gpu_memory_used_bytes", 2**30),
    "total_memory": ("gpu_memory_total_bytes", 2**30),
    "power": ("gpu_power_watts", 1.0),
    "power_limit": ("gpu_power_limit_requested_watts", 1.0),
    "temp": ("gpu_temperature_celsius", 1.0),
    "sm_clock": ("gpu_sm_clock_hertz", 1e6),
    "memory_clock": ("gpu_memory_clock_hertz", 1e6),
    "pcie_rx": ("pcie_receive_bytes_per_second", 1024e3),
    "pcie_tx": ("pcie_transmit_bytes_per_second", 1024e3),
    "throttle_thermal": ("clock_event_sw_thermal_slowdown", 1.0),
    "throttle_power": ("clock_event_sw_power_cap", 1.0),
    "throttle_hw_slowdown": ("clock_event_hw_slowdown", 1.0),
    "uncorrected_memory_errors": ("gpu_ecc_uncorrected_total", 1.0),
    "cpu/utilization": ("cpu_utilization_ratio", 0.01),
    "busiest/utilization": ("cpu_busiest_core_ratio", 0.01),
    "memory/used": ("host_memory_used_bytes", 2**30),
    "memory/percent": ("host_memory_used_ratio", 0.01),
    "disk/read_mb_per_sec": ("host_disk_read_bytes_per_second", 2**20),
    "network/recv_mb_per_sec": ("host_network_receive_bytes_per_second", 2**20),
}
_RUNS = """
    select RUN, run_name, min(timestamp),
           coalesce(max(case when system glob '*"gpu/[0-9]*' then system end), max(system))
    from (select RUN, run_name, timestamp, null system from metrics
          union all select RUN, run_name, timestamp, case when json_valid(metrics) then cast(metrics as text) end
          from system_metrics)
    group by 1 order by 3 desc
"""
"""Selects each run with one row of hardware values, preferably about individual GPUs."""


def _read_numbers(text: Any) -> dict[str, float] | None:
    with suppress(ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        found = json.loads(text).items()
        known = ("NaN", "Infinity", "-Infinity")
        return {key: float(one) for key, one in found if isinstance(one, int | float) or one in known}
    return None


class TrackioStore(LocalStore):
    def query(self, query: str, *values: str) -> list[Any]:
        """Return the rows of a query, in which `RUN` stands for the run id (or name, before Trackio 0.24)."""
        with open_database(self.path, _TABLES, "Trackio") as connection:
            names = [name for _, name, *_ in connection.execute("pragma table_info(metrics)")]
            query = query.replace("RUN", "run_id" if "run_id" in names else "run_name")
            return connection.execute(query, values).fetchall()

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        find_experiments(self.where, {self.path.stem: self.path.stem}, experiment)
        found = []
        for key, name, began, system in self.query(_RUNS):
            names = _read_numbers(system) or {}
            devices = {match and match[1] for each in names if (match := _GPU.match(each)) or each[:4] != "gpu/"}
            info = RunInfo(
                id=str(key),
                key=f"{self.path.stem}/{key}",
                name=str(name),
                status="status not recorded",
                started=(parse_time(str(began)) or [None])[0],
                hardware=describe_devices(devices),
            )
            found.append(info)
        return found

    def points(self, table: str, run_id: str, counts: Counter[str]) -> dict[str, tracker_series.Series]:
        step = "step" if table == "metrics" else "0"
        found = defaultdict[str, list[tuple[int, float, int]]](list)
        for at, number, text in self.query(f"select timestamp, {step}, metrics from {table} where RUN = ?", run_id):  # noqa: S608
            time, content = parse_time(str(at)), _read_numbers(text)
            if time is None or content is None or not isinstance(number, int):
                counts[TORN] += 1
                continue
            for name, value in content.items():
                found[name].append((time[0], value, number))
        return {name: tracker_series.make_series(sorted(own, key=itemgetter(0, 2))) for name, own in found.items()}

    def config(self, run_id: str) -> dict[str, Any]:
        with suppress(SourceError, ValueError, TypeError, RecursionError):
            for (text,) in self.query("select config from configs where RUN = ?", run_id):
                return dict(json.loads(text))
        return {}


def _build_devices(
    points: Mapping[str, tracker_series.Series], gpus: tuple[int, ...] | None, counts: Counter[str]
) -> dict[Device, pa.Table]:
    ticks, read = tracker_series.place_on_ticks([*points.values()])
    values: dict[int | None, dict[str, FloatArray]] = defaultdict(dict)
    for (key, own), row in zip(points.items(), read, strict=True):
        match = _GPU.fullmatch(key)
        gpu, what = (int(match[1]), match[2]) if match else (None, re.sub("cpu/[0-9]+/", "busiest/", key))
        if what.startswith("gpu/") or (gpu is not None and gpus is not None and gpu not in gpus):
            # sums and means over GPUs add no information
            counts[NOT_SELECTED if match else "noise"] += len(own.times)
            continue
        counts["kept"] += len(own.times)
        column, factor = _COLUMNS.get(what, (extra_name(what), 1.0))
        values[gpu][column] = np.fmax(row * factor, values[gpu].get(column, np.nan))
    series = {}
    for gpu, held in values.items():
        known = {name: each for name, each in held.items() if not np.isnan(each).all()}
        memory, limit = known.get("gpu_memory_total_bytes"), known.get("gpu_power_limit_requested_watts")
        device = Device(
            id=HOST if gpu is None else f"gpu:{gpu}",
            index=gpu,
            memory_total_bytes=None if memory is None else round(np.nanmax(memory)),
            power_limit_watts=None if limit is None else float(np.nanmin(limit)),
        )
        if known:
            series[device] = tracker_series.build_device_table(device.id, ticks, known)
    return series


def _record(store: TrackioStore, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    counts: Counter[str] = Counter()
    series = _build_devices(store.points("system_metrics", info.id, counts), options.gpus, counts)
    metrics, config = store.points("metrics", info.id, counts), store.config(info.id)
    quality = Quality(
        lines=counts.total(),
        rows_kept=counts["kept"],
        noise=counts["noise"],
        rejected=tracker_series.list_rejected({why: counts[why] for why in (TORN, NOT_SELECTED)}),
    )
    return tracker_series.build_tracked(
        f"trackio:{store.where}#{info.id}",
        series,
        metrics,
        name=info.name,
        quality=quality,
        throughput=selection.throughput,
        state=(counts, sorted(config.items())),
        params=tuple((key, str(value)) for key, value in config.items() if not key.startswith("_")),
        tags=tuple(("user", str(value)) for key, value in config.items() if key == "_Username" and value),
    )


TRACKIO = Tracker(
    kind="trackio",
    title="Trackio",
    holds=lambda path: holds_tables(path, _TABLES),
    open=lambda path, *_: TrackioStore(Path(path), path),
    record=_record,
)


_SLURM, _TABLE = "JobID|", re.compile(r"(?:task_name,)?timestamp,project_name,run_id,|JobID\|.*TRESUsageIn")
_SUMMED = ("duration", "gpu_energy", "ram_energy", "cpu_energy", "emissions")
_LONGER = 1.1
"""Maximum ratio of the time in which the memory used its energy to the stated duration; both are usually equal."""
_NOTE = "The table contains one mean for the whole run, which is shown at the run's start and end."
_LONGEST = 1e9
Cells = Mapping[str, str]


class _Row(NamedTuple):
    """One run in a table. `start` is a time and whether it is UTC, and `lacks` explains why metrics are missing."""

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
        self.rows: dict[str, _Row] = {}
        for path in _find_tables(self.path) or [self.path]:
            # another table may contain what this one lacks
            self.rows |= {
                key: row for key, row in _read_table(path, where).items() if not (row.lacks and key in self.rows)
            }
        again = Counter(row.id for row in self.rows.values())
        self.rows = {
            key: row._replace(id=f"{row.id}@{row.start[0] // 1_000_000}") if again[row.id] > 1 and row.start else row
            for key, row in self.rows.items()
        }

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


def _find_tables(path: Path) -> list[Path]:
    """Return a table, or the tables in a folder unless it also contains GPU logs."""
    folders = sorted(folder for folder, *_ in walk_folder(path)) if path.is_dir() else []
    if any(any(list_in_folder(folder, "gpu")) for folder in folders):
        return []
    files = (file for file in chain([path], *map(list_files, folders)) if file.is_file())
    heads = {file: source_text.head_text(source_text.head(source_text.RawFile(file), 4096)) for file in files}
    return [file for file, head in heads.items() if _TABLE.match(head)]


def _read_table(path: Path, where: str) -> dict[str, _Row]:
    file = source_text.RawFile(path)
    if not path.is_file() or file.size > MOST_RECORD_BYTES:
        what = f"not a file, or larger than {MOST_RECORD_BYTES >> 30} GiB"
        raise SourceError(where, what, "check the path", code="cannot_read")
    of_jobs = source_text.head(file.again(), len(_SLURM)) == _SLURM.encode()
    # sacct does not quote cells, but a job name may contain a quotation mark
    form: dict[str, Any] = {"delimiter": "|", "quoting": csv.QUOTE_NONE} if of_jobs else {}
    lines = (line for line in source_text.Text(file) if not line.isspace())
    try:
        cells = list(csv.DictReader(lines, restkey="", restval="", **form))
        return {f"{row.id} {row.start}": row for row in _read_jobs(cells)} if of_jobs else _read_emissions(cells)
    except (csv.Error, KeyError) as error:
        what = f"{path.name} is damaged, or not a table of this kind ({error})"
        raise SourceError(where, what, "check it", code="cannot_read") from error


def _record_row(store: Table, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    row, locator = store.rows[info.key], f"accounting:{store.where}#{info.id}"
    if row.lacks:
        raise SourceError(locator, row.lacks, "choose another run; --list shows all runs", code="no_metrics")
    start, is_utc = row.start or (0, False)
    times = np.array([start, start + round(row.seconds * 1e6)])
    if options.tz and row.start and not is_utc:
        times = to_utc(times, load_zone(options.tz))
    gpus = [gpu for gpu in range(row.gpus) if options.gpus is None or gpu in options.gpus]
    means = {name: np.full(2, value) for name, value in row.means.items()}
    count = 2 * len(gpus)
    return tracker_series.build_tracked(
        locator,
        {
            Device(id=f"gpu:{n}", index=n, model=row.model): tracker_series.build_device_table(f"gpu:{n}", times, means)
            for n in gpus
        },
        {},
        name=row.name,
        quality=Quality(lines=count, rows_kept=count, synthetic_time=row.start is None, notes=(_NOTE,)),
        throughput=selection.throughput,
        tags=tuple(row.tags.items()),
        state=row,
        timezone="UTC" if is_utc else None,
        # the table contains the duration of a run, which does not depend on samples
        interval=None,
    )


ACCOUNTING = Tracker(
    kind="accounting",
    title="accounting table",
    holds=_find_tables,
    open=lambda path, *_: Table(path),
    record=_record_row,
)


def _read_jobs(table: Iterable[Cells]) -> Iterator[_Row]:
    """Yield each Slurm job with the mean use of its GPUs.

    Slurm reports the use of a job step as the sum over its GPUs, averaged over its tasks; a batch script is one task.
    If Slurm cannot read a GPU, it reports 0 for both use and memory, which does not mean that the GPU was idle.
    """
    jobs: list[tuple[str, list[Cells]]] = []
    for cells in table:
        job, _, part = cells["JobID"].partition(".")
        if not part or not jobs or jobs[-1][0] != job:
            # a requeued job has separate rows for each attempt
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
        # for example, `CANCELLED by 1000`
        state = own.get("State", "").partition(" by ")[0]
        faults = {
            "still running": state in {"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "STOPPED"},
            "not started": not seconds,
            "without a GPU": not gpus,
            "without rows for its steps (run sacct without -X)": not steps,
            "without usage data for all its GPUs": not 0 <= mean <= 1.01,  # noqa: PLR2004 - rounding; NaN is not either
        }
        lacks = next((fault for fault, holds in faults.items() if holds), "")
        tags = {BY_COLUMN[key.lower()].name: text for key, text in own.items() if text and key.lower() in BY_COLUMN}
        model = re.search(r"gres/gpu:([^=,]+)=", own.get("AllocTRES", ""))
        name = f"{own.get('JobName') or 'job'}-{job}"
        start = parse_time(own.get("Start", ""))
        means = {} if lacks else {"gpu_utilization_ratio": min(mean, 1.0)}
        tags, status = tags | {"job_state": state}, state or "state not recorded"
        yield _Row(job, name, start, seconds, gpus, model and model[1], means, tags, status, lacks)


def _read_emissions(table: Iterable[Cells]) -> dict[str, _Row]:
    """Return each run of CodeCarbon, whose rows are its tasks, or contain everything since it began."""
    runs = defaultdict[str, dict[str, str]](dict)
    for cells in table:
        before, is_task = runs[cells["run_id"]], "task_name" in cells
        sums = {name: str(_read_cell(before, name) + _read_cell(cells, name)) for name in _SUMMED if is_task}
        runs[cells["run_id"]] = {**cells, **sums}
    return {run: _read_run(run, cells) for run, cells in runs.items()}


def _read_run(run: str, cells: Cells) -> _Row:
    project, ended = cells["project_name"] or "run", parse_time(cells["timestamp"])
    seconds, gpus, use = (_read_cell(cells, name) for name in ("duration", "gpu_count", "gpu_utilization_percent"))
    # energy includes the overhead of the data centre
    energy, memory = (_read_cell(cells, name) / (_read_cell(cells, "pue") or 1.0) for name in _SUMMED[1:3])
    if not (1 <= gpus <= MOST_GPUS and 0 < seconds <= _LONGEST and 0 < energy <= _LONGEST):
        return _Row(run, run, lacks="without the energy of its GPUs" if gpus else "without a GPU")
    is_task = "task_name" in cells
    # each task restarts the duration, but not the energy; the power of the memory is constant
    if not is_task and memory * 3.6e6 > _LONGER * seconds * _read_cell(cells, "ram_power") > 0:
        return _Row(run, run, lacks="with the duration of its last task only (give CodeCarbon's table of tasks)")
    means = {"gpu_power_watts": energy * 3.6e6 / seconds / int(gpus)}
    means |= {"gpu_utilization_ratio": use / 100} if 0 < use <= 100 and not is_task else {}  # noqa: PLR2004 - per cent
    # a list of several models does not identify the model of one GPU
    model = re.fullmatch(r"\d+ x ((?:(?!\d x ).)+)", cells.get("gpu_model", ""))
    units = {"cpu_energy": "kWh", "ram_energy": "kWh", "emissions": "kg CO2e"}
    tags = {"project": project} | {name: f"{cells[name]} {unit}" for name, unit in units.items() if cells.get(name)}
    start = None if ended is None else (max(ended[0] - round(seconds * 1e6), FIRST_MICROSECOND), ended[1])
    return _Row(run, f"{project}-{run[:8]}", start, seconds, int(gpus), model and model[1], means, tags)


def _read_cell(cells: Cells, name: str) -> float:
    return parse_number(cells.get(name)) or 0.0


def _count(cells: Cells, column: str, name: str) -> float:
    found = re.search(rf"(?:^|,)gres/{name}=(\d{{1,15}})(?:,|$)", cells.get(column, ""))
    return float(found[1]) if found else 0.0


def _read_seconds(cells: Cells) -> float:
    found = re.fullmatch(r"(?:(\d{1,4})-)?(?:(\d\d):)?(\d\d):(\d\d)", cells.get("Elapsed", ""), re.ASCII)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
