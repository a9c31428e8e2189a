"""Folders of MLflow's file store that are experiments, and what keeps one from saying so."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import meta_yaml
from gpureport.importers.trackers.mlflow.local.stored_text import folders, text

META = "meta.yaml"
RUN_ID = re.compile("[0-9a-f]{32}")
_TRASH = ".trash"


def is_store(folder: Path) -> bool:
    """Return whether a folder is a file store: below it lie experiments, folders that say their own id or hold runs.

    What cannot be read is no error yet: a folder of anything may hold such.
    """
    with suppress(SourceError):
        return any(map(_seems_experiment, _inside(folder)))
    return False


def _inside(root: Path) -> Iterator[Path]:
    """Yield what may be experiments, deleted ones last."""
    for folder in (root, root / _TRASH):
        yield from folders(folder) if folder.is_dir() else ()


def _seems_experiment(path: Path) -> bool:
    try:
        return _experiment(path) is not None or _runs_in(path) > 0
    except SourceError:
        # it has what experiments have: opening the store says why that cannot be read
        return os.access(path / META, os.F_OK)


def _experiment(path: Path) -> dict[str, str | None] | None:
    """Return what a folder says of itself, None when it is none of an experiment."""
    said = stated(path)
    if said is None or said.get("experiment_id") != path.name or "run_id" in said:
        return None
    return said


def experiments(root: Path) -> Iterator[tuple[Path, dict[str, str | None] | SourceError]]:
    """Yield the folders of experiments with what they say of themselves or why that is not known, deleted ones last.

    A folder that says nothing of itself is one of an experiment if it holds runs.
    """
    for path in _inside(root):
        try:
            said = _experiment(path)
        except SourceError as error:
            yield path, error
            continue
        if said is not None:
            yield path, said
        elif runs := _runs_in(path):
            yield path, _without_meta(path, runs)


def _runs_in(path: Path) -> int:
    """Return how many runs a folder seems to hold; none where it cannot be listed: it may be a folder of anything."""
    with suppress(SourceError):
        runs = folders(path) if path.is_dir() else ()
        return sum(RUN_ID.fullmatch(run.name) is not None and (run / META).is_file() for run in runs)
    return 0


def stated(folder: Path) -> dict[str, str | None] | None:
    """Return what the `meta.yaml` of a folder says, None where there is none."""
    said = text(folder / META)
    return None if said is None else meta_yaml.parsed(said)


def _without_meta(path: Path, runs: int) -> SourceError:
    """Return that a folder with runs does not say which experiment it is."""
    what = (
        f"does not say that it is of experiment {path.name}, which seems to hold {runs} run{'' if runs == 1 else 's'}"
    )
    return SourceError(str(path / META), what, "restore it, or move its folder out of the store")
