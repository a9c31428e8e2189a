"""What a person names more than once, and recordings of a folder that repeat a step."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note
from gpureport.errors import SourceError
from gpureport.record_folder import RUN_FILE
from gpureport.regular_files import is_folder, path_exists

if TYPE_CHECKING:
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording, Run


def drop_repeated_sources(sources: Sequence[str]) -> list[str]:
    """Return sources without what was named before, however written; say which that is.

    One that is named beside no other stays twice: a person compares it with itself.
    """
    places = [Path(source).resolve() if path_exists(source) else None for source in sources]
    if len({place or source for place, source in zip(places, sources, strict=True)}) == 1:
        return list(sources)
    kept = []
    for number, (place, source) in enumerate(zip(places, sources, strict=True)):
        if place is not None and place in places[:number]:
            print_note(f"gpureport: {source}: named twice, counted once")
        else:
            kept.append(source)
    return kept


def drop_repeated_runs(found: "Sequence[Recording]") -> "list[Recording]":
    """Return runs without those that were named twice for one step; say which these are.

    A copy of a log, whose run has the same id, is a run of its own. A run without a step that stands beside no other
    stays twice: a person compares it with itself.
    """
    keys = [_identify(one.run) for one in found]
    if len(set(keys)) == 1 and found[0].run.step is None:
        return list(found)
    kept: dict[tuple[object, ...], Recording] = {}
    for key, one in zip(keys, found, strict=True):
        if key in kept:
            step = "" if one.run.step is None else f" for {one.run.step}"
            print_note(f"gpureport: {one.run.sources[0].locator}: named twice{step}, counted once")
        kept.setdefault(key, one)
    return list(kept.values())


def _identify(run: "Run") -> tuple[object, ...]:
    """Return what two runs share that are the same part of the same logs in the same step."""
    logs = tuple(Path(source.locator).resolve() for source in run.sources)
    return run.step, run.id, run.started, run.ended, logs


def leave_out_named_runs(readings: "Sequence[RunReading]", source: str, named: Sequence[str]) -> "list[RunReading]":
    """Return the runs of a source that no source within its folder names; say which those name.

    Args:
        readings: the runs of the source.
        source: the source; only a folder can hold others.
        named: every source that a person named.

    Raises:
        SourceError: when none is left.
    """
    if not is_folder(source):
        return list(readings)
    folder = Path(source).resolve()
    places = {other: Path(other).resolve() for other in named if path_exists(other)}
    inner = {other: place for other, place in places.items() if folder in place.parents}
    logs = [(reading, _resolve_log(reading)) for reading in readings] if inner else []
    kept = [reading for reading, log in logs if not any(_lies_in(log, place) for place in inner.values())]
    if logs and not kept:
        raise SourceError(
            source, "every run in it is named as well", "leave the folder out, or what lies in it", code="named_twice"
        )
    taken = [other for other, place in inner.items() if any(_lies_in(log, place) for _, log in logs)]
    if taken:
        print_note(f"gpureport: {source}: counted once, as named: {', '.join(taken)}")
    return kept if inner else list(readings)


def _resolve_log(reading: "RunReading") -> Path:
    """Return where the log of a run lies, as far as it is a file."""
    return Path(reading.locator).resolve()


def _lies_in(log: Path, place: Path) -> bool:
    """Return whether a place is a log, or a folder above it."""
    return place == log or place in log.parents


def label_repetitions(readings: "Sequence[RunReading]", source: str, named: Sequence[str], *, hidden: bool) -> None:
    """Label the recordings of a folder beside other sources as repetitions of one step.

    Folders that `gpureport record` did not write, and runs with a step label, stay as they are.

    Args:
        readings: the runs of the source.
        source: the source.
        named: every source that a person named.
        hidden: whether the label must not be the name of the folder.
    """
    folders = {Path(reading.locator).parent for reading in readings}
    sources = {Path(other).resolve() for other in named}
    if len(sources) < 2 or len(folders) < 2 or not is_folder(source):  # noqa: PLR2004 - several
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
    places = {Path(other).resolve() for other in named}
    return source if sum(place.name == name for place in places) > 1 else name
