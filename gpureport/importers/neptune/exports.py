"""Runs in Parquet files of neptune-exporter: rows of project, run, path, type, and a value in a column of its type.

Files are known by their columns, and which run a row is of by its cells: before November 2025 a file held many runs.

The exporter takes times of runs of Neptune 2 from a client that gives them in the zone of the machine it runs on, and
writes them unchanged, labelled as UTC. The time at which a run was made is not shifted, which is how it can be told.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.clock import fold_sizes, load_zone, to_utc
from gpureport.importers.neptune.hardware import Series
from gpureport.importers.neptune.stored import Stored, make_broken_run
from gpureport.importers.protocol.reject_reasons import NO_TIME
from gpureport.importers.row_order import measure_pace
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.redaction import redact_start
from gpureport.regular_files import check_regular_file

_KEYS = ["project_id", "run_id", "attribute_path", "attribute_type"]
_SERIES, _POINTS = "float_series", ("timestamp", "float_value", "step")
_SINGLE = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value"}
_SINGLE |= {"datetime": "datetime_value", "string_set": "string_set_value"}
_PART = re.compile(r"(?P<run>.*?)_?part_(?P<number>\d{1,18})\.parquet(?P<tmp>\.tmp)?")
_DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError, KeyError)
"""What reading a damaged file raises: names of columns need not be text, nor times have a date."""
_MICROSECONDS = pa.timestamp("us", "UTC")
_SHOWN = 120
"""Letters of why a file cannot be read that a message shows at most."""
_HOUR = 3_600_000_000
_QUARTER = _HOUR // 4
_NEAR = 120_000_000
"""How far a first sample may lie from a whole offset: monitoring begins with the run, give or take (pragmatic)."""
_LAG = 3
"""Intervals that may lie between the last sample before clocks are set back and the first after it (pragmatic)."""

Key = tuple[str, str]


def is_export_file(path: Path) -> bool:
    """Return whether a file is one of an export: by its columns, by its name where it is damaged."""
    if not path.name.endswith((".parquet", ".parquet.tmp")):
        return False
    try:
        with path.open("rb") as file:
            if file.read(4) not in {b"PAR1", b""}:
                return False
        return set(parquet.read_schema(path).names) >= set(_KEYS[:3])
    except _DAMAGE:
        return _PART.fullmatch(path.name) is not None


def find_exported_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs of the files of an export in a folder, those that cannot be read with the reason."""
    parts: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    found: dict[Key, Stored] = {}
    broken = []
    for path in files:
        match = _PART.fullmatch(path.name)
        name, number = (f"{path.parent}/{match['run']}", int(match["number"])) if match else (str(path), 0)
        try:
            check_regular_file(path, root=root)
        except OSError as error:
            broken.append(make_broken_run(Path(name).name, path, error, "copy it", "cannot_read"))
        else:
            if is_export_file(path):
                parts[name].append((number, path))
    for name, numbered in parts.items():
        faults, keys = list(_find_missing_parts(sorted(numbered))), set[Key]()
        for _, path in sorted(numbered):
            try:
                if path.suffix != ".tmp":
                    keys |= _survey(path, found)
            except SourceError as error:
                faults.append(error)
        for key in keys:
            found[key].fault = next(iter(faults), found[key].fault)
        if faults and not keys:
            broken.append(make_broken_run(Path(name).name, root, faults[0], "", ""))
    runs = [run for _, run in sorted(found.items())]
    for run in runs:
        run.load = partial(_load, run)
    _refuse_copies(runs)
    return [*runs, *broken]


def _refuse_copies(runs: Sequence[Stored]) -> None:
    """Add a fault to the runs that lie in several folders: one for all that lie in the same, which names them."""
    together: dict[tuple[str, ...], list[Stored]] = defaultdict(list)
    for run in runs:
        together[tuple(sorted({str(path.parent) for path in run.files}))].append(run)
    for folders, copied in together.items():
        if len(folders) > 1:
            what = (
                f"it holds runs that are in {', '.join(folders[:-1])} as well: {list_first([r.id for r in copied], 5)}"
            )
            fault = SourceError(folders[-1], what, "give one of the folders", code="run_in_two_folders")
            for run in copied:
                run.fault = fault


def _find_missing_parts(parts: Sequence[tuple[int, Path]]) -> Iterator[SourceError]:
    """Yield what is missing of a run: the exporter names parts when a run is done, the first part last."""
    left = [path for _, path in parts if path.suffix == ".tmp"]
    whole = [number for number, path in parts if path.suffix != ".tmp"]
    if left:
        what, hint = "the export of this run was interrupted", "export it again, or remove .tmp to read what is there"
        yield SourceError(str(left[0]), what, hint, code="export_interrupted")
    elif whole != list(range(len(whole))):
        missing = next(number for number in range(len(whole)) if number not in whole)
        what = f"part {missing} of this run is missing"
        yield SourceError(str(parts[0][1]), what, "copy all parts of the export", code="missing_part")


