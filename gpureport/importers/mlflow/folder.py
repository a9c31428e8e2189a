"""MLflow's file store, a folder `mlruns`, read without MLflow, whose client refuses them since 3.13."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.mlflow import stores
from gpureport.importers.mlflow.stores import POINT, Contents, LocalStore, Points
from gpureport.importers.protocol.tracker import RunInfo
from gpureport.limits import DEEPEST_FOLDER, MOST_RECORD_BYTES, MOST_SETTINGS_BYTES
from gpureport.regular_files import read_regular_file

_META, _RESTORE = "meta.yaml", "restore it, or move its folder out of the store"
_RUN_ID = re.compile("[0-9a-f]{32}")
_ENTRY = re.compile(r"^(\w+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
"""A name with its value, which goes on in lines that are indented."""


def _read_meta(folder: Path, root: Path) -> dict[str, str]:
    """Return the values of a `meta.yaml` by name: of YAML only one flat mapping to plain values."""
    found = {}
    for name, text in _ENTRY.findall(_read_text(folder / _META, root)):
        value = re.sub(r"\s*\n\s*", " ", text.strip())
        if value[:1] == "'":
            value = value[1:-1].replace("''", "'")
        with suppress(ValueError, RecursionError):
            value = str(json.loads(value)).encode(errors="replace").decode() if value[:1] == '"' else value
        found[name] = "" if value == "null" else value
    return found


def _read_metric(content: str) -> tuple[Points, int]:
    """Return a metric's points, one per line, and how many lines are none.

    A line is time, value and step; a metric of a dataset adds its name and digest.
    """
    parse: Any = partial(np.loadtxt, dtype=POINT, delimiter=" ", comments=None, usecols=(0, 1, 2), ndmin=1)
    # the last line of a process that was killed may have been cut anywhere
    *lines, cut = content.split("\n")
    lines, found = [line for line in lines if line.strip()], [np.zeros(0, POINT)]
    try:
        found += [parse(lines)] if lines else []
    except ValueError:
        for line in lines:
            with suppress(ValueError):
                found.append(parse([line]))
    points = np.concatenate(found)
    return points, len(lines) - len(points) + bool(cut.strip())


def _read_text(path: Path, root: Path, most: int = MOST_SETTINGS_BYTES) -> str:
    """Return what a file of a store holds, nothing where there is none."""
    try:
        return read_regular_file(path, root=root, most=most).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise stores.unreadable(error, path) from error


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise stores.unreadable(error, folder) from error


def _list_names(folder: Path, deepest: int = DEEPEST_FOLDER) -> list[str]:
    """Return the sorted names of files in a folder; names with slashes are files in its folders."""
    found = []
    for path in _list_folder(folder):
        is_folder = deepest and path.is_dir() and not path.is_symlink()
        below = [f"/{name}" for name in _list_names(path, deepest - 1)] if is_folder else [""]
        found += [path.name + name for name in below]
    return sorted(found)


def _find_experiments(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders of experiments, which are numbers, with their names; deleted ones last.

    One whose own file is damaged is known by the runs in it.
    """
    for path in (path for parent in (root, root / ".trash") for path in _list_folder(parent)):
        if path.name.isdigit() and path.is_dir():
            said: dict[str, str] = {}
            with suppress(SourceError):
                said = _read_meta(path, root)
            runs = (each for each in _list_folder(path) if _RUN_ID.fullmatch(each.name) and (each / _META).is_file())
            if said.get("experiment_id") == path.name or any(runs):
                yield path, said.get("name") or path.name


def is_file_store(folder: Path) -> bool:
    """Return whether a folder is a file store: its experiments state their number or hold runs."""
    with suppress(SourceError):
        return any(True for _ in _find_experiments(folder))
    return False


def keeps_artifacts(folder: Path) -> bool:
    """Return whether a folder holds one run's artifacts, by its name and its parent's."""
    return folder.name == "artifacts" and _RUN_ID.fullmatch(folder.parent.name) is not None


def refuse_artifacts(folder: Path, wanted: str) -> None:
    """Refuse a folder where MLflow keeps artifacts of runs listed in a database elsewhere, as `wanted` names it."""
    # one that is missing or cannot be listed matters only when opened
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

    def list_runs(self, experiment: str | None) -> list[RunInfo]:
        """Return an experiment's runs, or all for None, newest first; deleted ones too.

        A damaged run keeps no others out: it has a fault.
        """
        known = dict(_find_experiments(self.path))
        ids = stores.find_experiments(self.where, {path.name: name for path, name in known.items()}, experiment)
        found = []
        for path in (path for folder in known if folder.name in ids for path in _list_folder(folder)):
            try:
                found.append(self._find_run(path))
            except SourceError as error:
                found.append(RunInfo(id=path.name, name=path.name, experiment_id=path.parent.name, fault=error))
        return sorted(filter(None, found), key=lambda run: (-(run.started or 0), run.id))

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None without one. Its fault is raised."""
        places = (folder / run_id for folder, _ in _find_experiments(self.path))
        return next((self._find_run(place) for place in places if place.is_dir()), None)

    def _find_run(self, path: Path) -> RunInfo | None:
        meta = _read_meta(path, self.path)
        if meta.get("run_id", meta.get("run_uuid")) != path.name:
            if _RUN_ID.fullmatch(path.name) and path.is_dir():
                what = f"does not say that it is of run {path.name}: missing, damaged, or of another one"
                raise SourceError(str(path / _META), what, _RESTORE, code="damaged_run")
            return None
        # the tag is the name as it was given, which YAML quotes
        name, parent = (_read_text(path / "tags" / f"mlflow.{tag}", self.path) for tag in ("runName", "parentRunId"))
        said: dict[str, Any] = meta | {"run_id": path.name, "run_name": name or meta.get("run_name"), "parent": parent}
        said |= {"experiment_id": path.parent.name, "deleted": path.parents[1].name == ".trash"}
        return stores.read_info(said, _list_names(path / "metrics"))

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        """Return a run's params and tags, and the metrics whose names begin so."""

        def read_all(part: str, start: str = "", most: int = MOST_SETTINGS_BYTES) -> Iterator[tuple[str, str]]:
            folder = self.home(run) / part
            for name in (name for name in _list_names(folder) if name.startswith(start)):
                yield name, _read_text(folder / name, self.path, most)

        found = {name: _read_metric(text) for name, text in read_all("metrics", beginning, MOST_RECORD_BYTES)}
        points, torn = {name: each for name, (each, _) in found.items()}, sum(lost for _, lost in found.values())
        return stores.order_points(points, dict(read_all("params")), dict(read_all("tags")), torn)
