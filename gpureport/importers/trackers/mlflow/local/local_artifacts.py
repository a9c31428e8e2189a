"""Artifacts of a run in a folder of this machine."""

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpureport.regular_files import lies_within


def find_artifact_folder(uri: str, beside: Iterable[Path]) -> Path | None:
    """Return the folder in which artifacts lie; None where they are not on this machine.

    Args:
        uri: where MLflow says they lie; a store that was moved keeps where it was.
        beside: where they lie in a store that was moved.
    """
    said = parse_folder_uri(uri)
    places = [*([] if said is None else [said]), *beside]
    return next((path for path in places if _is_folder(path)), None)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        # a name that is too long, or holds NUL
        return False


def parse_folder_uri(uri: str) -> Path | None:
    """Return the folder that a URI of artifacts names, there or not; None where it is of another kind, or relative."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        # no URI at all
        return None
    said = {"file": unquote(parts.path), "": uri}.get(parts.scheme)
    return Path(said) if said and Path(said).is_absolute() else None


def resolve_relative_uri(uri: str, store: Path) -> list[Path]:
    """Return the folder that a relative URI names beside a store; none where it is not relative.

    MLflow takes such a URI as seen from wherever it was started, which is the folder of its store as a rule.
    """
    try:
        relative = bool(uri) and not urlsplit(uri).scheme and not Path(uri).is_absolute()
    except ValueError:
        return []
    return [store.parent / uri] if relative else []


def list_artifacts(root: Path | None, below: str) -> list[str]:
    """Return the names of the files in a folder of artifacts, sorted; none where there is no such folder."""
    if root is None or not (root / below).is_dir():
        return []
    return sorted(
        f"{below}/{each.name}"
        for each in os.scandir(root / below)
        if each.is_file() and lies_within(Path(each.path), root)
    )
