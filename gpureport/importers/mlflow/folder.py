"""MLflow's file store, a folder `mlruns`, read without MLflow: its client refuses them since 3.13."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.mlflow.stores import (
    Contents,
    LocalStore,
    Points,
    RunInfo,
    find_experiments,
    make_points,
    order_points,
    read_info,
    unreadable,
)
from gpureport.limits import DEEPEST_FOLDER, MOST_FILES, MOST_RECORD_BYTES, MOST_SETTINGS_BYTES
from gpureport.regular_files import read_regular_file

_META, _RESTORE = "meta.yaml", "restore it, or move its folder out of the store"
_RUN_ID = re.compile("[0-9a-f]{32}")
_Meta: TypeAlias = dict[str, str | None]
_ENTRY = re.compile(r"^([A-Za-z_][\w.-]*):(?=[ \t\n]|\Z)[ \t]*(.*(?:\n(?:[ \t].*)?$)*)", re.MULTILINE)
"""A name with its value, which goes on in lines that are indented or empty."""
_FOLD = re.compile(r"[ \t]*\n((?:[ \t]*\n)*)[ \t]*")
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(\n)[ \t]*|(.))|" + _FOLD.pattern, re.DOTALL
)
_ESCAPES = dict(zip("0abtnvfreNLP_", "\0\a\b\t\n\v\f\r\x1b\x85\u2028\u2029\xa0", strict=True))


def parse_meta(text: str) -> _Meta:
    """Return the values of a `meta.yaml` by name: one flat mapping to plain values, no more of YAML than that."""
    return {match[1]: _parse_value(match[2].strip(" \t\n")) for match in _ENTRY.finditer(text)}


def _parse_value(text: str) -> str | None:
    if text[:1] == '"':
        return _ESCAPE.sub(_unescape, text[1:-1])
    text = _FOLD.sub(lambda match: "\n" * match[1].count("\n") or " ", text)
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    return None if text in {"", "~", "null", "Null", "NULL"} else text


def _unescape(match: re.Match[str]) -> str:
    """Return what an escape, or a break between lines, stands for; a break that is escaped joins them as they are."""
    if code := match[1] or match[2] or match[3]:
        number = int(code, 16)
        # a half of a pair, and what Unicode does not have, cannot be written down
        return "\ufffd" if 0xD800 <= number < 0xE000 or number > 0x10FFFF else chr(number)  # noqa: PLR2004
    if match[4]:
        return ""
    return _ESCAPES.get(match[5], match[5]) if match[5] else "\n" * match[6].count("\n") or " "


_LINE: dict[str, Any] = {"time": pa.int64(), "value": pa.float64(), "step": pa.int64()}


def _read_metric(content: bytes) -> Points:
    """Return the points of a metric, a line each; lines that are none are counted.

    A line is time, value and step, and of a metric of a dataset its name and digest as well.
    """
    with suppress(pa.ArrowInvalid):
        if content.endswith(b"\n"):
            buffer: Any = pa.BufferReader(content)
            table = csv.read_csv(
                buffer,
                read_options=csv.ReadOptions(column_names=list(_LINE), use_threads=False),
                parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
                # text that stands for nothing is no value here: nan is a number that was logged
                convert_options=csv.ConvertOptions(column_types=_LINE, null_values=[]),
            )
            times, steps = (columns.integers(table.column(name)) for name in ("time", "step"))
            return order_points(times, columns.floats(table.column("value")), steps)
    lines = [line for line in content.split(b"\n") if line.strip()]
    points = []
    # the last line of a process that was killed may have been cut anywhere
    for line in lines if content.endswith(b"\n") else lines[:-1]:
        fields = line.split(b" ")
        with suppress(ValueError, OverflowError):
            if len(fields) in {3, 5}:
                points.append((np.int64(int(fields[0])), float(fields[1]), np.int64(int(fields[2]))))
    return make_points(points, len(lines) - len(points))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(error, path) from error


def _read_file(path: Path, root: Path, most: int = MOST_SETTINGS_BYTES) -> bytes:
    """Return what a file of a store holds, nothing where there is none."""
    with _explained(path), suppress(FileNotFoundError, NotADirectoryError):
        return read_regular_file(path, root=root, most=most)
    return b""


def _read_meta(folder: Path, root: Path) -> _Meta:
    return parse_meta(_read_file(folder / _META, root).decode(errors="replace"))


def _list_folder(folder: Path) -> list[Path]:
    with _explained(folder):
        found = sorted(folder.iterdir())
    if len(found) > MOST_FILES:
        what = f"it holds {len(found):,} files and folders; at most {MOST_FILES:,} are read"
        raise SourceError(str(folder), what, "move some of them out of the store", code="too_many_files")
    return found


def _list_names(folder: Path) -> list[str]:
    """Return the names of the files in a folder, sorted; one with slashes is a file in folders of it."""

    def fail(error: OSError) -> None:
        raise error

    found = []
    with _explained(folder), suppress(FileNotFoundError, NotADirectoryError):
        for parent, _, files in os.walk(folder, onerror=fail):
            here = Path(parent).relative_to(folder)
            if len(here.parts) > DEEPEST_FOLDER:
                what = f"its folders are nested more than {DEEPEST_FOLDER} deep"
                raise SourceError(str(folder), what, "move them, or leave the run out", code="too_many_files")
            found += [(here / name).as_posix() for name in files]
    return sorted(found)


def _find_experiments(root: Path) -> Iterator[tuple[Path, _Meta]]:
    """Yield the folders of experiments, which have numbers, with what they say of themselves; deleted ones last.

    One whose own file is damaged is known by the runs in it.
    """
    for parent in (root, root / ".trash"):
        for path in _list_folder(parent) if parent.is_dir() else ():
            if path.name.isdigit() and path.is_dir():
                said: _Meta = {}
                with suppress(SourceError):
                    said = _read_meta(path, root)
                if said.get("experiment_id") == path.name or any(map(_is_run, _list_folder(path))):
                    yield path, said


def _is_run(folder: Path) -> bool:
    return _RUN_ID.fullmatch(folder.name) is not None and (folder / _META).is_file()


def is_file_store(folder: Path) -> bool:
    """Return whether a folder is a file store: it holds experiments, which state their number or hold runs."""
    with suppress(SourceError):
        return any(True for _ in _find_experiments(folder))
    return False


def keeps_artifacts(folder: Path) -> bool:
    """Return whether a folder is that of the artifacts of one run, by its name and that of the folder above."""
    return folder.name == "artifacts" and _RUN_ID.fullmatch(folder.parent.name) is not None


def refuse_artifacts(folder: Path, wanted: str) -> None:
    """Refuse a folder in which MLflow keeps artifacts of runs that a database elsewhere lists, as `wanted` names it."""
    # one that is not there, or cannot be listed, is of nobody's concern until it is opened
    with suppress(OSError):
        if any(map(keeps_artifacts, folder.glob("[0-9]*/*/artifacts"))):
            what = "MLflow keeps the artifacts of its runs in it"
            hint = f"give the database or the server of these runs, {wanted}"
            raise SourceError(str(folder), what, hint, code="folder_of_artifacts")


class Folder(LocalStore):
    """A folder `mlruns`."""

    kind = "file store"

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run."""
        experiment = self.path / run.experiment_id
        return (experiment if experiment.is_dir() else self.path / ".trash" / run.experiment_id) / run.id

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return the runs of an experiment, of all when None, the newest first; deleted ones too.

        One damaged run of hundreds does not keep the others out: it has a fault.
        """
        self.refuse_filter(wanted)
        known = {path: said.get("name") or path.name for path, said in _find_experiments(self.path)}
        ids = find_experiments(self.where, {path.name: name for path, name in known.items()}, experiment)
        found = []
        for path in (path for folder in known if folder.name in ids for path in _list_folder(folder)):
            try:
                run = self._find_run(path)
            except SourceError as error:
                run = RunInfo(id=path.name, experiment_id=path.parent.name, fault=error)
            found += [] if run is None else [run]
        return sorted(found, key=lambda run: (-(run.started or 0), run.id))

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none, and its fault is raised."""
        places = (folder / run_id for folder, _ in _find_experiments(self.path))
        return next((self._find_run(place) for place in places if place.is_dir()), None)

    def _find_run(self, path: Path) -> RunInfo | None:
        meta = _read_meta(path, self.path)
        if meta.get("run_id", meta.get("run_uuid")) != path.name:
            if _RUN_ID.fullmatch(path.name) and path.is_dir():
                what = f"does not say that it is of run {path.name}: missing, damaged, or of another one"
                raise SourceError(str(path / _META), what, _RESTORE, code="damaged_run")
            return None
        tags = {name: self._read_text(path / "tags" / name) for name in ("mlflow.runName", "mlflow.parentRunId")}
        said = meta | {"run_id": path.name, "experiment_id": path.parent.name}
        return read_info(said, tags, _list_names(path / "metrics"), deleted=path.parents[1].name == ".trash")

    def _read_text(self, path: Path) -> str:
        return _read_file(path, self.path).decode(errors="replace")

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        """Return params and tags of a run, and the metrics whose names begin so."""
        home = self.home(run)
        labels = {}
        for part in ("params", "tags"):
            labels[part] = {name: self._read_text(home / part / name) for name in _list_names(home / part)}
        points = {
            name: _read_metric(_read_file(home / "metrics" / name, self.path, MOST_RECORD_BYTES))
            for name in _list_names(home / "metrics")
            if name.startswith(beginning)
        }
        return Contents(points, **labels)
