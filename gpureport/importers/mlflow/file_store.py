"""Reads MLflow's file store, a `mlruns` folder, without MLflow: newer versions of it refuse to."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.mlflow import filters, local_artifacts, meta_yaml, metric_file
from gpureport.importers.mlflow.entities import HARDWARE, Labelled, RunInfo, Series

_META = "meta.yaml"
_TRASH = ".trash"
_STATUS = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_PARENT, _NAME = "mlflow.parentRunId", "mlflow.runName"


def is_store(folder: Path) -> bool:
    """Return whether a folder is a file store: below it lie experiments, folders with a `meta.yaml` of their own id."""
    return folder.is_dir() and any(_experiments(folder))


def _experiments(root: Path) -> Iterator[tuple[Path, dict[str, str | None]]]:
    """Yield the folders of experiments with what they say of themselves, deleted ones last."""
    for folder in (root, root / _TRASH):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            meta = _meta(path)
            if meta is not None and meta.get("experiment_id") == path.name and "run_id" not in meta:
                yield path, meta


def _meta(folder: Path) -> dict[str, str | None] | None:
    try:
        return meta_yaml.parsed((folder / _META).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


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
        """Return runs, the newest first; deleted ones too, unless a filter is given."""
        known, found = {}, []
        for folder, meta in _experiments(self.root):
            known[folder.name] = meta.get("name") or folder.name
            found += list(self._runs(folder, meta))
        found.sort(key=lambda run: (-(run.started or 0), run.id))
        return filters.narrowed(self, filters.of_experiment(self.where, found, known, experiment), wanted)

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id."""
        for folder, meta in _experiments(self.root):
            if (folder / run_id / _META).is_file():
                return self._run(folder / run_id, folder, meta)
        return None

    def _runs(self, folder: Path, experiment: dict[str, str | None]) -> Iterator[RunInfo]:
        for path in sorted(folder.iterdir()):
            found = self._run(path, folder, experiment) if (path / _META).is_file() else None
            if found is not None:
                yield found

    def _run(self, path: Path, folder: Path, experiment: dict[str, str | None]) -> RunInfo | None:
        meta = _meta(path)
        if meta is None or meta.get("run_id", meta.get("run_uuid")) != path.name:
            return None
        self._folders[path.name] = path
        status = meta.get("status") or ""
        return RunInfo(
            id=path.name,
            name=meta.get("run_name") or _text(path / "tags" / _NAME) or "",
            status=_STATUS.get(status, status),
            started=_moment(meta.get("start_time")),
            ended=_moment(meta.get("end_time")),
            experiment_id=folder.name,
            experiment=experiment.get("name") or folder.name,
            artifact_uri=meta.get("artifact_uri") or "",
            deleted="deleted" in {meta.get("lifecycle_stage"), experiment.get("lifecycle_stage")},
            parent=_text(path / "tags" / _PARENT),
            hardware=tuple(_keys(path / "metrics", HARDWARE)),
        )

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run."""
        return self._folders[run.id]

    def labelled(self, run: RunInfo) -> Labelled:
        """Return params, tags and last values of a run."""
        folder = self.home(run)
        params, tags = (
            tuple((key, _text(folder / part / key) or "") for key in _keys(folder / part))
            for part in ("params", "tags")
        )
        return Labelled(params=params, tags=tags, latest=tuple(self._latest(run)))

    def _latest(self, run: RunInfo) -> Iterator[tuple[str, float]]:
        for each in self.series(run):
            if len(each):
                # the largest step counts, and the latest time among equal ones
                place = max(range(len(each)), key=lambda row, at=each: (at.steps[row], at.times[row]))  # type: ignore[misc]
                yield each.key, float(each.values[place])

    def series(self, run: RunInfo) -> list[Series]:
        """Return all metrics of a run, by name.

        Raises:
            SourceError: when a file cannot be read.
        """
        folder = self.home(run) / "metrics"
        try:
            return [metric_file.read(folder / key, key) for key in _keys(folder)]
        except OSError as error:
            where = str(error.filename or folder)
            raise SourceError(where, error.strerror or "cannot be read", "check its permissions, or copy it") from error

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder in which the artifacts of a run lie; None where they are not on this machine."""
        own = self.home(run) / "artifacts"
        return own if own.is_dir() else local_artifacts.folder(run.artifact_uri, [])

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts."""
        return local_artifacts.names(self.artifact_folder(run), folder)

    def fetched(self, run: RunInfo, name: str) -> Path:
        """Return the file of an artifact."""
        return (self.artifact_folder(run) or self.home(run)) / name


def _keys(folder: Path, beginning: tuple[str, ...] = ("",)) -> Iterator[str]:
    """Yield the names a folder holds, sorted; a name with slashes is a file in folders."""
    found = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent).relative_to(folder).as_posix()
        prefix = "" if here == "." else f"{here}/"
        if not prefix:
            folders[:] = [each for each in folders if f"{each}/".startswith(beginning)]
        found += [prefix + each for each in files if (prefix + each).startswith(beginning)]
    yield from sorted(found)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return None


def _moment(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None
