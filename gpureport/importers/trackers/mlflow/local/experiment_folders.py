"""The experiments in a folder of MLflow's file store, and why one cannot be read."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import meta_yaml
from gpureport.importers.trackers.mlflow.local.text_files import list_folder, read_text

META = "meta.yaml"
RUN_ID = re.compile("[0-9a-f]{32}")
ARTIFACTS = "artifacts"
"""Folder in that of a run in which its artifacts lie."""
_TRASH = ".trash"


def is_file_store(folder: Path) -> bool:
    """Return whether a folder is a file store: its folders are experiments, which state their id or hold runs.

    Something unreadable is not an error yet, since the folder may be anything.
    """
    with suppress(SourceError):
        return any(_looks_like_experiment(path, folder) for path in _candidate_folders(folder))
    return False


def _candidate_folders(root: Path) -> Iterator[Path]:
    """Yield folders that may be experiments, deleted ones last."""
    for folder in (root, root / _TRASH):
        yield from list_folder(folder) if folder.is_dir() else ()


def _looks_like_experiment(path: Path, root: Path) -> bool:
    try:
        return _read_experiment(path, root) is not None or _count_runs(path) > 0
    except SourceError:
        # it has what experiments have: opening the store says why that cannot be read
        return os.access(path / META, os.F_OK)


def _read_experiment(path: Path, root: Path) -> dict[str, str | None] | None:
    """Return the metadata of an experiment's folder; None if the folder is not an experiment."""
    said = read_meta(path, root)
    if said is None or said.get("experiment_id") != path.name or "run_id" in said:
        return None
    return said


def find_experiments(root: Path) -> Iterator[tuple[Path, dict[str, str | None] | SourceError]]:
    """Yield the folders of experiments with their metadata, or with the error that hides it; deleted ones last.

    A folder without metadata is an experiment if it holds runs.
    """
    for path in _candidate_folders(root):
        try:
            said = _read_experiment(path, root)
        except SourceError as error:
            yield path, error
            continue
        if said is not None:
            yield path, said
        elif runs := _count_runs(path):
            yield path, _missing_meta_error(path, runs)


def _count_runs(path: Path) -> int:
    """Return how many runs a folder seems to hold; 0 if it cannot be listed, since it may be anything."""
    with suppress(SourceError):
        runs = list_folder(path) if path.is_dir() else ()
        return sum(RUN_ID.fullmatch(run.name) is not None and (run / META).is_file() for run in runs)
    return 0


def _holds_artifacts(folder: Path) -> bool:
    """Return whether MLflow keeps the artifacts of runs in a folder, whose runs are listed by a database elsewhere."""
    try:
        runs = (run for each in folder.iterdir() if each.name.isdigit() and each.is_dir() for run in each.iterdir())
        return any(keeps_artifacts(run / ARTIFACTS) and (run / ARTIFACTS).is_dir() for run in runs)
    except OSError:
        # not there, or of nobody's concern until it is opened
        return False


def refuse_artifacts(folder: Path, wanted: str) -> None:
    """Refuse the folder in which MLflow keeps the artifacts of runs that a database lists.

    Args:
        folder: the folder.
        wanted: what the locator should look like.

    Raises:
        SourceError: when a folder in it is that of a run.
    """
    if _holds_artifacts(folder):
        what = "MLflow keeps the artifacts of its runs in it"
        raise SourceError(
            str(folder), what, f"give the database or the server of these runs, {wanted}", code="folder_of_artifacts"
        )


def keeps_artifacts(folder: Path) -> bool:
    """Return whether a folder is that of the artifacts of one run, by its name and that of the folder above."""
    return folder.name == ARTIFACTS and RUN_ID.fullmatch(folder.parent.name) is not None


def read_meta(folder: Path, root: Path) -> dict[str, str | None] | None:
    """Return the content of the `meta.yaml` of a folder in a store; None without one."""
    said = read_text(folder / META, root)
    return None if said is None else meta_yaml.parse_meta(said)


def _missing_meta_error(path: Path, runs: int) -> SourceError:
    what = (
        f"does not say that it is of experiment {path.name}, which seems to hold {runs} run{'' if runs == 1 else 's'}"
    )
    return SourceError(str(path / META), what, "restore it, or move its folder out of the store", code="damaged_run")
