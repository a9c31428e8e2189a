"""Runs in Parquet files of neptune-exporter: rows of project, run, path, type, and a value in its type's column.

Columns identify files, and cells a row's run: before November 2025 a file held many runs.

For runs of Neptune 2, the exporter gets times in the zone of its machine from the client, and writes them
unchanged, labelled as UTC. A run's creation time is not shifted, which reveals it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.clock import fold_sizes, load_zone, to_utc
from gpureport.importers.neptune.hardware import Stored
from gpureport.importers.protocol.reject_reasons import NO_TIME
from gpureport.importers.read_only_sqlite import unreadable
from gpureport.importers.tracker_series import Series, is_dated, list_rejected
from gpureport.redaction import redact_start
from gpureport.regular_files import check_regular_file, code_system_error

_KEYS = ["project_id", "run_id", "attribute_path", "attribute_type"]
_SERIES, _POINTS = "float_series", ["timestamp", "float_value", "step"]
_SINGLE = {kind: f"{kind}_value" for kind in ("float", "int", "string", "bool", "datetime", "string_set")}
_PART = re.compile(r"(?P<run>.*?)_?part_(?P<number>\d{1,18})\.parquet(?P<tmp>\.tmp)?")
_HASH = re.compile(r"-[0-9a-f]{16}$")
_DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError, KeyError)
"""What reading a damaged file raises: names of columns need not be text, nor times have a date."""
_SHOWN = 120
"""Letters of why a file cannot be read that a message shows at most."""
_HOUR = 3_600_000_000
_QUARTER, _NEAR = _HOUR // 4, 120_000_000
"""How far a first sample may lie from a whole offset: monitoring begins with the run, give or take (pragmatic)."""

Found = dict[tuple[str, str], Stored]


def is_export_file(path: Path) -> bool:
    """Return whether a file is of an export: by its columns, or by name if damaged."""
    if not path.name.endswith((".parquet", ".parquet.tmp")):
        return False
    try:
        check_regular_file(path)
        return set(parquet.read_schema(path).names) >= set(_KEYS[:3])
    except _DAMAGE:
        return _PART.fullmatch(path.name) is not None


def find_exported_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs of an export's files in a folder, unreadable ones with the reason.

    The exporter names a run's parts when it is done, the first one last.
    """
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
                    hint = "export it again, or remove .tmp to read what is there"
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
            broken.append(Stored(key=f"broken {name}", id=_HASH.sub("", Path(name).name), fault=fault))
    for run in found.values():
        run.load = partial(_load, run, root)
        if len(folders := sorted({str(path.parent) for path in run.files})) > 1:
            twice = f"it holds runs that are in {', '.join(folders[:-1])} as well"
            run.fault = SourceError(folders[-1], twice, "give one of the folders", code="run_in_two_folders")
    return [*(run for _, run in sorted(found.items())), *broken]


@contextmanager
def _open(path: Path, root: Path, names: Sequence[str]) -> Iterator[Iterator["pa.Table"]]:
    """Give some columns of the parts of a file, repeating texts as codes; damage is a `SourceError`.

    Column statistics are left alone: reading any that contradict the schema ends the process.
    """
    try:
        check_regular_file(path, root=root)
        held = parquet.read_schema(path).names
        if missing := [name for name in (*_KEYS, *_POINTS) if name not in held]:
            what, hint = f"it has no column {missing[0]}", "export the run again, or leave out the file"
            raise SourceError(str(path), what, hint, code="no_such_column")
        file = parquet.ParquetFile(path, read_dictionary=_KEYS)

        def read_groups() -> Iterator["pa.Table"]:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number, columns=[name for name in held if name in names])
                table.validate(full=True)
                yield table.unify_dictionaries()

        yield read_groups()
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise unreadable(error, path, code_system_error(error, "cannot_read")) from error
        reason = redact_start(str(error).partition("\n")[0], _SHOWN) or type(error).__name__
        what = f"the Parquet file is damaged ({reason})"
        raise SourceError(str(path), what, "copy or export it again", code="damaged_export") from error


