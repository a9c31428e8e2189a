"""What is known of a run beside its rows: its name, its id, and what the files beside its logs say of it."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from os.path import commonpath
from pathlib import Path
from typing import Any

from gpureport import record_folder
from gpureport.errors import SettingsError
from gpureport.fetched_copies import name_by_url
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol.importer import Input, Labels, ReadOptions
from gpureport.label_tags import merge_pairs, override_pairs, read_environment_labels
from gpureport.parsing import parse_json
from gpureport.record_folder import COMPRESSED_SUFFIXES, LABEL_FILE, RUN_FILE, RecordedRun, read_run_file
from gpureport.recording import Run

_USUAL_NAMES = {"nvidia-smi", "nvidia_smi", "gpu", "host"}
"""Common names of logs; the name of the folder says more."""
_COMPRESSED = "|".join(suffix.removeprefix(".") for suffix in COMPRESSED_SUFFIXES)
_SUFFIX = re.compile(rf"\.(?:{_COMPRESSED}|csv|log|txt|out|\d+)$|[-_.]\d{{8}}(?:[-_T]?\d{{4,6}})?$", re.IGNORECASE)
_MOST_LABEL_BYTES = 2**20


def strip_suffixes(name: str) -> str:
    """Return a file name without the suffixes of its kind, its compression and its rotation."""
    while (shorter := _SUFFIX.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def _split_path(locator: str) -> tuple[tuple[str, ...], int]:
    """Return the folders above a log and what it is called, and how many of these at the end are its name.

    A log that is called what logs of nvidia-smi are called goes by its folder.
    """
    path = Path(locator)
    folders = path.resolve().parent.parts[1:]
    name = strip_suffixes(path.name) if path.suffix in COMPRESSED_SUFFIXES else path.stem
    return (folders, _count_named(folders)) if name in _USUAL_NAMES and folders else ((*folders, name), 1)


def _count_named(folders: Sequence[str]) -> int:
    """Return how many folders at the end are a name: repetitions in `base/1` and `fast/1` are not both called 1."""
    return min(len(list(takewhile(str.isdecimal, reversed(folders)))) + 1, len(folders))


def derive_name(locator: str) -> str:
    """Return the name of a log, or of its folder where the log is called what logs of nvidia-smi are called."""
    parts, count = _split_path(locator)
    return "/".join(parts[-count:])


def name_after_logs(inputs: Sequence[Input]) -> str:
    """Return the name of a run: that of its log, or of the folder that holds its logs."""
    logs = [each for each in inputs if not each.beside and each.companion_of is None]
    if logs[0].locator == "-":
        return "standard input"
    if len(logs) == 1:
        return derive_name(logs[0].locator)
    folders = Path(commonpath([Path(log.locator).resolve().parent for log in logs])).parts[1:]
    return "/".join(folders[-_count_named(folders) :]) if folders else strip_suffixes(logs[0].path.name)


def longer_names(locators: Sequence[str]) -> list[str]:
    """Return names for logs that would be called alike, with as much of their paths as tells them apart."""
    paths = [_split_path(locator) for locator in locators]
    shortest = min((count for _, count in paths), default=1)
    longest = max((len(parts) for parts, _ in paths), default=0)
    names = [["/".join(parts[-length:]) for parts, _ in paths] for length in range(shortest, longest + 1)]
    # of those that tell the same number apart the first is the shortest
    return max(names, key=lambda each: len(set(each)), default=[])


def lengthen_equal_names(named: Sequence[tuple[str, str | None]]) -> list[str]:
    """Return names of runs, those that several logs share with the part of their paths that differs.

    Args:
        named: each name with the path of the log that gave it, None for a name that stays.
    """
    alike: dict[str, list[int]] = {}
    for place, (name, locator) in enumerate(named):
        if locator is not None:
            alike.setdefault(name, []).append(place)
    names = [name for name, _ in named]
    for places in (places for places in alike.values() if len(places) > 1):
        for place, name in zip(places, longer_names([named[each][1] or "" for each in places]), strict=True):
            names[place] = name
    return names


def make_names_distinct(runs: Sequence[Run]) -> list[Run]:
    """Return runs with distinct names; a name that a person or a tracker gave stays."""
    locators = [run.sources[0].locator if run.sources and not run.tracked else "-" for run in runs]
    logs = [
        None if each == "-" or run.name != derive_name(each) else each for run, each in zip(runs, locators, strict=True)
    ]
    names = lengthen_equal_names([(run.name, log) for run, log in zip(runs, logs, strict=True)])
    return [run if run.name == name else replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def name_copies_by_url(run: Run) -> Run:
    """Return a run whose sources and notes name what was fetched from a bucket by its URL, not by its local copy."""
    sources = tuple(replace(each, locator=name_by_url(each.locator)) for each in run.sources)
    return replace(run, sources=sources, quality=replace(run.quality, notes=tuple(map(name_by_url, run.quality.notes))))


def compute_run_id(sources: Iterable[str], options: ReadOptions) -> str:
    """Return a run's id: from its sources, a line each, and the options that select or place rows."""
    later = {name: getattr(options, name) for name in ("columns", "interval", "gpus_per_tick", "map", "as_logged")}
    placed = [f"tz={options.tz or ''} gpus={options.gpus or ''}"]
    placed += [f"{name}={value}" for name, value in later.items() if value]
    return sha256("".join(f"{line}\n" for line in (*sources, *placed)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """How a run is read, what the files beside its logs say of it, and whether its recorder has written no end."""

    options: ReadOptions
    labels: Labels
    notes: tuple[str, ...] = ()
    unfinished: bool = False


def read_run_files(inputs: Sequence[Input], options: ReadOptions) -> RunFacts:
    """Return how a run is read, and what the files beside its logs say of it; one that cannot be read is a note.

    A run file holds for the logs that `gpureport record` wrote beside it. Its zone is that of the run where a person
    names none, and files of labels win over it. None of these files is a source, so none changes the run's id.
    """
    recorded = [each.path.parent for each in inputs if record_folder.name_log(each.path) and each.locator != "-"]
    found = {each: read_run_file(each) for each in dict.fromkeys(recorded) if (each / RUN_FILE).is_file()}
    runs = [run for run in found.values() if run is not None]
    damaged = "is damaged: params, zone and exit code are not known from it."
    notes = [f"{folder / RUN_FILE} {damaged}" for folder, run in found.items() if run is None]
    for run in runs:
        notes += run.notes
        if run.ended is None:
            notes.append("The recorder was ended before the job, or is recording still: the exit code is not known.")
        elif run.exit_code:
            notes.append(f"The job ended with exit code {run.exit_code}.")
    if runs and options.tz is None:
        zone, note = _choose_zone(list(dict.fromkeys(run.timezone for run in runs)))
        notes += [note] if note else []
        # a log of another origin has no zone
        if all(each.path.parent in found for each in inputs if not each.beside):
            options = replace(options, tz=zone)
    # what came through a pipe lies in a folder of nobody
    logs = [each.path for each in inputs if not each.beside and Path(each.locator) == each.path]
    labels = [_read_label_files(log, notes) for log in logs]
    names, steps = ({getattr(each, key) for each in labels} or {None} for key in ("name", "step"))
    return RunFacts(
        options=options,
        # what every log is called; nothing where two are called differently
        labels=Labels(
            name=names.pop() if len(names) == 1 else None,
            step=steps.pop() if len(steps) == 1 else None,
            params=override_pairs(merge_pairs(run.params for run in runs), merge_pairs(each.params for each in labels)),
            tags=override_pairs(merge_pairs(map(_list_tags, runs)), merge_pairs(each.tags for each in labels)),
        ),
        notes=tuple(dict.fromkeys(notes)),
        unfinished=any(run.ended is None for run in runs),
    )


def list_label_files(log: Path) -> list[Path]:
    """Return where the labels of a log may stand beside it, each place before the one that wins over it."""
    places = (log.parent / LABEL_FILE, log.with_suffix(".json"), log.with_name(f"{log.name}.json"))
    return [path for path in dict.fromkeys(places) if path != log]


def _read_label_files(log: Path, notes: list[str]) -> Labels:
    """Return what files of labels beside a log say; note those that are none although their name says so."""
    labels = Labels()
    for path in filter(Path.is_file, list_label_files(log)):
        content, fault = None, "not an object with name, step, params and tags, and nothing else"
        try:
            if path.stat().st_size > _MOST_LABEL_BYTES:
                fault = "too large"
            else:
                content = parse_json(path.read_text(encoding="utf-8-sig"), parse_number=str)
        except (OSError, ValueError, RecursionError):
            fault = "damaged"
        if (found := _parse_labels(content)) is not None:
            labels = Labels(
                name=found.name or labels.name,
                step=found.step or labels.step,
                params=override_pairs(labels.params, found.params),
                tags=override_pairs(labels.tags, found.tags),
            )
        elif path.name in {LABEL_FILE, f"{log.name}.json"}:
            notes.append(f"{path.name} is not read as labels: it is {fault}.")
    return labels


def _parse_labels(content: Any) -> Labels | None:
    """Return labels; None where a key is unknown, or a value is neither a text, a number nor a truth value."""
    if not content or not isinstance(content, dict):
        return None
    parts = [content.pop("params", {}), content.pop("tags", {}), content]
    if set(content) - {"name", "step"} or not all(isinstance(part, dict) for part in parts):
        return None
    if not all(isinstance(value, str | bool | None) for part in parts for value in part.values()):
        return None
    params, tags, own = (
        {name: str(value).lower() if isinstance(value, bool) else value for name, value in part.items() if name}
        for part in parts
    )
    pairs = [tuple((name, value) for name, value in part.items() if value) for part in (params, tags)]
    return Labels(name=own.get("name") or None, step=own.get("step") or None, params=pairs[0], tags=pairs[1])


def _choose_zone(named: Sequence[str]) -> tuple[str | None, str]:
    """Return the zone of the stamps, None where it is not known, and what to note of it."""
    if len(named) > 1:
        return None, f"The recordings were made in different zones ({', '.join(named)}): their stamps are not moved."
    zone, note = named[0], ""
    # whole hours; the signs in the official names of such zones are turned round
    if hours := re.fullmatch(r"([+-])(\d\d):00", zone):
        zone = f"Etc/GMT{'-' if hours[1] == '+' else '+'}{int(hours[2])}" if int(hours[2]) else "UTC"
        if zone != "UTC":
            note = f"The machine recorded at UTC{named[0]}; the official name of that zone is {zone}."
    if not zone:
        return None, ""
    try:
        load_zone(zone)
    except SettingsError:
        return None, f"{RUN_FILE} names the zone {named[0]}, which is not known here; give --tz."
    return zone, note


def _list_tags(run: RecordedRun) -> Iterable[tuple[str, str]]:
    code = "" if run.exit_code is None else str(run.exit_code)
    pairs = (("command", shlex.join(run.command).replace("'***'", "***")), ("exit_code", code), ("host", run.host))
    yield from (pair for pair in pairs if pair[1])
    # recordings of older versions hold variables of Slurm among their params, and no tags
    yield from (dict(read_environment_labels(dict(run.params))) | dict(run.tags)).items()
