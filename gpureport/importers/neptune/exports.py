"""Runs in Parquet files of neptune-exporter: rows of project, run, path, type, and a value in a column of its type.

Files are known by their columns, and which run a row is of by its cells: before November 2025 a file held many runs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import STEP_NOT_RECORDED, Series
from gpureport.importers.neptune.stored import Content, Scalar, StoredRun
from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.reject_reasons import NO_TIME
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.redaction import redact_start
from gpureport.regular_files import UnsafeFileError, check_regular_file, walk_folder

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = ["project_id", "run_id", "attribute_path", "attribute_type"]
_SERIES = "float_series"
_NO_SINGLE_VALUES = {_SERIES, "string_series", "histogram_series", "file_series", "file", "file_set", "artifact"}
_VALUES = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value"}
_MOMENT, _TAGS = "datetime_value", "string_set_value"
_PART = re.compile(r"(?P<run>.*?)_?part_(?P<number>\d{1,18})\.parquet(?P<tmp>\.tmp)?")
_REGISTRY = {"models", "model_versions"}
"""Folders of the model registry, which holds no runs."""
_DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError)
"""What reading a damaged file raises: names of columns need not be text, nor times have a date."""
_AGAIN = "export the run again, or leave the file out"
_MAGIC = b"PAR1"
_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
_SHOWN, _NAMED = 120, 5
"""Letters of why a file cannot be read, and runs, that a message shows at most."""

Key = tuple[str, str]


class _Part(NamedTuple):
    """A file of an export: the run and number that its name says, if any, and whether the exporter had finished it."""

    path: Path
    run: str
    number: int | None
    written: bool


@dataclass(slots=True)
class _Rows:
    """Where rows of a run lie: the row groups of each file, and whether they hold single values; and faults."""

    points: Counter[str] = field(default_factory=Counter)
    groups: dict[Path, dict[int, bool]] = field(default_factory=lambda: defaultdict(dict))
    faults: list[SourceError] = field(default_factory=list)


def is_export_file(path: Path) -> bool:
    """Return whether a file is one of an export: by its columns, by its name where it is damaged."""
    if not path.name.endswith((".parquet", ".parquet.tmp")):
        return False
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) not in {_MAGIC, b""}:
                return False
        return set(parquet.read_schema(path).names) >= set(_KINDS[:3])
    except _DAMAGE:
        return _PART.fullmatch(path.name) is not None


def find_exported_runs(source: Path) -> list[StoredRun]:
    """Return the runs of an export, those that cannot be read with the reason."""
    named: dict[str, list[_Part]] = defaultdict(list)
    rows: dict[Key, _Rows] = defaultdict(_Rows)
    broken = []
    for part in _list_parts(source):
        try:
            check_regular_file(part.path, root=source if source.is_dir() else source.parent)
        except UnsafeFileError as error:
            fault = SourceError(str(part.path), str(error.strerror), error.hint, code="not_a_regular_file")
            broken.append(_broken(Path(part.run).name or part.path.name, fault))
            continue
        if is_export_file(part.path):
            named[part.run or str(part.path)].append(part)
    for stem, parts in named.items():
        faults = list(_missing_parts(parts))
        keys: set[Key] = set()
        for part in parts:
            if part.written:
                try:
                    keys |= _survey(part.path, rows)
                except SourceError as error:
                    faults.append(error)
        for key in keys:
            rows[key].faults += faults
        if faults and not keys:
            broken.append(_broken(Path(stem).name or stem, faults[0]))
    _refuse_copies(rows)
    return [*(_make_run(key, rows[key]) for key in sorted(rows)), *broken]


def _broken(run_id: str, fault: SourceError) -> StoredRun:
    return StoredRun(key=f"broken {run_id}", id=run_id, fault=fault)


def _list_parts(source: Path) -> list[_Part]:
    """Return the files of an export in a folder and below, or the one that is given, by name and number."""
    files = [source] if source.is_file() else []
    for place, folders, names in walk_folder(source) if not files else ():
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _REGISTRY)
        files += [place / name for name in sorted(names) if name.endswith((".parquet", ".parquet.tmp"))]
    parts = []
    for path in files:
        match, written = _PART.fullmatch(path.name), not path.name.endswith(".tmp")
        run, number = (f"{path.parent}/{match['run']}", int(match["number"])) if match else ("", None)
        parts.append(_Part(path=path, run=run, number=number, written=written))
    return sorted(parts, key=lambda part: (part.run, part.number or 0, str(part.path)))


def _missing_parts(parts: Sequence[_Part]) -> Iterator[SourceError]:
    """Yield what is missing of a run: the exporter names parts when a run is done, the first part last."""
    numbered = [part for part in parts if part.number is not None]
    left = [part.path.name for part in numbered if not part.written]
    whole = {part.number for part in numbered if part.written}
    missing = next(number for number in range(len(whole) + 1) if number not in whole)
    if left:
        what = f"the export of this run was interrupted, {left[0]} was left"
        hint = "export it again, or remove .tmp from the name to read what is there"
        yield SourceError(str(numbered[0].path), what, hint, code="export_interrupted")
    elif missing < len(whole):
        what = f"part {missing} of this run is missing"
        yield SourceError(str(numbered[0].path), what, "copy all parts of the export", code="missing_part")


def _refuse_copies(rows: Mapping[Key, _Rows]) -> None:
    """Add a fault to the runs that lie in several folders: one for all that lie in the same, which names them."""
    copies: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key in sorted(rows):
        folders = tuple(sorted({str(path.parent) for path in rows[key].groups}))
        copies[folders].append(key)
    for folders, keys in copies.items():
        if len(folders) > 1:
            names = list_first([run for _, run in keys], _NAMED)
            what = f"it holds runs that are in {', '.join(folders[:-1])} as well: {names}"
            fault = SourceError(folders[-1], what, "give one of the folders", code="run_in_two_folders")
            for key in keys:
                rows[key].faults.append(fault)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind.value_type if isinstance(kind, pa.DictionaryType) else kind)


_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    **dict.fromkeys(_KINDS, _is_text),
    "step": lambda _: True,
    "timestamp": pa.types.is_timestamp,
    "float_value": pa.types.is_floating,
}
"""Columns without which nothing can be read, and what those must be that are computed with."""


def _open(path: Path) -> parquet.ParquetFile:
    """Return a file of an export, texts that repeat as codes.

    Raises:
        SourceError: when it is damaged, or lacks columns.
    """
    try:
        file = parquet.ParquetFile(path, read_dictionary=_KINDS)
        schema = file.schema_arrow
    except PermissionError as error:
        hint = "change its permissions or copy it"
        raise SourceError(str(path), "no permission to read it", hint, code="no_permission") from error
    except KeyError as error:
        raise _lack_error(path, error.args[0].decode()) from error
    except _DAMAGE as error:
        raise _damaged_error(path, error) from error
    for name, fits in _TYPES.items():
        if name not in schema.names:
            raise _lack_error(path, name)
        if not fits(schema.field(name).type):
            what = f"its column {name} is of type {schema.field(name).type}"
            raise SourceError(str(path), what, _AGAIN, code="wrong_column_type")
    return file


def _lack_error(path: Path, name: str) -> SourceError:
    return SourceError(str(path), f"it lacks the column {name}", _AGAIN, code="no_such_column")


def _damaged_error(path: Path, error: Exception) -> SourceError:
    reason = redact_start(str(error).splitlines()[0], _SHOWN) if str(error) else type(error).__name__
    what = f"the Parquet file is damaged ({reason})"
    return SourceError(str(path), what, "copy or export it again", code="damaged_export")


def _read_groups(path: Path, names: Collection[str], numbers: Iterable[int] | None = None) -> Iterator["pa.Table"]:
    """Yield those of the columns that a file has, row group by row group.

    The statistics of columns are left alone: where they contradict the schema, asking for them ends the process.

    Raises:
        SourceError: when they are damaged, a text in them as well.
    """
    file = _open(path)
    held = [name for name in file.schema_arrow.names if name in names]
    try:
        for number in range(file.num_row_groups) if numbers is None else numbers:
            table = file.read_row_group(number, columns=held)
            table.validate(full=True)
            yield table
    except _DAMAGE as error:
        raise _damaged_error(path, error) from error


def _pairs(table: "pa.Table", one: str, other: str) -> tuple[list[tuple[str, str]], columns.IntArray]:
    """Return the pairs of texts in two columns, and the place of that of each row; null is empty text."""
    (texts, code), (others, other_code) = _texts(table, one), _texts(table, other)
    present, place = np.unique(code * len(others) + other_code, return_inverse=True)
    return [(texts[each // len(others)], others[each % len(others)]) for each in present.tolist()], place


def _texts(table: "pa.Table", name: str) -> tuple[list[str], columns.IntArray]:
    column: Any = table.column(name).combine_chunks()
    texts = [str(text or "") for text in column.dictionary.to_pylist()]
    return [*texts, ""], columns.integers(column.indices, null=len(texts))


def _survey(path: Path, rows: dict[Key, _Rows]) -> set[Key]:
    """Add where the rows of each run lie in a file; return the runs."""
    found: set[Key] = set()
    for number, table in enumerate(_read_groups(path, _KINDS)):
        (keys, run), (attributes, attribute) = _pairs(table, *_KINDS[:2]), _pairs(table, *_KINDS[2:])
        present, counts = np.unique(run * max(len(attributes), 1) + attribute, return_counts=True)
        for place, count in zip(present.tolist(), counts.tolist(), strict=True):
            key, (name, kind) = keys[place // len(attributes)], attributes[place % len(attributes)]
            groups = rows[key].groups[path]
            groups[number] = groups.get(number, False) or kind not in _NO_SINGLE_VALUES
            if kind == _SERIES:
                rows[key].points[name] += count
            found.add(key)
    return found


def _make_run(key: Key, rows: _Rows) -> StoredRun:
    scalars: dict[str, Scalar] = {}
    moments: dict[str, int] = {}
    tags: tuple[str, ...] = ()
    try:
        for row in _single_values(key, rows):
            kind, path = row["attribute_type"], row["attribute_path"] or ""
            value = row.get(_VALUES.get(kind, ""))
            if value is not None:
                scalars[path] = value
            elif kind == "datetime" and row.get(_MOMENT) is not None:
                moments[path] = (row[_MOMENT] - EPOCH) // timedelta(microseconds=1)
            elif kind == "string_set" and path == "sys/tags":
                tags = tuple(sorted(filter(None, row.get(_TAGS) or ())))
    except SourceError as error:
        rows.faults.append(error)
    project, run_id = key
    return StoredRun(
        key=f"{project} {run_id}",
        id=run_id,
        scalars=scalars,
        moments=moments,
        points=rows.points,
        project=project,
        fault=next(iter(rows.faults), None),
        read=lambda: [_read_content(key, rows, scalars, moments, tags)],
    )


def _single_values(key: Key, rows: _Rows) -> Iterator[Mapping[str, Any]]:
    wanted = {*_KINDS, *_VALUES.values(), _MOMENT, _TAGS}
    for path, groups in rows.groups.items():
        for table in _read_groups(path, wanted, [number for number, holds in groups.items() if holds]):
            attributes, code = _pairs(table, *_KINDS[2:])
            single = np.array([kind not in _NO_SINGLE_VALUES for _, kind in attributes])[code] & _rows_of(table, key)
            try:
                # row by row in stretches: pyarrow's own selection takes long to be loaded
                chosen = np.flatnonzero(single)
                for some in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1):
                    yield from table.slice(int(some[0]) if len(some) else 0, len(some)).to_pylist()
            except _DAMAGE as error:
                raise _damaged_error(path, error) from error


def _rows_of(table: "pa.Table", key: Key) -> columns.BoolArray:
    keys, code = _pairs(table, *_KINDS[:2])
    own: columns.BoolArray = np.array([each == key for each in keys])[code]
    return own


def _read_content(
    key: Key, rows: _Rows, scalars: Mapping[str, Scalar], moments: Mapping[str, int], tags: tuple[str, ...]
) -> Content:
    parts: dict[str, list[Series]] = defaultdict(list)
    timeless = 0
    for path, numbers in rows.groups.items():
        for table in _read_groups(path, [*_KINDS, "step", "timestamp", "float_value"], numbers):
            attributes, code = _pairs(table, *_KINDS[2:])
            own = np.array([kind == _SERIES for _, kind in attributes])[code] & _rows_of(table, key)
            timed = np.flatnonzero(own & columns.valid(table.column("timestamp")))
            timeless += int(own.sum()) - len(timed)
            order = timed[np.argsort(code[timed], kind="stable")]
            bounds = np.searchsorted(code[order], np.arange(len(attributes) + 1)).tolist()
            whole = Series(_times(table), columns.floats(table.column("float_value")), _steps(table))
            for (name, _), start, end in zip(attributes, bounds, bounds[1:], strict=False):
                if end > start:
                    parts[name].append(whole.taken(order[start:end]))
    series = {}
    for name, found in parts.items():
        joined = Series(
            *(np.concatenate([getattr(each, part) for each in found]) for part in ("times", "values", "steps"))
        )
        dated = (joined.times >= FIRST_MICROSECOND) & (joined.times < LAST_MICROSECOND)
        series[name] = joined if dated.all() else joined.taken(dated)
        timeless += len(dated) - int(dated.sum())
    return Content(
        series=series,
        scalars=scalars,
        moments=moments,
        tags=tags,
        project=key[0],
        exported=key[1],
        rejected=(Rejected(reason=NO_TIME, rows=timeless, first_line=None),) if timeless else (),
        state=" ".join(f"{path.name}:{path.stat().st_size}" for path in rows.groups),
        size=sum(path.stat().st_size for path in rows.groups),
    )


def _times(table: "pa.Table") -> columns.IntArray:
    column = table.column("timestamp")
    factor = _MICROSECONDS.get(getattr(column.type, "unit", "ms"))
    return columns.integers(column) * factor if factor else columns.integers(column) // 1000


def _steps(table: "pa.Table") -> columns.IntArray:
    """Return the steps of rows in millionths, which is what the decimals of the exporter count."""
    column: Any = table.column("step").combine_chunks()
    if not pa.types.is_decimal128(column.type):
        return np.full(len(table), STEP_NOT_RECORDED, dtype=np.int64)
    # 16 bytes a decimal, the lower half first
    low = np.frombuffer(column.buffers()[1] or b"", dtype=np.int64)[2 * column.offset :: 2][: len(column)]
    return np.where(columns.valid(column), low, STEP_NOT_RECORDED)