@contextmanager
def _name_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        hint = "change its permissions or copy it"
        raise SourceError(str(path), "no permission to read it", hint, code="no_permission") from error
    except _DAMAGE as error:
        reason = redact_start(str(error).partition("\n")[0], _SHOWN) or type(error).__name__
        what = f"the Parquet file is damaged ({reason})"
        raise SourceError(str(path), what, "copy or export it again", code="damaged_export") from error


def _read_groups(path: Path, wanted: Collection[str]) -> Iterator["pa.Table"]:
    """Yield some columns of each row group, texts that repeat as codes.

    The statistics of columns are left alone: where they contradict the schema, asking for them ends the process.
    """
    names = parquet.read_schema(path).names
    if missing := [name for name in (*_KEYS, *_POINTS) if name not in names]:
        what, hint = f"it lacks the column {missing[0]}", "export the run again, or leave the file out"
        raise SourceError(str(path), what, hint, code="no_such_column")
    file = parquet.ParquetFile(path, read_dictionary=_KEYS)
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, columns=[name for name in names if name in wanted])
        table.validate(full=True)
        yield table


def _read_texts(table: "pa.Table", name: str) -> tuple[list[str], IntArray]:
    """Return the texts of a column and the place of that of each row; null is empty text."""
    column: Any = table.column(name).combine_chunks()
    texts = [str(text or "") for text in column.dictionary.to_pylist()]
    return [*texts, ""], columns.integers(column.indices, null=len(texts))


def _survey(path: Path, found: dict[Key, Stored]) -> set[Key]:
    """Add what a file holds of each run, but for its points, to what is known of it; return the runs."""
    keys: set[Key] = set()
    with _name_damage(path):
        for table in _read_groups(path, {*_KEYS, *_SINGLE.values()}):
            texts, codes = zip(*(_read_texts(table, name) for name in _KEYS), strict=True)
            shape = [len(each) for each in texts]
            present, counts = np.unique(np.ravel_multi_index(codes, shape), return_counts=True)
            for *places, count in zip(*np.unravel_index(present, shape), counts.tolist(), strict=True):
                project, run, name, kind = (each[place] for each, place in zip(texts, places, strict=True))
                new = Stored(key=f"{project} {run}", id=run, project=project, exported=True)
                known = found.setdefault((project, run), new)
                if kind == _SERIES:
                    known.points[name] = known.points.get(name, 0) + count
                keys.add((project, run))
            _read_single_values(table, found)
    for key in keys:
        found[key].files.append(path)
    return keys


def _read_single_values(table: "pa.Table", found: dict[Key, Stored]) -> None:
    table = table.filter(pc.is_in(table.column("attribute_type").cast(pa.string()), pa.array([*_SINGLE])))
    if (place := table.schema.get_field_index("datetime_value")) >= 0:
        moments = table.column(place).cast(_MICROSECONDS, safe=False).cast(pa.int64())
        table = table.set_column(place, "datetime_value", moments)
    for row in table.to_pylist():
        run = found[row["project_id"] or "", row["run_id"] or ""]
        kind, path = row["attribute_type"], row["attribute_path"] or ""
        value = row.get(_SINGLE[kind])
        if kind == "string_set":
            run.tags = sorted(filter(None, value or ())) if path == "sys/tags" else run.tags
        elif kind != "datetime":
            run.scalars |= {} if value is None else {path: value}
        elif value is not None and FIRST_MICROSECOND <= value < LAST_MICROSECOND:
            run.moments[path] = value


def _load(run: Stored) -> Stored:
    """Return a run with its series."""
    parts: dict[str, list[Series]] = defaultdict(list)
    for path in run.files:
        with _name_damage(path):
            for table in _read_groups(path, {*_KEYS, *_POINTS}):
                for name, points in _split_series(table, run):
                    parts[name].append(points)
    series, timeless = {}, 0
    for name, each in parts.items():
        joined = Series(*(np.concatenate([getattr(one, part) for one in each]) for part in Series.__slots__))
        dated = (joined.times >= FIRST_MICROSECOND) & (joined.times < LAST_MICROSECOND)
        series[name] = joined.taken(dated)
        timeless += len(dated) - int(dated.sum())
    return replace(
        run,
        load=None,
        series=series,
        rejected=[Rejected(reason=NO_TIME, rows=timeless, first_line=None)] if timeless else [],
        state=" ".join(f"{path.name}:{path.stat().st_size}" for path in run.files),
        size=sum(path.stat().st_size for path in run.files),
    )


