"""What is known of a run beside its rows: its name, its id, and what the files beside its logs say of it."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from os.path import commonpath
from pathlib import Path

from gpureport import record_folder
from gpureport.errors import SettingsError
from gpureport.fetched_copies import name_by_url
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol.importer import Input, Labels, ReadOptions
from gpureport.label_tags import merge_pairs, override_pairs, read_environment_labels
from gpureport.record_folder import COMPRESSED_SUFFIXES, RUN_FILE, RecordedRun, read_run_file
from gpureport.recording import Run, Source

_USUAL_NAMES = {"nvidia-smi", "nvidia_smi", "gpu", "host"}
"""Common names of logs; the name of the folder says more."""
_COMPRESSED = "|".join(suffix.removeprefix(".") for suffix in COMPRESSED_SUFFIXES)
_SUFFIX = re.compile(rf"\.(?:{_COMPRESSED}|csv|log|txt|out|\d+)$|[-_.]\d{{8}}(?:[-_T]?\d{{4,6}})?$", re.IGNORECASE)


def strip_suffixes(name: str) -> str:
    """Return a file name without the suffixes of its kind, its compression and its rotation."""
    while (shorter := _SUFFIX.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def _split_path(locator: str) -> tuple[tuple[str, ...], int]:
    """Return the folders above a log and what it is called, and how many of these at the end are its name.

    A log that is called what logs of nvidia-smi are called goes by its folder. Of a numbered folder the one above comes
    before it: repetitions in `base/1` and `fast/1` are not both called 1.
    """
    path = Path(locator)
    folders = path.resolve().parent.parts[1:]
    name = strip_suffixes(path.name) if path.suffix in COMPRESSED_SUFFIXES else path.stem
    return (folders, _count_named(folders)) if name in _USUAL_NAMES and folders else ((*folders, name), 1)


def _count_named(folders: Sequence[str]) -> int:
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
    if len(logs) > 1:
        folders = Path(commonpath([Path(log.locator).resolve().parent for log in logs])).parts[1:]
        return "/".join(folders[-_count_named(folders) :]) if folders else strip_suffixes(logs[0].path.name)
    return derive_name(logs[0].locator)


def longer_names(locators: Sequence[str]) -> list[str]:
    """Return names for logs that would be called alike, with as much of their paths as tells them apart."""
    paths = [_split_path(locator) for locator in locators]
    shortest, longest = (pick((count for _, count in paths), default=1) for pick in (min, max))
    longest = max(longest, *(len(parts) for parts, _ in paths), 0)
    names = [["/".join(parts[-length:]) for parts, _ in paths] for length in range(shortest, longest + 1)]
    # of those that tell the same number apart the first is the shortest
    return max(names, key=lambda each: len(set(each)), default=[])


def make_names_distinct(runs: Sequence[Run]) -> list[Run]:
    """Return runs with distinct names: where logs give the same name, the part of the path that differs is added.

    A name that a person or a tracker gave stays, and so does that of logs whose paths do not differ.
    """
    named = list(runs)
    alike: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        locator = run.sources[0].locator if run.sources and not run.tracked else "-"
        if locator != "-" and run.name == derive_name(locator):
            alike.setdefault(run.name, []).append(place)
    for places in alike.values():
        for place, name in zip(places, longer_names([runs[each].sources[0].locator for each in places]), strict=True):
            named[place] = replace(runs[place], name=name)
    return named


def name_copies_by_url(run: Run) -> Run:
    """Return a run whose sources and notes name what was fetched from a bucket by its URL, not by its local copy."""
    sources = tuple(replace(each, locator=name_by_url(each.locator)) for each in run.sources)
    return replace(run, sources=sources, quality=replace(run.quality, notes=tuple(map(name_by_url, run.quality.notes))))


def format_identity_options(options: ReadOptions) -> str:
    """Return the options that select or place rows as the text that is part of a run's identity."""
    lines = [f"tz={options.tz or ''} gpus={options.gpus or ''}"]
    later = {name: getattr(options, name) for name in ("columns", "interval", "gpus_per_tick", "map", "as_logged")}
    return "".join(f"{line}\n" for line in (*lines, *(f"{name}={value}" for name, value in later.items() if value)))


