"""What files beside its logs say of a run: the run file of a recording, and files of labels.

A run file holds for the logs that `gpureport record` wrote beside it, whether a person names the folder or one of them.
Neither is a source: the run's id is that of its logs, and of the zone that places their rows.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpureport import record_folder
from gpureport.errors import SettingsError
from gpureport.importers.protocol.importer import Input, Labels, ReadOptions
from gpureport.importers.timebase import zones
from gpureport.label_tags import merge_pairs, override_pairs, read_environment_labels
from gpureport.record_folder import RecordedRun, read_run_file

_OFFSET = re.compile(r"([+-])(\d\d):00")
"""Whole hours; the signs in the official names of such zones are turned round."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """How a run is read, and what the files beside its logs say of it.

    Attributes:
        options: how rows are placed; the zone is that of the recording where a person names none.
        labels: name, step, params and tags; files of labels win over run files.
        notes: what a reader must know.
        unfinished: whether a recorder has written no end.
    """

    options: ReadOptions
    labels: Labels
    notes: tuple[str, ...] = ()
    unfinished: bool = False


def read_run_files(inputs: Sequence[Input], options: ReadOptions) -> RunFacts:
    """Return how a run is read, and what the files beside its logs say of it.

    A file that cannot be read is a note.
    """
    recorded = _read_recordings(inputs, options)
    # what came through a pipe lies in a folder of nobody
    logs = [each.path for each in inputs if not each.beside and Path(each.locator) == each.path]
    if not any(
        (log.parent / record_folder.LABEL_FILE).is_file()
        or log.with_suffix(".json").is_file()
        or log.with_name(f"{log.name}.json").is_file()
        for log in logs
    ):
        return recorded
    from gpureport.importers.labels import read_label_files  # noqa: PLC0415 - most logs have none

    labels, notes = zip(*(read_label_files(log) for log in logs), strict=True)
    return RunFacts(
        options=recorded.options,
        labels=Labels(
            name=_agreed(each.name for each in labels),
            step=_agreed(each.step for each in labels),
            params=override_pairs(recorded.labels.params, merge_pairs(each.params for each in labels)),
            tags=override_pairs(recorded.labels.tags, merge_pairs(each.tags for each in labels)),
        ),
        notes=tuple(dict.fromkeys((*recorded.notes, *(note for each in notes for note in each)))),
        unfinished=recorded.unfinished,
    )


def _agreed(values: Iterable[str | None]) -> str | None:
    """Return what every log of a run is called, None where two are called differently."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _read_recordings(inputs: Sequence[Input], options: ReadOptions) -> RunFacts:
    """Return how a run is read, and its params and tags, by the run files beside its logs."""
    folders = dict.fromkeys(
        each.path.parent for each in inputs if record_folder.name_log(each.path) and each.locator != "-"
    )
    found = {folder: read_run_file(folder) for folder in folders if (folder / record_folder.RUN_FILE).is_file()}
    runs = [run for run in found.values() if run is not None]
    notes = [
        f"{folder / record_folder.RUN_FILE} is damaged: params, zone and exit code are not known from it."
        for folder, run in found.items()
        if run is None
    ]
    if not runs:
        return RunFacts(options=options, labels=Labels(), notes=tuple(notes))
    notes += [note for run in runs for note in _describe_end(run)]
    zone, zone_note = _choose_zone(runs) if options.tz is None else (options.tz, "")
    is_everywhere = all(each.path.parent in found for each in inputs if not each.beside)
    return RunFacts(
        options=replace(options, tz=zone) if is_everywhere else options,
        labels=Labels(params=merge_pairs(run.params for run in runs), tags=merge_pairs(_tags(run) for run in runs)),
        notes=(*notes, *([zone_note] if zone_note else [])),
        unfinished=any(run.ended is None for run in runs),
    )


def _choose_zone(runs: Sequence[RecordedRun]) -> tuple[str | None, str]:
    """Return the zone of the stamps, None where it is not known, and what to note of it."""
    named = list(dict.fromkeys(run.timezone for run in runs))
    if len(named) > 1:
        return None, f"The recordings were made in different zones ({', '.join(named)}): their stamps are not moved."
    if not named[0]:
        return None, ""
    name, note = _name_offset(named[0])
    try:
        zones.load_zone(name)
    except SettingsError:
        return None, f"{record_folder.RUN_FILE} names the zone {named[0]}, which is not known here; give --tz."
    return name, note


def _name_offset(zone: str) -> tuple[str, str]:
    """Return the name of the zone of an offset such as `+02:00`, and what to note of it; other names as they are."""
    hours = _OFFSET.fullmatch(zone)
    if hours is None:
        return zone, ""
    if not int(hours[2]):
        return "UTC", ""
    name = f"Etc/GMT{'-' if hours[1] == '+' else '+'}{int(hours[2])}"
    return name, f"The machine recorded at UTC{zone}; the official name of that zone is {name}."


def _describe_end(run: RecordedRun) -> Iterable[str]:
    """Yield what the recorder noted, and how the recording and the job ended."""
    yield from run.notes
    if run.ended is None:
        yield "The recorder was ended before the job, or is recording still: the exit code is not known."
    elif run.exit_code:
        yield f"The job ended with exit code {run.exit_code}."


def _tags(run: RecordedRun) -> Pairs:
    code = "" if run.exit_code is None else str(run.exit_code)
    pairs = (("command", shlex.join(run.command).replace("'***'", "***")), ("exit_code", code), ("host", run.host))
    # recordings of older versions hold variables of Slurm among their params, and no tags
    labels = dict(read_environment_labels(dict(run.params))) | dict(run.tags)
    return (*((name, value) for name, value in pairs if value), *labels.items())
