"""Runs in a folder that a person names: those that another source names as well, and recordings that repeat a step."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note
from gpureport.errors import SourceError
from gpureport.record_folder import RUN_FILE

if TYPE_CHECKING:
    from gpureport.importers import CutReading, Reading, TrackedReading

    AnyReading = Reading | TrackedReading | CutReading


def leave_out_named_runs(readings: "Sequence[AnyReading]", source: str, named: Sequence[str]) -> "list[AnyReading]":
    """Return the runs of a source without those that a source within its folder names; say which these are.

    Args:
        readings: the runs of the source.
        source: the source; only a folder can hold others.
        named: every source that a person named.

    Raises:
        SourceError: when none is left.
    """
    folder = Path(source)
    if not folder.is_dir():
        return list(readings)
    inner = [other for other in named if Path(other).exists() and folder.resolve() in Path(other).resolve().parents]
    kept = [reading for reading in readings if not any(_lies_in(reading, other) for other in inner)]
    if readings and not kept:
        raise SourceError(source, "every run in it is named as well", "leave the folder out, or what lies in it")
    taken = [other for other in inner if any(_lies_in(reading, other) for reading in readings)]
    if taken:
        print_note(f"gpureport: {source}: counted once, as named: {', '.join(dict.fromkeys(taken))}")
    return kept


def _lies_in(reading: "AnyReading", source: str) -> bool:
    """Return whether a source is the log of a run, or a folder above it."""
    log, place = Path(reading.locator).resolve(), Path(source).resolve()
    return place == log or place in log.parents


def label_repetitions(readings: "Sequence[AnyReading]", source: str, named: Sequence[str], *, hidden: bool) -> None:
    """Label the recordings of a folder as repetitions of one step, where it stands beside other sources.

    A folder that `gpureport record` did not write into, and runs with a step label, stay as they are.

    Args:
        readings: the runs of the source.
        source: the source.
        named: every source that a person named.
        hidden: whether the label must not be the name of the folder.
    """
    folders = {Path(reading.locator).parent for reading in readings}
    if len(set(named)) < 2 or len(folders) < 2 or not Path(source).is_dir():  # noqa: PLR2004 - several
        return
    if not all((folder / RUN_FILE).is_file() for folder in folders):
        return
    label = f"step_{named.index(source) + 1}" if hidden else _name_step(source, named)
    for reading in readings:
        if not (reading.labels.step or reading.file_labels.step):
            reading.labels = replace(reading.labels, step=label)


def _name_step(source: str, named: Sequence[str]) -> str:
    """Return the name of a folder, or its whole path where another source ends alike."""
    name = Path(source).resolve().name
    return source if sum(Path(other).resolve().name == name for other in set(named)) > 1 else name
