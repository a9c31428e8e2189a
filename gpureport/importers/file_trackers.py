"""Trackers whose store is a single file.

Trackio has one SQLite database per project, in which each set of logged values is a row of JSON
text. The tables of `sacct -P` and CodeCarbon contain only means over each run.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport.columns import FloatArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.account import NOT_SELECTED, TORN
from gpureport.importers.clock import load_zone, parse_time, to_utc
from gpureport.importers.columns import extra_name
from gpureport.importers.headings import parse_number
from gpureport.importers.mlflow.stores import LocalStore, find_experiments
from gpureport.importers.protocol import ReadOptions, RunInfo, Selection, Tracked, Tracker, describe_devices
from gpureport.importers.read_only_sqlite import holds_tables, open_database
from gpureport.importers.source_text import RawFile, Text, head, head_text
from gpureport.importers.sources import list_files, list_in_folder, take_stream
from gpureport.importers.tracker_series import (
    Series,
    build_device_table,
    build_tracked,
    list_rejected,
    make_series,
    place_on_ticks,
)
from gpureport.names import BY_COLUMN
from gpureport.parsing import FIRST_MICROSECOND, MOST_GPUS, MOST_RECORD_BYTES
from gpureport.recording import HOST, Device
from gpureport.regular_files import walk_folder

_TABLES = ("metrics", "system_metrics")
_DEVICE = re.compile(r"(?:gpu/([0-9]{1,4})/|(?!gpu/))(.+)", re.DOTALL)
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
"""Selects each run with one row of hardware values, preferably for individual GPUs."""


def _read_numbers(text: Any) -> dict[str, float] | None:
    with suppress(ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        found, words = json.loads(text).items(), ("NaN", "Infinity", "-Infinity")
        return {key: float(one) for key, one in found if isinstance(one, int | float) or one in words}
    return None


class TrackioStore(LocalStore):
    def query(self, query: str, *values: str) -> list[Any]:
        """Return a query's rows, in which `RUN` is the run id (or name, before Trackio 0.24)."""
        with open_database(self.path, _TABLES, "Trackio") as connection:
            names = [name for _, name, *_ in connection.execute("pragma table_info(metrics)")]
            query = query.replace("RUN", "run_id" if "run_id" in names else "run_name")
            return connection.execute(query, values).fetchall()

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        find_experiments(self.where, {self.path.stem: self.path.stem}, experiment)
        return [
            RunInfo(
                id=str(key),
                key=f"{self.path.stem}/{key}",
                name=str(name),
                status="status not recorded",
                started=(parse_time(str(began)) or [None])[0],
                hardware=describe_devices({gpu[1] for gpu in map(_DEVICE.match, _read_numbers(system) or ()) if gpu}),
            )
            for key, name, began, system in self.query(_RUNS)
        ]

    def points(self, table: str, run_id: str, counts: Counter[str]) -> dict[str, Series]:
        step = "step" if table == "metrics" else "0"
        found = defaultdict[str, list[tuple[int, float, int]]](list)
        query = f"select timestamp, {step}, metrics from {table} where RUN = ?"  # noqa: S608 - names of our own
        for at, number, text in self.query(query, run_id):
            time, content = parse_time(str(at)), _read_numbers(text)
            if time is None or content is None or not isinstance(number, int):
                counts[TORN] += 1
                continue
            for name, value in content.items():
                found[name].append((time[0], value, number))
        return {name: make_series(sorted(own, key=itemgetter(0, 2))) for name, own in found.items()}

    def config(self, run_id: str) -> dict[str, Any]:
        with suppress(SourceError, ValueError, TypeError, RecursionError):
            for (text,) in self.query("select config from configs where RUN = ?", run_id):
                return dict(json.loads(text))
        return {}


def _build_devices(
    points: Mapping[str, Series], gpus: tuple[int, ...] | None, counts: Counter[str]
) -> dict[Device, pa.Table]:
    ticks, read = place_on_ticks([*points.values()])
    values: dict[int | None, dict[str, FloatArray]] = defaultdict(dict)
    for (key, own), row in zip(points.items(), read, strict=True):
        match = _DEVICE.fullmatch(key)
        gpu = int(match[1]) if match and match[1] else None
        if match is None or not (gpu is None or gpus is None or gpu in gpus):
            # sums and means over GPUs add no information
            counts[NOT_SELECTED if match else "noise"] += len(own.times)
            continue
        counts["kept"] += len(own.times)
        what = re.sub("^cpu/[0-9]+/", "busiest/", match[2])
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
            series[device] = build_device_table(device.id, ticks, known)
    return series