def _survey(path: Path, root: Path, found: Found) -> set[tuple[str, str]]:
    """Add a file's content of each run, without points, to what is known of it; return the runs."""
    keys: Found = {}
    with _open(path, root, [*_KEYS, *_SINGLE.values()]) as groups:
        for table in groups:
            for row in table.select(_KEYS).group_by(_KEYS, use_threads=False).aggregate([]).to_pylist():
                project, run_id, name, kind = (str(row[key] or "") for key in _KEYS)
                new = Stored(key=f"{project} {run_id}", id=run_id, project=project)
                keys[project, run_id] = run = found.setdefault((project, run_id), new)
                if kind == _SERIES and run.paths is not None:
                    run.paths.add(name)
            is_single = pc.is_in(table.column("attribute_type").cast(pa.string()), pa.array([*_SINGLE]))
            for row in table.filter(is_single).to_pylist():
                run = keys[row["project_id"] or "", row["run_id"] or ""]
                name, value = row["attribute_path"] or "", row.get(_SINGLE[row["attribute_type"]])
                if name == "sys/tags" and isinstance(value, list):
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
                texts: list[Any] = [pc.fill_null(table.column(name).cast(pa.string()), pa.scalar("")) for name in _KEYS]
                times, values, steps = (table.column(name) for name in _POINTS)
                arrays: Any = {
                    "path": texts[2].dictionary_encode(),
                    "times": times.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64()),
                    "values": values.cast(pa.float64()),
                    "steps": steps.cast(pa.float64()),
                }
                own = zip((run.project, run.id, _SERIES), (texts[0], texts[1], texts[3]), strict=True)
                wanted: Any = [pc.equal(text, pa.scalar(each)) for each, text in own]
                parts.append(pa.table(arrays).filter(reduce(pc.and_, wanted)))
    table = pa.concat_tables(parts).unify_dictionaries()
    names: Any = table.column("path").combine_chunks()
    times, values, steps = (table.column(name) for name in Series._fields)
    points = Series(columns.integers(times, null=-1), columns.floats(values), columns.floats(steps))
    dated: Any = is_dated(points.times)
    codes, timeless = columns.integers(names.indices), int((~dated).sum())
    series = {path: points.taken(dated & (codes == code)) for code, path in enumerate(names.dictionary.to_pylist())}
    return replace(run, load=None, series=series, rejected=[*list_rejected({NO_TIME: timeless})])


def correct_local_times(run: Stored, hardware: Iterable[str], tz: str | None) -> Stored:
    """Return a run of local times with UTC times where a zone is given, and notes on them.

    Samples in the zone's doubled hour are left out, as they are ambiguous.
    """
    series, notes, left = dict(run.series), list(run.notes), 0
    for path, each in run.series.items() if tz else ():
        zone = load_zone(str(tz))
        once = fold_sizes(each.times, zone) == 0
        left += int((~once).sum())
        series[path] = each.taken(once)._replace(times=to_utc(each.times[once], zone))
    if left:
        notes.append(f"{left} points are left out, of an hour that {tz} has twice in autumn")
    firsts = [int(series[path].times.min()) for path in hardware if len(series[path].times)]
    off = min(firsts) - run.started if firsts and run.started is not None else 0
    if (whole := round(off / _QUARTER) * _QUARTER) and abs(off - whole) < _NEAR and abs(whole) <= 14 * _HOUR:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        why = "so times are local time of the machine that exported, taken for UTC: give its zone with --tz"
        if tz:
            why = f"with --tz {tz} as well: the export was made in another zone, or monitoring began that late"
        notes.append(f"the first sample lies {hours} the time at which the run was made, {why}")
    return replace(run, series=series, notes=notes, rejected=[*run.rejected, *list_rejected({NO_TIME: left})])
