"""Which files are one run: logs of one machine and the same minutes, a log a node, and what lies beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import HOST_IMPORTERS, IMPORTERS, Input, Outcome, ReadOptions, TrainingFile
from gpureport.importers.sources import (
    identify,
    identify_companion,
    list_gpu_logs,
    list_in_folder,
    list_training_logs,
)
from gpureport.importers.surveys import Log, any_overlap, shared_time, survey_log
from gpureport.regular_files import is_folder

if TYPE_CHECKING:
    from gpureport.importers.grouping import Group

_NO_SHARED_TIME = "shares no time with a GPU log"
_OTHER_ZONE = "its times name a zone and those of the GPU logs none, or the other way round; give it with --tz"
_SEVERAL_RUNS = "may belong to any of several runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """For each source its runs, each as its main logs, companions and host logs; host logs of no run, and why.

    A source whose logs all belong to runs of other sources has none.
    """

    runs: list[list[list[Input]]]
    unused: dict[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class GivenLog:
    """A GPU log, the place of the source that it comes from (None where --host names it), and the folder searched."""

    given: Input
    source: int | None
    folder: Path | None

    @cached_property
    def path(self) -> Path:
        """The file, whatever name it is given by."""
        return self.given.path.resolve()


def find_source_runs(
    sources: Sequence[str | Path],
    host: Sequence[str | Path] = (),
    *,
    kind: str | None = None,
    options: ReadOptions | None = None,
    steps: bool = False,
) -> FoundRuns:
    """Return the runs of several sources: files, folders, or `-`.

    A person names with `host` host logs, or GPU logs to join to another one, and with `kind` the importer that reads a
    file whatever its content looks like. Logs of `steps` to compare, of different GPUs or all of one run, stay apart.

    Raises:
        SourceError: when there is no log, a file is of no known kind, or one that was named belongs to no run.
    """
    options = options or ReadOptions()
    logs, hosts = _find_logs(sources, host, kind)
    named = {log.path for log in logs if log.source is not None}
    if twice := next((log.given.locator for log in logs if log.source is None and log.path in named), None):
        raise SourceError(twice, "named as a source and with --host", "name every log once", code="given_twice")
    runs: list[list[list[Input]]] = [[] for _ in sources]
    searched: dict[Path, list[list[Input]]] = {}
    flat: list[list[Input]] = []
    for group in _group_given(logs, options, steps=steps):
        inputs = [log.given for log in group]
        runs[next(log.source for log in group if log.source is not None)].append(inputs)
        flat.append(inputs)
        if group[0].folder is not None:
            searched.setdefault(group[0].given.path.parent, []).append(inputs)
    refused = _place_hosts(hosts, flat, options)
    for inputs in flat:
        # one that shares no time with any run is refused when it is read
        inputs += [each for each in hosts if each.path in refused]
    unused: dict[Path, str] = {}
    used = {each.path for inputs in flat for each in inputs}
    for folder, inside in searched.items() if not hosts else ():
        unused |= _place_hosts(list(list_in_folder(folder, HOST_IMPORTERS.kinds, used)), inside, options)
    return FoundRuns(runs=runs, unused=unused)


def find_run_logs(
    sources: Sequence[str | Path],
    host: Sequence[str | Path] = (),
    kind: str | None = None,
    options: ReadOptions | None = None,
) -> list[Input]:
    """Return all logs of several sources, then the files beside them, as the inputs of one run.

    Logs that only add metrics to another one, as dmon beside a query, are companions of it. Host files named by a
    person win over those found; the rest as in `find_source_runs`.

    Raises:
        SourceError: when there is no log, a file is of no known kind, or one is named twice.
    """
    options = options or ReadOptions()
    logs, hosts = _find_logs(sources, host, kind)
    if not hosts:
        found, folders = {log.given.path for log in logs}, {log.folder: 0 for log in logs if log.folder is not None}
        hosts = [each for folder in folders for each in list_in_folder(folder, HOST_IMPORTERS.kinds, found)]
    seen: set[Path] = set()
    for each in (*(log.given for log in logs), *hosts):
        if each.path.resolve() in seen:
            raise SourceError(each.locator, "named twice for one run", "name every log once", code="given_twice")
        seen.add(each.path.resolve())
    from gpureport.importers.grouping import group_logs  # noqa: PLC0415 - as below

    groups = group_logs(logs, options, only_adding=True)
    joined = {log.given: (log, main) for group in groups for log, main in group.items() if main is not None}
    mains = [log.given for log in logs if log.given not in joined]
    companions = sorted(joined.values(), key=lambda each: each[0].rank)
    return [*mains, *(replace(log.given, companion_of=mains.index(main.given)) for log, main in companions), *hosts]


def _find_logs(
    sources: Sequence[str | Path], host: Sequence[str | Path], kind: str | None
) -> tuple[list[GivenLog], list[Input]]:
    """Return the GPU logs of sources, then those that --host names, and the host logs that it names."""
    named = [identify_companion(str(path)) for path in host]
    logs: list[GivenLog] = []
    for place, source in enumerate(sources):
        if is_folder(source):
            logs += [GivenLog(given, place, given.path.parent) for given in list_gpu_logs(Path(source))]
        else:
            logs.append(GivenLog(identify(str(source), kind=kind), place, None))
    logs += [GivenLog(each, None, None) for each in named if not each.beside]
    return logs, [each for each in named if each.beside]


def _group_given(logs: Sequence[GivenLog], options: ReadOptions, *, steps: bool) -> list[list[GivenLog]]:
    """Return the logs of each run, the main ones first, in the order of its first one."""
    # logs of two folders that were searched are never one run
    is_searched = all(log.folder is not None for log in logs)
    parts: dict[Path | None, list[GivenLog]] = {}
    for log in logs:
        parts.setdefault(log.folder if is_searched else None, []).append(log)
    by_input = {log.given: log for log in logs}
    places = {log: place for place, log in enumerate(logs)}
    groups: list[Group] = []
    if any(len(own) > 1 for own in parts.values()):
        from gpureport.importers.grouping import attach_named, group_logs  # noqa: PLC0415 - most folders hold one log

        groups = [group for own in parts.values() for group in group_logs(own, options, steps=steps)]
        groups = attach_named(groups, [log.given for log in logs if log.source is None])
    sourced = [log for log in logs if log.source is not None]
    if steps and len(groups) == 1 < len(sourced):
        # nothing would be left to compare
        extra = [_as_companion(log, 0) for log in logs if log.source is None]
        return [[sourced[0], *extra], *([log] for log in sourced[1:])]
    runs: list[list[GivenLog]] = []
    for group in groups:
        adding = [(by_input[log.given], by_input[main.given]) for log, main in group.items() if main is not None]
        mains = sorted((by_input[log.given] for log, main in group.items() if main is None), key=places.__getitem__)
        runs.append([*mains, *(_as_companion(log, mains.index(main)) for log, main in adding)])
    joined = {log.given for group in groups for log in group}
    runs += [[log] for log in logs if log.given not in joined]
    return sorted(runs, key=lambda run: places[run[0]])


def _as_companion(log: GivenLog, place: int) -> GivenLog:
    return replace(log, given=replace(log.given, companion_of=place))


def _place_hosts(hosts: Sequence[Input], runs: Sequence[list[Input]], options: ReadOptions) -> dict[Path, str]:
    """Add each host log to the runs whose time it shares; return why others belong to none. A single run has all."""
    if len(runs) == 1:
        runs[0].extend(hosts)
    if len(runs) == 1 or not hosts:
        return {}
    unused: dict[Path, str] = {}
    times = {place: run for place, run in _read_times(runs, options).items() if not run.has_host}
    for host in hosts:
        alone = _read_outcome(host, options)
        # a file that writes no date, or one that can be read in two ways, is dated by each run
        is_dated = alone is not None and not alone.quality.rejected and not alone.quality.notes
        told = {
            place: alone if is_dated else _read_outcome(host, options.for_companion(run.span))
            for place, run in times.items()
        }
        chosen = _choose_runs(times, told, options)
        if isinstance(chosen, str):
            unused[host.path] = chosen
        else:
            for place in chosen:
                runs[place].append(host)
    return unused


def _read_times(runs: Sequence[Sequence[Input]], options: ReadOptions) -> dict[int, Outcome]:
    """Return what is known of the runs that have times, by their places."""
    found = {place: survey_log(inputs[0], options) for place, inputs in enumerate(runs)}
    return {place: log.outcome for place, log in found.items() if log is not None}


def _read_outcome(given: Input, options: ReadOptions) -> Outcome | None:
    try:
        return Log(given, options).outcome
    except SourceError:
        return None


def _choose_runs(runs: dict[int, Outcome], told: dict[int, Outcome | None], options: ReadOptions) -> list[int] | str:
    """Return the places of the runs whose time a file shares, or why it belongs to none.

    Runs one after the other may share a file; of several at the same time it may be any. What is `told` of the file is
    what is known of it when it is read beside that run, None where it has no time.
    """
    known = {place: outcome for place, outcome in told.items() if outcome is not None}
    comparable = [
        place
        for place, outcome in known.items()
        if options.tz or (outcome.timezone is None) == (runs[place].timezone is None)
    ]
    found = [place for place in comparable if shared_time(runs[place].span, known[place].span) >= 0]
    if not found:
        return _OTHER_ZONE if len(comparable) < len(known) else _NO_SHARED_TIME
    return _SEVERAL_RUNS if any_overlap([runs[place].span for place in found]) else found


def assign_training_logs(
    files: Sequence[TrainingFile], runs: Sequence[Sequence[Input]], options: ReadOptions
) -> list[list[TrainingFile]]:
    """Return for each run the training logs whose time it shares; a single run has all.

    Raises:
        SourceError: when a log belongs to none, or may belong to any of several.
    """
    if len(runs) == 1:
        return [list(files)]
    from gpureport.importers.source_text import RawFile  # noqa: PLC0415 - most runs have none
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - as above

    found: list[list[TrainingFile]] = [[] for _ in runs]
    times = _read_times(runs, options) if files else {}
    started = min((outcome.span[0] for outcome in times.values()), default=0)
    for file in files:
        try:
            read = TrainingLog().read(RawFile(file.path), options, started, file.locator)
            outcome = read.outcome if read.dated else None
        except SourceError:
            outcome = None
        chosen = _choose_runs(times, dict.fromkeys(times, outcome), options)
        if isinstance(chosen, str):
            hint = "give it with --training, or leave it out"
            raise SourceError(file.locator, f"a training log that {chosen}", hint, code="training_log_of_no_run")
        for place in chosen:
            found[place].append(file)
    return found


def find_training_logs(sources: Sequence[str | Path], runs: Sequence[Sequence[Input]]) -> list[list[TrainingFile]]:
    """Return for each run the training logs in its folder, where that holds no other run; each has its source."""
    logs: dict[Path, set[Path]] = {}
    for each in (each for inputs in runs for each in inputs if not each.beside):
        logs.setdefault(each.path.parent, set()).add(each.path)
    found: list[list[TrainingFile]] = []
    for source, inputs in zip(sources, runs, strict=True):
        folder, used = inputs[0].path.parent, {each.path for each in inputs}
        # what is known of the logs in each folder spares listing one with many
        is_alone = is_folder(source) and all(each.path.parent == folder for each in inputs) and logs[folder] <= used
        is_alone = is_alone and not any(list_in_folder(folder, IMPORTERS.kinds, used))
        found.append(list_training_logs(folder, used) if is_alone else [])
    return found