def _split_series(table: "pa.Table", run: Stored) -> Iterator[tuple[str, Series]]:
    """Yield the points of each series of a run; a time that is not there is -1."""
    own = np.ones(len(table), dtype=np.bool_)
    for name, wanted in zip(("project_id", "run_id", "attribute_type"), (run.project, run.id, _SERIES), strict=True):
        texts, codes = _read_texts(table, name)
        own &= np.array([text == wanted for text in texts])[codes]
    names, codes = _read_texts(table, "attribute_path")
    moments, values, steps = (table.column(name) for name in _POINTS)
    whole = Series(
        columns.integers(moments.cast(_MICROSECONDS, safe=False), null=-1),
        columns.floats(values.cast(pa.float64())),
        columns.floats(steps.cast(pa.float64())),
    )
    rows = np.flatnonzero(own)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    bounds = np.searchsorted(codes[rows], np.arange(len(names) + 1)).tolist()
    for place in np.flatnonzero(np.diff(bounds)).tolist():
        yield names[place], whole.taken(rows[bounds[place] : bounds[place + 1]])


def correct_local_times(run: Stored, processes: Sequence[Sequence[str]], tz: str | None) -> tuple[Stored, list[int]]:
    """Return a run with local times as UTC where a zone is given, and notes on them; and when clocks were set back.

    Args:
        run: a run whose times may be local.
        processes: paths of the hardware series of each process.
        tz: zone of the machine that exported.
    """
    zone, made = load_zone(tz) if tz else None, run.moments.get("sys/creation_time")
    ordered = {path: each.taken(np.argsort(each.steps, kind="stable")) for path, each in run.series.items()}
    # the series of each process with the most points has its ticks
    longest = [max((ordered[path].times for path in paths), key=len) for paths in processes]
    clocks = [(walls, *_read_clock(walls, zone, made)) for walls in longest if len(walls)]
    if not clocks:
        return run, []
    back = [int(right[later][0]) for _, right, later in clocks if later.any()]
    notes = list(run.notes)
    if back and zone is None:
        what = "clocks were set back by an hour within this run: later times are moved on"
        notes.append(f"{what}, --tz ZONE makes them UTC")
    off = 0 if made is None else min(int(right.min()) for _, right, _ in clocks) - made
    whole = round(off / _QUARTER) * _QUARTER
    if whole and abs(off - whole) < _NEAR and abs(whole) <= 14 * _HOUR:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        why = "so times are local time of the machine that exported, taken for UTC: give its zone with --tz"
        if tz:
            why = f"with --tz {tz} as well: the export was made in another zone, or monitoring began that late"
        notes.append(f"the first sample lies {hours} the time at which the run was made, {why}")
    run = replace(run, notes=notes)
    if zone is None and not back:
        return run, back
    # from then on, a time that no clock showed before is of the second hour
    before = min((int(walls[~later].max()) for walls, _, later in clocks if later.any()), default=LAST_MICROSECOND)
    walls, right = (np.concatenate([clock[part] for clock in clocks]) for part in (0, 1))
    order = np.argsort(walls, kind="stable")
    walls, right = walls[order], right[order]
    series = {}
    for path, each in ordered.items():
        times = each.times
        later = np.logical_or.accumulate(np.diff(times, prepend=times[:1]) < 0)
        first, last = np.searchsorted(walls, times), np.searchsorted(walls, times, side="right") - 1
        rows = np.where(later, last, np.minimum(first, len(walls) - 1))
        alone = _to_utc(times, zone, later | (times > before))
        series[path] = replace(each, times=np.where(walls[rows] == times, right[rows], alone))
    return replace(run, series=series), back


def _read_clock(walls: IntArray, zone: ZoneInfo | None, made: int | None) -> tuple[IntArray, BoolArray]:
    """Return the ticks of a process put right, and those after its clock was set back by an hour."""
    pace, steps = max(measure_pace(walls), 1), np.diff(walls, prepend=walls[:1])
    later = np.logical_or.accumulate((np.abs(steps + _HOUR - pace) <= _LAG * pace) & (steps < 0))
    right = _to_utc(walls, zone, later)
    if (
        zone is not None
        and made is not None
        and not later.any()
        and abs(right[0] + _HOUR - made) < abs(right[0] - made)
    ):
        # it began in the second of two equal hours, if in any
        right = _to_utc(walls, zone, np.logical_and.accumulate(fold_sizes(walls, zone) > 0))
    return right, later


def _to_utc(walls: IntArray, zone: ZoneInfo | None, later: BoolArray) -> IntArray:
    """Return local times as UTC; where no zone is known, with the hour put back that was taken."""
    return walls + _HOUR * later if zone is None else to_utc(walls, zone, second=later)