def _record(store: TrackioStore, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    counts: Counter[str] = Counter()
    series = _build_devices(store.points("system_metrics", info.id, counts), options.gpus, counts)
    metrics, config = store.points("metrics", info.id, counts), store.config(info.id)
    return build_tracked(
        f"trackio:{store.where}#{info.id}",
        series,
        metrics,
        name=info.name,
        quality=Quality(
            lines=counts.total(),
            rows_kept=counts["kept"],
            noise=counts["noise"],
            rejected=list_rejected({why: counts[why] for why in (TORN, NOT_SELECTED)}),
        ),
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


_TABLE = re.compile(r"(?:task_name,)?timestamp,project_name,run_id,|JobID\|.*TRESUsageIn")
_LONGEST = 1e9
Cells = Mapping[str, str]


class _Row(NamedTuple):
    """A run in a table. `start` is a time and whether it is UTC; `lacks` explains why metrics are missing."""

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
    def __init__(self, where: str, *_: object) -> None:
        super().__init__(take_stream(where) or Path(where), where)
        self.rows: dict[str, _Row] = {}
        for path in _find_tables(self.path) or [self.path]:
            for key, row in _read_table(path, where).items():
                # another table may contain what this one lacks
                self.rows[key] = self.rows.get(key, row) if row.lacks else row
        again = Counter(row.id for row in self.rows.values())
        for key, row in self.rows.items():
            if again[row.id] > 1 and row.start:
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


def _find_tables(path: Path) -> list[Path]:
    """Return a table, or the tables in a folder unless it also contains GPU logs."""
    folders = [folder for folder, *_ in walk_folder(path)]
    if any(log for folder in folders for log in list_in_folder(folder, "gpu")):
        return []
    files = sorted(file for folder in folders for file in list_files(folder)) or filter(Path.is_file, [path])
    return [file for file in files if _TABLE.match(head_text(head(RawFile(file), 4096)))]


def _read_table(path: Path, where: str) -> dict[str, _Row]:
    if not path.is_file() or path.stat().st_size > MOST_RECORD_BYTES:
        raise SourceError(
            where, f"no such file, or larger than {MOST_RECORD_BYTES >> 30} GiB", "check the path", code="cannot_read"
        )
    lines = [line for line in Text(RawFile(path)) if not line.isspace()]
    of_jobs = "".join(lines[:1]).startswith("JobID|")
    # sacct does not quote cells, but a job name may contain a quotation mark
    form: dict[str, Any] = {"delimiter": "|", "quoting": csv.QUOTE_NONE} if of_jobs else {}
    attempts, runs = Counter[str](), defaultdict[str, list[Cells]](list)
    try:
        for cells in csv.DictReader(lines, None, "", "", **form):
            run = cells["JobID"].partition(".")[0] if of_jobs else cells["run_id"]
            # a requeued job has separate rows for each attempt
            attempts[run] += of_jobs and run == cells["JobID"]
            runs[f"{run}@{attempts[run]}" if attempts[run] > 1 else run].append(cells)
        if of_jobs:
            return {f"{row.id} {row.start}": row for row in starmap(_read_job, runs.items())}
        return {run: _read_run(run, rows) for run, rows in runs.items()}
    except (csv.Error, KeyError) as error:
        raise SourceError(
            where, f"{path.name} is damaged, or not a table of this kind ({error})", "check it", code="cannot_read"
        ) from error


def _record_row(store: Table, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    row, locator = store.rows[info.key], f"accounting:{store.where}#{info.id}"
    if row.lacks:
        raise SourceError(locator, row.lacks, "choose another run; --list shows all runs", code="no_metrics")
    start, is_utc = row.start or (0, False)
    times = np.array([start, start + round(row.seconds * 1e6)])
    times = to_utc(times, load_zone(options.tz)) if options.tz and row.start and not is_utc else times
    means = {name: np.full(2, value) for name, value in row.means.items()}
    series = {
        Device(id=f"gpu:{n}", index=n, model=row.model): build_device_table(f"gpu:{n}", times, means)
        for n in range(row.gpus)
        if options.gpus is None or n in options.gpus
    }
    note = "The table contains one mean for the whole run, which is shown at the run's start and end."
    count = 2 * len(series)
    return build_tracked(
        locator,
        series,
        {},
        name=row.name,
        quality=Quality(lines=count, rows_kept=count, synthetic_time=row.start is None, notes=(note,)),
        throughput=selection.throughput,
        tags=tuple(row.tags.items()),
        state=row,
        timezone="UTC" if is_utc else None,
        # the table contains the duration of a run, which does not depend on samples
        interval=None,
    )


ACCOUNTING = Tracker(kind="accounting", title="accounting table", holds=_find_tables, open=Table, record=_record_row)


def _read_job(job: str, rows: Sequence[Cells]) -> _Row:
    """Return a Slurm job with the mean use of its GPUs.

    Slurm reports the use of a job step as the sum over its GPUs, averaged over its tasks; a batch script is one task.
    If Slurm cannot read a GPU, it reports 0 for both use and memory, which does not mean that the GPU was idle.
    """
    own, *steps = rows
    gpus, seconds, used, seen = int(_count(own, "AllocTRES", "gpu")), _read_seconds(own), 0.0, 0
    for step in (step for step in steps if not step["JobID"].endswith(".extern")):
        use, memory = (_count(step, "TRESUsageInAve", part) for part in ("gpuutil", "gpumem"))
        if use + memory > 0:
            tasks = _add([step], "NTasks") or (1 if step["JobID"].endswith(".batch") else np.nan)
            used += use / 100 * tasks * _read_seconds(step)
            seen = max(seen, int(_count(step, "AllocTRES", "gpu")) or gpus)
    mean = used / (gpus * seconds) if 0 < gpus <= min(seen, MOST_GPUS) and seconds else np.nan
    state = own.get("State", "").partition(" by ")[0]
    faults = {
        "still running": state in {"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "STOPPED"},
        "not started": not seconds,
        "without a GPU": not gpus,
        "without rows for its steps (run sacct without -X)": not steps,
        "without usage data for all its GPUs": not 0 <= mean / 1.01 <= 1,  # rounding; NaN is not either
    }
    lacks = next((fault for fault, holds in faults.items() if holds), "")
    means = {} if lacks else {"gpu_utilization_ratio": min(mean, 1.0)}
    tags = {BY_COLUMN[key.lower()].name: text for key, text in own.items() if text and key.lower() in BY_COLUMN}
    tags["job_state"], start = state, parse_time(own.get("Start", ""))
    model = re.search(r"gres/gpu:([^=,]+)=", own.get("AllocTRES", ""))
    name, status = f"{own.get('JobName') or 'job'}-{job}", state or "state not recorded"
    return _Row(job, name, start, seconds, gpus, model and model[1], means, tags, status, lacks)


def _read_run(run: str, rows: Sequence[Cells]) -> _Row:
    """Return a CodeCarbon run, whose rows are its tasks or running totals."""
    last, is_task = rows[-1:], "task_name" in rows[0]
    rows, own = rows if is_task else last, last[0]
    seconds, gpus = _add(rows, "duration"), int(_add(last, "gpu_count"))
    # energy includes the overhead of the data centre
    energy, memory = (_add(rows, name) / (_add(last, "pue") or 1.0) for name in ("gpu_energy", "ram_energy"))
    if not (1 <= gpus <= MOST_GPUS and 0 < seconds <= _LONGEST and 0 < energy <= _LONGEST):
        return _Row(run, run, lacks="without the energy of its GPUs" if gpus else "without a GPU")
    # each task restarts the duration, but not the energy; memory power is constant (within 10%)
    if not is_task and memory * 3.6e6 > 1.1 * seconds * _add(last, "ram_power") > 0:
        return _Row(run, run, lacks="with the duration of its last task only (give CodeCarbon's table of tasks)")
    use, means = _add(last, "gpu_utilization_percent") / 100, {"gpu_power_watts": energy * 3.6e6 / seconds / gpus}
    means |= {"gpu_utilization_ratio": use} if 0 < use <= 1 and not is_task else {}
    # a list of several models does not identify the model of one GPU
    model = re.fullmatch(r"\d+ x ((?:(?!\d x ).)+)", own.get("gpu_model", ""))
    project, end = own["project_name"] or "run", parse_time(own["timestamp"])
    units = {"cpu_energy": "kWh", "ram_energy": "kWh", "emissions": "kg CO2e"}
    tags = {name: f"{total:.9g} {unit}" for name, unit in units.items() if (total := _add(rows, name))}
    start = end and (max(end[0] - round(seconds * 1e6), FIRST_MICROSECOND), end[1])
    tags, name = {"project": project, **tags}, f"{project}-{run[:8]}"
    return _Row(run, name, start, seconds, gpus, model and model[1], means, tags)


def _add(rows: Iterable[Cells], name: str) -> float:
    return sum(parse_number(cells.get(name)) or 0.0 for cells in rows)


def _count(cells: Cells, column: str, name: str) -> float:
    return sum(map(float, re.findall(rf"(?:^|,)gres/{name}=(\d{{1,15}})(?:,|$)", cells.get(column, ""))))


def _read_seconds(cells: Cells) -> float:
    found = re.fullmatch(r"(?:(\d{1,4})-)?(?:(\d\d):)?(\d\d):(\d\d)", cells.get("Elapsed", ""), re.ASCII)
    return float(np.dot([86400, 3600, 60, 1], [int(part or 0) for part in found.groups()])) if found else 0.0
