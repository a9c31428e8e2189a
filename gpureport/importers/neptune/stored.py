"""Reads Neptune runs on disk: exports, `.neptune` folders (clients up to 1.x), and neptune-scale databases.

Before November 2025, an exported file contained many runs. For Neptune 2 runs, the exporter labels
its machine's local times as UTC, except for the creation time. The client's logs have one operation
per JSON line; the client's own reader would truncate them.
"""

import os
import re
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from gpureport import columns
from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.account import CUT_LAST_LINE, NO_TIME, TORN
from gpureport.importers.clock import fold_sizes, load_zone, to_utc
from gpureport.importers.protobuf import read_message
from gpureport.importers.read_only_sqlite import is_database, open_database, read_head, unreadable
from gpureport.importers.tracker_series import Series, is_dated, list_rejected, make_series
from gpureport.parsing import MOST_RECORD_BYTES, parse_json
from gpureport.redaction import redact_start
from gpureport.regular_files import check_regular_file, code_system_error, read_regular_file

Scalar = str | int | float | bool
Points = dict[str, list[tuple[int, float, float]]]
"""Time, value and step of each point, by path."""


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A run in a store, with series and single values by path; `load` adds its series.

    `paths` contains the paths of series (None if unknown), and `highest` the configured maxima.
    """

    key: str
    id: str
    load: "Callable[[], Stored] | None" = None
    series: dict[str, Series] = field(default_factory=dict)
    paths: set[str] | None = field(default_factory=set)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    tags: Sequence[str] = ()
    highest: dict[str, float] = field(default_factory=dict)
    project: str = ""
    started: int | None = None
    last: int | None = None
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    size: int = 0
    files: list[Path] = field(default_factory=list)
    fault: SourceError | None = None

    @property
    def name(self) -> str:
        name = str(self.scalars.get("sys/name", ""))
        return name if name not in {"", "Untitled"} else self.id

    def with_points(self, points: Mapping[str, Sequence[tuple[int, float, float]]]) -> "Stored":
        self.series |= {path: make_series(found) for path, found in points.items() if found}
        self.paths = {*self.series}
        return self


def make_broken_run(run_id: str, path: Path, error: OSError | SourceError) -> Stored:
    if isinstance(error, OSError):
        error = unreadable(error, path, getattr(error, "code", "cannot_read"))
    return Stored(key=f"broken {run_id}", id=run_id, fault=error)


# --- exports

_KEYS = ["project_id", "run_id", "attribute_path", "attribute_type"]
_SERIES, _POINTS = "float_series", ["timestamp", "float_value", "step"]
_SINGLE = {kind: f"{kind}_value" for kind in ("float", "int", "string", "bool", "datetime", "string_set")}
_PART = re.compile(r"(?P<run>.*?)_?part_(?P<number>\d{1,18})\.parquet(?:\.tmp)?")
_DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError, KeyError)
_HOUR = 3_600_000_000
_QUARTER, _NEAR = _HOUR // 4, 120_000_000
"""Unit of time zone offsets, and how far the first sample may be from a multiple of it."""
Found = dict[tuple[str, str], Stored]


def is_export_file(path: Path) -> bool:
    if not path.name.endswith((".parquet", ".parquet.tmp")):
        return False
    try:
        check_regular_file(path)
        return set(parquet.read_schema(path).names) >= set(_KEYS[:3])
    except _DAMAGE:
        return _PART.fullmatch(path.name) is not None


def find_exported_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs in an export's files. The exporter gives a run's first part its final name last."""
    parts: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    found: Found = {}
    broken = []
    for path in filter(is_export_file, files):
        match = _PART.fullmatch(path.name)
        name = f"{path.parent}/{match['run']}" if match else str(path)
        parts[name].append((int(match["number"]) if match else 0, path))
    for name, numbered in parts.items():
        keys, fault = set[tuple[str, str]](), None
        for place, (number, path) in enumerate(sorted(numbered)):
            try:
                if path.suffix == ".tmp":
                    hint = "export it again, or remove the .tmp suffix to read the incomplete file"
                    raise SourceError(str(path), "this export was interrupted", hint, code="export_interrupted")
                keys |= _survey(path, root, found)
                if number != place:
                    what = f"part {place} of this run is missing"
                    raise SourceError(str(path), what, "copy all parts of the export", code="missing_part")
            except SourceError as error:
                fault = fault or error
        for key in keys if fault else ():
            found[key].fault = fault
        if fault and not keys:
            run_id = re.sub("-[0-9a-f]{16}$", "", Path(name).name)
            broken.append(Stored(key=f"broken {name}", id=run_id, fault=fault))
    for run in found.values():
        run.load = partial(_load, run, root)
        if len(folders := sorted({str(path.parent) for path in run.files})) > 1:
            twice = f"it contains runs that are also in {', '.join(folders[:-1])}"
            run.fault = SourceError(folders[-1], twice, "give only one of the folders", code="run_in_two_folders")
    return [*(run for _, run in sorted(found.items())), *broken]