def compute_run_id(sources: Sequence[Source], options: ReadOptions) -> str:
    """Return the run's id: from the bytes of its sources and the options that select or place rows."""
    text = "".join(f"{source.kind} {source.sha256}\n" for source in sources) + format_identity_options(options)
    return sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """How a run is read, and what the files beside its logs say of it.

    The zone is that of the recording where a person names none, and files of labels win over run files. A run is
    unfinished whose recorder has written no end.
    """

    options: ReadOptions
    labels: Labels
    notes: tuple[str, ...] = ()
    unfinished: bool = False


def read_run_files(inputs: Sequence[Input], options: ReadOptions) -> RunFacts:
    """Return how a run is read, and what the files beside its logs say of it; one that cannot be read is a note.

    A run file holds for the logs that `gpureport record` wrote beside it, whether a person names the folder or one of
    them. Neither it nor a file of labels is a source: the run's id is that of its logs, and of the zone of their rows.
    """
    recorded = dict.fromkeys(
        each.path.parent for each in inputs if record_folder.name_log(each.path) and each.locator != "-"
    )
    found = {folder: read_run_file(folder) for folder in recorded if (folder / RUN_FILE).is_file()}
    runs = [run for run in found.values() if run is not None]
    damaged = "is damaged: params, zone and exit code are not known from it."
    notes = [f"{folder / RUN_FILE} {damaged}" for folder, run in found.items() if run is None]
    notes += [note for run in runs for note in (*run.notes, *_describe_end(run))]
    zone = options.tz
    if runs and zone is None:
        zone, zone_note = _choose_zone(list(dict.fromkeys(run.timezone for run in runs)))
        notes += [zone_note] if zone_note else []
        # a log of another origin has no zone
        zone = zone if all(each.path.parent in found for each in inputs if not each.beside) else None
    params, tags = merge_pairs(run.params for run in runs), merge_pairs(_list_tags(run) for run in runs)
    # what came through a pipe lies in a folder of nobody
    logs = [each.path for each in inputs if not each.beside and Path(each.locator) == each.path]
    names, steps = {None}, {None}
    if any(path.is_file() for log in logs for path in list_label_files(log)):
        from gpureport.importers.labels import read_label_files  # noqa: PLC0415 - most logs have none

        labels, said = zip(*(read_label_files(log, list_label_files(log)) for log in logs), strict=True)
        names, steps = {each.name for each in labels}, {each.step for each in labels}
        params = override_pairs(params, merge_pairs(each.params for each in labels))
        tags = override_pairs(tags, merge_pairs(each.tags for each in labels))
        notes += [note for each in said for note in each]
    return RunFacts(
        options=replace(options, tz=zone),
        # what every log is called; nothing where two are called differently
        labels=Labels(
            name=names.pop() if len(names) == 1 else None,
            step=steps.pop() if len(steps) == 1 else None,
            params=params,
            tags=tags,
        ),
        notes=tuple(dict.fromkeys(notes)),
        unfinished=any(run.ended is None for run in runs),
    )


def list_label_files(log: Path) -> list[Path]:
    """Return where the labels of a log may stand beside it, each place before the one that wins over it."""
    places = (log.parent / record_folder.LABEL_FILE, log.with_suffix(".json"), log.with_name(f"{log.name}.json"))
    return [path for path in dict.fromkeys(places) if path != log]


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


def _describe_end(run: RecordedRun) -> Iterable[str]:
    """Yield how the recording and the job ended."""
    if run.ended is None:
        yield "The recorder was ended before the job, or is recording still: the exit code is not known."
    elif run.exit_code:
        yield f"The job ended with exit code {run.exit_code}."


def _list_tags(run: RecordedRun) -> Iterable[tuple[str, str]]:
    code = "" if run.exit_code is None else str(run.exit_code)
    pairs = (("command", shlex.join(run.command).replace("'***'", "***")), ("exit_code", code), ("host", run.host))
    yield from (pair for pair in pairs if pair[1])
    # recordings of older versions hold variables of Slurm among their params, and no tags
    yield from (dict(read_environment_labels(dict(run.params))) | dict(run.tags)).items()
