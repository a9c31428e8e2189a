"""Reads MLflow's file store, a `mlruns` folder, without MLflow: newer versions of it refuse to."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import local_artifacts, metric_file
from gpureport.importers.trackers.mlflow.local.experiment_folders import META, RUN_ID, find_experiments, read_meta
from gpureport.importers.trackers.mlflow.local.text_files import list_folder, list_names, raise_unreadable, read_text
from gpureport.importers.trackers.mlflow.run_selection import select_experiment
from gpureport.importers.trackers.mlflow.run_store import (
    HARDWARE_PREFIXES,
    MetricSeries,
    RunInfo,
    RunLabels,
    keep_readable_time,
)
from gpureport.limits import MOST_LABELS

_UNREADABLE = "cannot be read"
_STATUS = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_PARENT, _NAME = "mlflow.parentRunId", "mlflow.runName"


class FileStore:
    """A `mlruns` folder."""

    kind: ClassVar[str] = "file store"

    def __init__(self, root: Path, where: str) -> None:
        """Take a folder.

        Args:
            root: the folder.
            where: what a person called it.
        """
        self.root = root
        self.where = where
        self._folders: dict[str, Path] = {}

    @property
    def version(self) -> str:
        """Nothing: a file store does not say what wrote it."""
        return ""

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, unless a filter is given, and last those with a fault.

        One damaged run of hundreds does not keep the others out; an experiment that does not say which it is stands
        for its runs.
        """
        known, found = {}, []
        for folder, meta in find_experiments(self.root):
            if isinstance(meta, SourceError):
                known[folder.name] = folder.name
                found.append(_unreadable_run(folder.name, folder, {}, meta))
                continue
            known[folder.name] = meta.get("name") or folder.name
            found += list(self._runs(folder, meta))
        found.sort(key=lambda run: (run.fault is not None, -(run.started or 0), run.id))
        return select_experiment(self.where, found, known, experiment, wanted)

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id.

        Raises:
            SourceError: when it cannot be read.
        """
        for folder, meta in find_experiments(self.root):
            if isinstance(meta, SourceError):
                if (folder / run_id).is_dir():
                    raise meta
                continue
            found = self._run(folder / run_id, folder, meta)
            if found is not None:
                return found
        return None

    def _runs(self, folder: Path, experiment: dict[str, str | None]) -> Iterator[RunInfo]:
        for path in list_folder(folder):
            try:
                found = self._run(path, folder, experiment)
            except SourceError as error:
                found = _unreadable_run(path.name, folder, experiment, error)
            if found is not None:
                yield found

    def _run(self, path: Path, folder: Path, experiment: dict[str, str | None]) -> RunInfo | None:
        meta = read_meta(path, self.root)
        if meta is None or meta.get("run_id", meta.get("run_uuid")) != path.name:
            if RUN_ID.fullmatch(path.name) and path.is_dir():
                raise _damaged_run_error(path, missing=meta is None)
            return None
        self._folders[path.name] = path
        status = meta.get("status") or ""
        return RunInfo(
            id=path.name,
            name=meta.get("run_name") or read_text(path / "tags" / _NAME, self.root) or "",
            status=_STATUS.get(status, status),
            started=_parse_time(meta.get("start_time")),
            ended=_parse_time(meta.get("end_time")),
            experiment_id=folder.name,
            experiment=experiment.get("name") or folder.name,
            artifact_uri=meta.get("artifact_uri") or "",
            deleted="deleted" in {meta.get("lifecycle_stage"), experiment.get("lifecycle_stage")},
            parent=read_text(path / "tags" / _PARENT, self.root),
            hardware=tuple(list_names(path / "metrics", HARDWARE_PREFIXES)),
        )

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run.

        Raises:
            SourceError: when the run cannot be read.
        """
        if run.fault is not None:
            raise run.fault
        return self._folders[run.id]

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params, tags and last values of a run."""
        folder = self.home(run)
        params, tags = (
            tuple((key, read_text(folder / part / key, self.root) or "") for key in _list_labels(folder / part))
            for part in ("params", "tags")
        )
        return RunLabels(params=params, tags=tags, latest=tuple(self._latest(run)))

    def _latest(self, run: RunInfo) -> Iterator[tuple[str, float]]:
        for each in self.series(run):
            if len(each):
                # the largest step counts, among equal ones the latest time, then the largest value
                yield each.key, float(each.values[np.lexsort((each.times, each.steps))[-1]])

    def series(self, run: RunInfo) -> list[MetricSeries]:
        """Return all metrics of a run, by name.

        Raises:
            SourceError: when a file cannot be read.
        """
        folder = self.home(run) / "metrics"
        try:
            return [metric_file.read_metric(folder / key, key, self.root) for key in list_names(folder)]
        except OSError as error:
            raise_unreadable(error, folder)

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder in which the artifacts of a run lie; None where they are not on this machine."""
        own = self.home(run) / "artifacts"
        return own if own.is_dir() else local_artifacts.find_artifact_folder(run.artifact_uri, [])

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts."""
        return local_artifacts.list_artifacts(self.artifact_folder(run), folder)

    def fetch_artifact(self, run: RunInfo, name: str) -> Path:
        """Return the file of an artifact."""
        return (self.artifact_folder(run) or self.home(run)) / name


def _damaged_run_error(path: Path, *, missing: bool) -> SourceError:
    what = f"does not say that it is of run {path.name}: damaged, or of another one"
    if missing:
        what = f"is missing from the folder of run {path.name}"
    return SourceError(str(path / META), what, "restore it, or move its folder out of the store", code="damaged_run")


def _unreadable_run(run_id: str, folder: Path, experiment: dict[str, str | None], fault: SourceError) -> RunInfo:
    return RunInfo(
        id=run_id,
        name="",
        status=_UNREADABLE,
        started=None,
        ended=None,
        experiment_id=folder.name,
        experiment=experiment.get("name") or folder.name,
        artifact_uri="",
        deleted=experiment.get("lifecycle_stage") == "deleted",
        fault=fault,
    )


def _list_labels(folder: Path) -> list[str]:
    names = list(list_names(folder))
    if len(names) > MOST_LABELS:
        what = f"it holds {len(names):,} {folder.name}; at most {MOST_LABELS:,} are read"
        raise SourceError(str(folder), what, "leave the run out", code="too_many_labels")
    return names


def _parse_time(text: str | None) -> int | None:
    time = int(text) if text is not None and _COUNT.fullmatch(text) else None
    return keep_readable_time(time)