@contextmanager
def _open(path: Path, root: Path, names: Sequence[str]) -> Iterator[Iterator["pa.Table"]]:
    """Yield tables with the named columns, one per row group of a file, without their statistics.

    Statistics that contradict the schema crash the process.
    """

    def read(group: int) -> "pa.Table":
        table = file.read_row_group(group, columns=wanted)
        table.validate(full=True)
        return table.unify_dictionaries()

    try:
        check_regular_file(path, root=root)
        held = parquet.read_schema(path).names
        if missing := [name for name in (*_KEYS, *_POINTS) if name not in held]:
            raise SourceError(str(path), f"it has no {missing[0]} column", "export it again", code="no_such_column")
        file = parquet.ParquetFile(path, read_dictionary=_KEYS)
        wanted = [name for name in held if name in names]
        yield map(read, range(file.num_row_groups))
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise unreadable(error, path, code_system_error(error, "cannot_read")) from error
        reason = redact_start(str(error).partition("\n")[0], 120) or type(error).__name__
        raise SourceError(
            str(path), f"the Parquet file is damaged ({reason})", "copy or export it again", code="damaged_export"
        ) from error


def _survey(path: Path, root: Path, found: Found) -> set[tuple[str, str]]:
    keys: Found = {}
    with _open(path, root, [*_KEYS, *_SINGLE.values()]) as groups:
        for table in groups:
            is_single = pc.is_in(table.column("attribute_type").cast(pa.string()), pa.array([*_SINGLE]))
            others = table.filter(pc.invert(is_single)).select(_KEYS).group_by(_KEYS, use_threads=False).aggregate([])
            for row in (*others.to_pylist(), *table.filter(is_single).to_pylist()):
                project, run_id, name, kind = (str(row[key] or "") for key in _KEYS)
                new = Stored(key=f"{project} {run_id}", id=run_id, project=project)
                keys[project, run_id] = run = found.setdefault((project, run_id), new)
                value = row.get(_SINGLE.get(kind, ""))
                if kind == _SERIES and run.paths is not None:
                    run.paths.add(name)
                elif name == "sys/tags" and isinstance(value, list):
                    run.tags = sorted(filter(None, value))
                elif isinstance(value, str | int | float):
                    run.scalars[name] = value
                elif name == "sys/creation_time" and isinstance(value, datetime):
                    run.started = round(value.timestamp() * 1e6)
    for run in keys.values():
        run.files.append(path)
        run.size += path.stat().st_size
    return {*keys}


def _load(run: Stored, root: Path) -> Stored:
    parts = []
    for path in run.files:
        with _open(path, root, [*_KEYS, *_POINTS]) as groups:
            for table in groups:
                texts: Any = [pc.fill_null(table.column(name).cast(pa.string()), pa.scalar("")) for name in _KEYS]
                moments, values, steps = (table.column(name) for name in _POINTS)
                times = moments.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
                arrays = [texts[2].dictionary_encode(), times, values.cast(pa.float64()), steps.cast(pa.float64())]
                own: Any = zip((texts[0], texts[1], texts[3]), (run.project, run.id, _SERIES), strict=True)
                wanted: Any = [pc.equal(*each) for each in own]
                parts.append(pa.table(arrays, ["path", *Series._fields]).filter(reduce(pc.and_, wanted)))
    paths, times, values, steps = pa.concat_tables(parts).unify_dictionaries().columns
    points = Series(columns.integers(times, null=-1), columns.floats(values), columns.floats(steps))
    coded: Any = paths.combine_chunks()
    dated, codes = is_dated(points.times), columns.integers(coded.indices)
    series = {path: points.taken(dated & (codes == code)) for code, path in enumerate(coded.dictionary.to_pylist())}
    return replace(run, load=None, series=series, rejected=[*list_rejected({NO_TIME: int((~dated).sum())})])


