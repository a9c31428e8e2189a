"""MLflow's file store, a folder `mlruns`, read without MLflow: its client refuses them since 3.13."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.mlflow.stores import (
    HARDWARE_PREFIXES,
    LocalStore,
    Points,
    RunInfo,
    RunLabels,
    folder_of_uri,
    order_points,
    read_info,
    unreadable,
)
from gpureport.limits import DEEPEST_FOLDER, MOST_FILES, MOST_LABELS, MOST_RECORD_BYTES
from gpureport.regular_files import read_regular_file

_META, _ARTIFACTS = "meta.yaml", "artifacts"
_RUN_ID = re.compile("[0-9a-f]{32}")

_RESTORE = "restore it, or move its folder out of the store"
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


_FORMS = {3: ("time", "value", "step"), 2: ("time", "value"), 5: ("time", "value", "step", "dataset", "digest")}
"""Columns of a line of a metric by the number of its fields."""
_TYPES: dict[str, Any] = {"time": pa.int64(), "value": pa.float64(), "step": pa.int64()}


def read_metric(content: bytes) -> Points:
    """Return the points of a metric, a line each; lines that are none are counted."""
    names = _FORMS.get(content.partition(b"\n")[0].count(b" ") + 1)
    if names is not None and content.endswith(b"\n"):
        with suppress(pa.ArrowInvalid):
            buffer: Any = pa.BufferReader(content)
            table = csv.read_csv(
                buffer,
                read_options=csv.ReadOptions(column_names=list(names), use_threads=False),
                parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
                # text that stands for nothing is no value here: nan is a number that was logged
                convert_options=csv.ConvertOptions(column_types=_TYPES, null_values=[]),
            )
            times = columns.integers(table.column("time"))
            steps = columns.integers(table.column("step")) if "step" in names else np.zeros(len(times), np.int64)
            return order_points(times, columns.floats(table.column("value")), steps)
    lines = [line for line in content.split(b"\n") if line.strip()]
    points = []
    # the last line of a process that was killed may have been cut anywhere
    for line in lines if content.endswith(b"\n") else lines[:-1]:
        fields = line.split(b" ")
        with suppress(ValueError):
            if len(fields) in _FORMS:
                point = int(fields[0]), float(fields[1]), int(fields[2]) if len(fields) > 2 else 0  # noqa: PLR2004 - a step
                # larger ones are no counts of 64 bits
                points += [point] if max(abs(point[0]), abs(point[2])) < 2**63 else []
    found = np.array(points, dtype=[("time", "i8"), ("value", "f8"), ("step", "i8")])
    return order_points(found["time"].copy(), found["value"].copy(), found["step"].copy(), len(lines) - len(points))


def _read_text(path: Path, root: Path) -> str | None:
    """Return what a file of a store holds, None where there is none."""
    try:
        return read_regular_file(path, root=root).decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(error, path) from error


def _list_folder(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(error, folder) from error
    if len(found) > MOST_FILES:
        what = f"it holds {len(found):,} files and folders; at most {MOST_FILES:,} are read"
        raise SourceError(str(folder), what, "move some of them out of the store", code="too_many_files")
    return found


def _list_names(folder: Path, beginnings: tuple[str, ...] = ("",)) -> list[str]:
    """Return the names of the files in a folder that begin so, sorted; one with slashes is a file in folders of it."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise unreadable(error, folder) from error

    found = []
    for parent, below, files in os.walk(folder, onerror=fail):
        here = Path(parent).relative_to(folder).parts
        if len(here) > DEEPEST_FOLDER:
            what = f"its folders are nested more than {DEEPEST_FOLDER} deep"
            raise SourceError(str(folder), what, "move them, or leave the run out", code="too_many_files")
        if not here:
            below[:] = [each for each in below if f"{each}/".startswith(beginnings)]
        found += [name for each in files if (name := "/".join((*here, each))).startswith(beginnings)]
    return sorted(found)


def _read_meta(folder: Path, root: Path) -> _Meta:
    return parse_meta(_read_text(folder / _META, root) or "")


def _find_experiments(root: Path) -> Iterator[tuple[Path, _Meta | SourceError]]:
    """Yield the folders of experiments with their metadata, or with the error that hides it; deleted ones last.

    A folder that does not say so is an experiment if it holds runs.
    """
    for parent in (root, root / ".trash"):
        for path in _list_folder(parent) if parent.is_dir() else ():
            try:
                said = _read_meta(path, root)
            except SourceError as error:
                yield path, error
                continue
            if said.get("experiment_id") == path.name and "run_id" not in said:
                yield path, said
            elif runs := _count_runs(path):
                what = f"does not say that it is of experiment {path.name}, which seems to hold runs ({runs})"
                yield path, SourceError(str(path / _META), what, _RESTORE, code="damaged_run")


def _count_runs(path: Path) -> int:
    with suppress(SourceError):
        runs = _list_folder(path) if path.is_dir() else ()
        return sum(_RUN_ID.fullmatch(run.name) is not None and (run / _META).is_file() for run in runs)
    return 0


