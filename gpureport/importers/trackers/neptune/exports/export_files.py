"""The Parquet files of neptune-exporter: found by their columns, and whether those of a run are complete."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.redaction import redact_start
from gpureport.regular_files import UnsafeFileError, check_regular_file, walk_folder

SIGNATURE_COLUMNS = {"project_id", "run_id", "attribute_path"}
"""Columns by which a file is known as one of the exporter's."""
REQUIRED_COLUMNS = (*sorted(SIGNATURE_COLUMNS), "attribute_type", "step", "timestamp", "float_value")
"""Columns without which nothing can be read."""
_PART = re.compile(r"(?P<run>.*?)_?part_(?P<number>\d+)\.parquet(?P<tmp>\.tmp)?")
_REGISTRY = {"models", "model_versions"}
"""Folders of the model registry, which holds no runs."""
_MAGIC = b"PAR1"
_SHOWN = 120
"""Letters of why a file cannot be read that a message shows."""
DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError)
"""What reading a damaged file raises: a name of a column in it need not be text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file of an export.

    Attributes:
        path: the file.
        run: what its name says of its run, with the folder; empty for a name of another form.
        number: which part of the run it is; None for a name of another form.
        written: whether the exporter had finished with it.
    """

    path: Path
    run: str
    number: int | None
    written: bool


def list_parts(source: Path) -> list[Part]:
    """Return the files of an export in a folder and below, or the one that is given, by name and number."""
    files = [source] if source.is_file() else list(_files(source))
    found = [_parse_part(path) for path in files]
    return sorted(found, key=lambda part: (part.run, part.number or 0, str(part.path)))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in walk_folder(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _REGISTRY)
        yield from (place / name for name in sorted(names) if name.endswith((".parquet", ".parquet.tmp")))


def _parse_part(path: Path) -> Part:
    match = _PART.fullmatch(path.name)
    if match is None:
        return Part(path=path, run="", number=None, written=not path.name.endswith(".tmp"))
    # before November 2025 one file held many runs, and only the folder was named
    return Part(
        path=path, run=f"{path.parent}/{match['run']}", number=int(match["number"]), written=match["tmp"] is None
    )


def find_unsafe(path: Path, source: Path) -> SourceError | None:
    """Return why a file of an export is not opened: it is none, or a link out of the export; None if it can be."""
    try:
        check_regular_file(path, root=source if source.is_dir() else path.parent)
    except UnsafeFileError as error:
        return SourceError(str(path), str(error.strerror), error.hint, code="not_a_regular_file")
    except OSError:
        # opening it says what is wrong
        return None
    return None


def is_export_file(path: Path) -> bool:
    """Return whether a file is one of an export: by its columns, by its name where it is damaged."""
    if not path.name.endswith((".parquet", ".parquet.tmp")):
        return False
    try:
        schema = parquet.read_schema(path)
    except DAMAGE:
        return _PART.fullmatch(path.name) is not None and _begins_like_parquet(path)
    return set(schema.names) >= SIGNATURE_COLUMNS


def _begins_like_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) in {_MAGIC, b""}
    except OSError:
        return True


def open_export(path: Path) -> parquet.ParquetFile:
    """Return a file of an export, texts that repeat as codes.

    Raises:
        SourceError: when it is damaged, or lacks columns.
    """
    try:
        file = parquet.ParquetFile(path, read_dictionary=["project_id", "run_id", "attribute_path", "attribute_type"])
    except PermissionError as error:
        raise SourceError(
            str(path), "no permission to read it", "change its permissions or copy it", code="no_permission"
        ) from error
    except KeyError as error:
        raise _lack_error(path, error.args[0].decode()) from error
    except DAMAGE as error:
        raise damaged_error(path, error) from error
    schema = file.schema_arrow
    missing = [name for name in REQUIRED_COLUMNS if name not in schema.names]
    if missing:
        raise _lack_error(path, missing[0])
    for name, fits in _TYPES.items():
        if not fits(schema.field(name).type):
            what = f"its column {name} is of type {schema.field(name).type}"
            raise SourceError(str(path), what, "export the run again, or leave the file out", code="wrong_column_type")
    return file


def _lack_error(path: Path, name: str) -> SourceError:
    return SourceError(
        str(path), f"it lacks the column {name}", "export the run again, or leave the file out", code="no_such_column"
    )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind.value_type if isinstance(kind, pa.DictionaryType) else kind)


_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    **dict.fromkeys((*sorted(SIGNATURE_COLUMNS), "attribute_type"), _is_text),
    "timestamp": pa.types.is_timestamp,
    "float_value": pa.types.is_floating,
}
"""What the columns that are computed with must be."""


def read_rows(file: parquet.ParquetFile, number: int, names: list[str]) -> pa.Table:
    """Return columns of a row group; one of `DAMAGE` is raised where they are damaged, a text in them as well."""
    table = file.read_row_group(number, columns=names)
    table.validate(full=True)
    return table


def damaged_error(path: Path, error: Exception) -> SourceError:
    """Return that a file cannot be read."""
    reason = redact_start(str(error).splitlines()[0], _SHOWN) if str(error) else type(error).__name__
    return SourceError(
        str(path), f"the Parquet file is damaged ({reason})", "copy or export it again", code="damaged_export"
    )


def missing_part_error(found: list[Part]) -> SourceError | None:
    """Return what is missing of a run's parts, None when they are complete.

    The exporter gives parts their names when a run is done, the first part last.

    Args:
        found: the parts of one run.
    """
    numbered = [part for part in found if part.number is not None]
    if not numbered:
        return None
    where = str(numbered[0].path)
    whole = {part.number for part in numbered if part.written}
    left = [part for part in numbered if not part.written]
    missing = next(number for number in range(len(whole) + 1) if number not in whole)
    if left:
        what = f"the export of this run was interrupted, {left[0].path.name} was left"
        return SourceError(
            where,
            what,
            "export it again, or remove .tmp from the name to read what is there",
            code="export_interrupted",
        )
    if missing < len(whole):
        return SourceError(
            where, f"part {missing} of this run is missing", "copy all parts of the export", code="missing_part"
        )
    return None