def correct_local_times(run: Stored, hardware: Iterable[str], tz: str | None) -> bool:
    series, notes, left = dict(run.series), list(run.notes), 0
    for path, each in run.series.items() if tz else ():
        zone = load_zone(str(tz))
        once = fold_sizes(each.times, zone) == 0
        left += int((~once).sum())
        series[path] = each.taken(once)._replace(times=to_utc(each.times[once], zone))
    if left:
        notes.append(f"{left} points were left out, because they fall in the hour that {tz} repeats in autumn")
    firsts = [int(series[path].times.min()) for path in hardware if len(series[path].times)]
    off = min(firsts) - run.started if firsts and run.started is not None else 0
    whole = round(off / _QUARTER) * _QUARTER
    if is_off := 0 < abs(whole) <= 14 * _HOUR and abs(off - whole) < _NEAR:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        why = "so the export labels local times as UTC: give the exporting machine's time zone with --tz"
        if tz:
            why = f"even with --tz {tz}: the export was made in another time zone, or monitoring began late"
        notes.append(f"the first sample lies {hours} the creation of the run, {why}")
    run.series, run.notes, run.rejected = series, notes, [*run.rejected, *list_rejected({NO_TIME: left})]
    return is_off and not tz


# --- the client's folders, and neptune-scale databases

_LOG = re.compile(r"data-(\d{1,18})\.log", re.ASCII)
_DATABASE, _TABLES = "run_operations.sqlite3", ("metadata", "run_operations")
_MOST_COUNT = 2**62
_NO_OPERATION = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def is_operation_log(path: Path) -> bool:
    with suppress(OSError):
        return _LOG.fullmatch(path.name) is not None and read_head(path).strip()[:6] in {b'{"obj"', b""}
    return True


def is_scale_database(path: Path) -> bool:
    # an unreadable database is included, so that it is reported
    return path.name == _DATABASE and (is_database(path) or not os.access(path, os.R_OK))


def find_local_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    # each process of a run wrote to a separate folder
    found: dict[str, Stored] = {}
    points: dict[str, Points] = defaultdict(lambda: defaultdict(list))
    for folder in sorted({path.parent for path in files if _LOG.fullmatch(path.name)}):
        said: dict[str, str] = {}
        with suppress(OSError, ValueError, RecursionError, AttributeError):
            about = parse_json(read_regular_file(folder / "metadata.json", root=root))
            said = {key: text for key, text in about.items() if isinstance(text, str)}
        # names are run__ID__PROCESS__LETTERS, or run__ID or ID with older clients
        named = folder.name.split("__")
        run_id = said.get("containerId") or named[min(1, len(named) - 1)]
        if (said.get("containerType", "").lower() or (named[0] if len(named) > 1 else "run")) != "run":
            continue
        mode = said.get("mode") or ("async" if "async" in folder.parts else "offline")
        run = found.setdefault(run_id, Stored(key=f"local {run_id}", id=run_id, scalars={"sys/state": mode}))
        try:
            for name, each in _read_folder(run, folder, root).items():
                points[run_id][name] += each
        except (OSError, SourceError) as error:
            found[run_id] = make_broken_run(run_id, folder, error)
    return [run.with_points(points[run_id]) for run_id, run in found.items()]


def _read_folder(run: Stored, folder: Path, root: Path) -> Points:
    points: Points = defaultdict(list)
    logs = sorted((int(match[1]), path) for path in folder.iterdir() if (match := _LOG.fullmatch(path.name)))
    newest = put = 0
    for _, path in logs:
        data = read_regular_file(path, root=root, most=MOST_RECORD_BYTES)
        run.size += len(data)
        lines, torn = data.rstrip(b"\r\n\0 ").split(b"\n"), list[int]()
        # a forked process writes buffered data a second time
        for line, number in {line: number for number, line in enumerate(lines, 1) if line}.items():
            try:
                newest = max(newest, _apply(run, points, parse_json(line)))
            except _NO_OPERATION:
                torn.append(number)
        if torn[:1] == [1] and len(lines) > 1:
            raise SourceError(str(path), "line 1 is not an operation", "copy the folder again", code="damaged_run")
        if torn:
            # a killed process may leave half a line, but only at the end
            reason = CUT_LAST_LINE if torn == [len(lines)] else TORN
            run.rejected.append(Rejected(reason=reason, rows=len(torn), first_line=torn[0]))
    if logs[0][0] > 1:
        run.notes.append(f"the log begins with operation {logs[0][0]}: earlier operations were uploaded and deleted")
    with suppress(OSError, ValueError):
        put = int(read_regular_file(folder / "last_put_version", root=root).decode().strip() or "0")
    if put > newest:
        lost = f"{put - newest} operations were lost when the process was killed"
        run.notes.append(f"{lost}: {put} were issued, but only {newest} are in the log")
    return points


