"""Folders of MLflow's file store that are experiments, and what keeps one from saying so."""

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
_TRASH = ".trash"


def is_file_store(folder: Path) -> bool:
    """Return whether a folder is a file store: below it lie experiments, folders that say their own id or hold runs.

    What cannot be read is no error yet: a folder of anything may hold such.
    """
    with suppress(SourceError):
        return any(map(_looks_like_experiment, _candidate_folders(folder)))
    return False


def _candidate_folders(root: Path) -> Iterator[Path]:
    """Yield what may be experiments, deleted ones last."""
    for folder in (root, root / _TRASH):
        yield from list_folder(folder) if folder.is_dir() else ()


def _looks_like_experiment(path: Path) -> bool:
    try:
        return _read_experiment(path) is not None or _count_runs(path) > 0
    except SourceError:
        # it has what experiments have: opening the store says why that cannot be read
        return os.access(path / META, os.F_OK)


def _read_experiment(path: Path) -> dict[str, str | None] | None:
    """Return what a folder says of itself, None when it is none of an experiment."""
    said = read_meta(path)
    if said is None or said.get("experiment_id") != path.name or "run_id" in said:
        return None
    return said


def find_experiments(root: Path) -> Iterator[tuple[Path, dict[str, str | None] | SourceError]]:
    """Yield the folders of experiments with what they say of themselves or why that is not known, deleted ones last.

    A folder that says nothing of itself is one of an experiment if it holds runs.
    """
    for path in _candidate_folders(root):
        try:
            said = _read_experiment(path)
        except SourceError as error:
            yield path, error
            continue
        if said is not None:
            yield path, said
        elif runs := _count_runs(path):
            yield path, _missing_meta_error(path, runs)


def _count_runs(path: Path) -> int:
    """Return how many runs a folder seems to hold; none where it cannot be listed: it may be a folder of anything."""
    with suppress(SourceError):
        runs = list_folder(path) if path.is_dir() else ()
        return sum(RUN_ID.fullmatch(run.name) is not None and (run / META).is_file() for run in runs)
    return 0


def read_meta(folder: Path) -> dict[str, str | None] | None:
    """Return what the `meta.yaml` of a folder says, None where there is none."""
    said = read_text(folder / META)
    return None if said is None else meta_yaml.parse_meta(said)


def _missing_meta_error(path: Path, runs: int) -> SourceError:
    """Return that a folder with runs does not say which experiment it is."""
    what = (
        f"does not say that it is of experiment {path.name}, which seems to hold {runs} run{'' if runs == 1 else 's'}"
    )
    return SourceError(str(path / META), what, "restore it, or move its folder out of the store")