def is_file_store(folder: Path) -> bool:
    """Return whether a folder is a file store: its folders are experiments, which state their id or hold runs."""
    with suppress(SourceError):
        # what cannot be looked at may be anything; opening the store says why it cannot be read
        return any(
            not isinstance(said, SourceError) or said.code == "damaged_run" or os.access(path / _META, os.F_OK)
            for path, said in _find_experiments(folder)
        )
    return False


def keeps_artifacts(folder: Path) -> bool:
    """Return whether a folder is that of the artifacts of one run, by its name and that of the folder above."""
    return folder.name == _ARTIFACTS and _RUN_ID.fullmatch(folder.parent.name) is not None


def refuse_artifacts(folder: Path, wanted: str) -> None:
    """Refuse a folder in which MLflow keeps artifacts of runs that a database elsewhere lists, as `wanted` names it."""
    # one that is not there, or cannot be listed, is of nobody's concern until it is opened
    with suppress(OSError):
        runs = (run for each in folder.iterdir() if each.name.isdigit() and each.is_dir() for run in each.iterdir())
        if any(keeps_artifacts(run / _ARTIFACTS) and (run / _ARTIFACTS).is_dir() for run in runs):
            what = "MLflow keeps the artifacts of its runs in it"
            hint = f"give the database or the server of these runs, {wanted}"
            raise SourceError(str(folder), what, hint, code="folder_of_artifacts")


class Folder(LocalStore):
    """A folder `mlruns`."""

    kind = "file store"
    version = ""

    def __init__(self, path: Path, where: str) -> None:
        super().__init__(path, where)
        self._homes: dict[str, Path] = {}

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run; its fault is raised where it cannot be read."""
        if run.fault is not None:
            raise run.fault
        return self._homes[run.id]

    def _artifact_places(self, run: RunInfo) -> Sequence[Path | None]:
        return self.home(run) / _ARTIFACTS, folder_of_uri(run.artifact_uri)

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, and last those with a fault.

        One damaged run of hundreds does not keep the others out; an experiment that does not say which it is stands
        for its runs.
        """
        known, found = {}, []
        for folder, meta in _find_experiments(self.path):
            if isinstance(meta, SourceError):
                known[folder.name] = folder.name
                found.append(RunInfo(id=folder.name, experiment_id=folder.name, fault=meta))
                continue
            known[folder.name] = meta.get("name") or folder.name
            for path in _list_folder(folder):
                try:
                    run = self._run(path, folder, meta)
                except SourceError as error:
                    deleted = meta.get("lifecycle_stage") == "deleted"
                    run = RunInfo(id=path.name, experiment_id=folder.name, deleted=deleted, fault=error)
                found += [] if run is None else [run]
        found.sort(key=lambda run: (run.fault is not None, -(run.started or 0), run.id))
        return self._narrow(found, known, experiment, wanted)

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none, and its fault is raised."""
        for folder, meta in _find_experiments(self.path):
            if isinstance(meta, SourceError):
                if (folder / run_id).is_dir():
                    raise meta
            elif (found := self._run(folder / run_id, folder, meta)) is not None:
                return found
        return None

    def _run(self, path: Path, folder: Path, experiment: _Meta) -> RunInfo | None:
        meta = _read_meta(path, self.path)
        if meta.get("run_id", meta.get("run_uuid")) != path.name:
            if _RUN_ID.fullmatch(path.name) and path.is_dir():
                what = f"does not say that it is of run {path.name}: missing, damaged, or of another one"
                raise SourceError(str(path / _META), what, _RESTORE, code="damaged_run")
            return None
        self._homes[path.name] = path
        names = ("mlflow.runName", "mlflow.parentRunId")
        tags = {name: text for name in names if (text := _read_text(path / "tags" / name, self.path)) is not None}
        metrics = _list_names(path / "metrics", HARDWARE_PREFIXES)
        said = meta | {"run_id": path.name, "experiment_id": folder.name}
        return read_info(said, tags, metrics, deleted=experiment.get("lifecycle_stage") == "deleted")

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params and tags of a run."""
        found = {}
        for part in RunLabels._fields:
            folder = self.home(run) / part
            names = _list_names(folder)
            if len(names) > MOST_LABELS:
                what = f"it holds {len(names):,} {part}; at most {MOST_LABELS:,} are read"
                raise SourceError(str(folder), what, "leave the run out", code="too_many_labels")
            found[part] = {name: _read_text(folder / name, self.path) or "" for name in names}
        return RunLabels(**found)

    def series(self, run: RunInfo, beginning: str = "") -> dict[str, Points]:
        """Return the metrics of a run whose names begin so."""
        folder, found = self.home(run) / "metrics", {}
        for name in _list_names(folder, (beginning,)):
            try:
                content = read_regular_file(folder / name, root=self.path, most=MOST_RECORD_BYTES)
            except OSError as error:
                raise unreadable(error, folder) from error
            found[name] = read_metric(content)
        return found