def _apply(run: Stored, points: Points, entry: Mapping[str, Any]) -> int:
    operation, version, at = entry["obj"], int(entry["version"]), entry.get("at")
    kind, path, value = operation["type"], "/".join(operation.get("path", ())), operation.get("value")
    if not 0 <= version < _MOST_COUNT:
        raise ValueError("a version is not a count")
    if kind == "LogFloats":
        for each in operation["values"]:
            time, step = float(each["ts"]) * 1e6, each.get("step")
            if not is_dated(time) or not abs(step or 0) < _MOST_COUNT:
                raise ValueError("a point has no time, or no step")
            points[path].append((round(time), float(each["value"]), float("nan") if step is None else float(step)))
    elif kind in {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}:
        if not isinstance(value, str | int | float):
            raise TypeError("a value is neither text nor a number")
        run.scalars[path] = value
    elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
        run.highest[path] = float(operation["max"])
    elif kind in {"ClearFloatLog", "DeleteAttribute"}:
        points.pop(path, None)
        run.scalars.pop(path, None)
    elif path == "sys/tags" and kind in {"AddStrings", "RemoveStrings"}:
        given = set(map(str, operation["values"]))
        run.tags = sorted({*run.tags} | given if kind == "AddStrings" else {*run.tags} - given)
    if isinstance(at, int | float) and is_dated(at * 1_000_000):
        run.last = max(round(at * 1e6), run.last or 0)
        run.started = round(at * 1e6) if run.started is None else run.started
    return version


def find_scale_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    found = []
    for path in (path for path in files if path.name == _DATABASE):
        try:
            check_regular_file(path, root=root)
            with open_database(path, _TABLES, "neptune-scale", "not_a_scale_database") as connection:
                found.append(_read_database(connection, path.stat().st_size))
        except (OSError, SourceError) as error:
            found.append(make_broken_run(path.parent.name, path, error))
    return found


def _read_database(connection: sqlite3.Connection, size: int) -> Stored:
    version, project, run_id = map(str, connection.execute("select version, project, run_id from metadata").fetchone())
    run = Stored(key=f"{project} {run_id}", id=run_id, project=project, size=size)
    points: Points = defaultdict(list)
    operations = "select operation_type, operation from run_operations order by sequence_id"
    for kind, message in connection.execute(operations):
        parts = read_message(message)
        # kind 1 is the creation of a run, and kind 0 a snapshot
        if kind == 1:
            run.started = _read_moment(parts[3][-1])
            run.scalars |= {"sys/state": "local", "sys/name": b"".join(parts[5]).decode(errors="replace")}
        elif kind == 0:
            # field 1 is the step, 2 the time, 4 an assigned value, and 8 an appended value
            moment, step = _read_moment(parts[2][-1]), float("nan")
            for each in map(read_message, parts[1]):
                step = sum(each[1]) + sum(each[2]) / 1e6
            run.last = max(run.last or 0, moment)
            run.scalars |= _read_entries(parts[4])
            for name, value in _read_entries(parts[8]).items():
                if not isinstance(value, bool | str):
                    points[name].append((moment, float(value), step))
    if version not in {"v3", "v4", "v5"}:
        run.notes.append(f"the database has version {version}, newer than any known version")
    return run.with_points(points)


def _read_entries(entries: Iterable[bytes]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for entry in map(read_message, entries):
        value = read_message(entry[2][-1])
        # field 1 is a float, 3 a signed integer, 5 a boolean, and 6 a string
        values: list[Scalar] = [struct.unpack("<d", each)[0] for each in value[1]]
        values += [each - 2**64 * (each >= 2**63) for each in value[3]] + [each != 0 for each in value[5]]
        values += [each.decode(errors="replace") for each in value[6]]
        if values:
            found[entry[1][-1].decode(errors="replace")] = values[-1]
    return found


def _read_moment(message: bytes) -> int:
    # field 1 contains seconds, and 2 nanoseconds
    time = read_message(message)
    moment = int(sum(time[1]) * 1_000_000 + sum(time[2]) // 1000)
    if not is_dated(moment):
        raise ValueError("an operation has an impossible time")
    return moment
