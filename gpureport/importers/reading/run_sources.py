"""Which files make which run, where several GPU logs are given or lie in a folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.merging.grouped_logs import LogGroup
from gpureport.importers.merging.log_groups import group_logs, match_devices, shared_time
from gpureport.importers.merging.log_survey import LogSurvey, survey_log
from gpureport.importers.protocol.importer import Input, ReadOptions, TrainingFile
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS
from gpureport.importers.protocol.time_bases import format_span
from gpureport.importers.reading.folders import find_hosts_in_folder, find_logs_in_folder
from gpureport.importers.reading.shared_times import RunTimes, choose_runs, read_host_times, read_training_times
from gpureport.importers.reading.sources import identify
from gpureport.regular_files import is_folder

_FEWEST = 2
"""Logs that can be joined at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """The runs of several sources.

    Attributes:
        runs: for each source its runs, each as its main log followed by its companions and host logs. A source whose
            logs all belong to runs of other sources has none.
        unused: host logs that belong to no run, and why.
    """

    runs: list[list[list[Input]]]
    unused: dict[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _GivenLog:
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
    """Return the runs of several sources: logs of one machine and the same minutes are one.

    Args:
        sources: files, folders, or `-`.
        host: host logs, or GPU logs to join to another one.
        kind: name of the importer that reads a file whatever its content looks like.
        options: how rows are placed.
        steps: whether sources are steps to compare: logs of different GPUs, and all of one run, stay apart.

    Raises:
        SourceError: when there is no log, a file is of no known kind, or one that was named belongs to no run.
    """
    options = options or ReadOptions()
    named = [identify_companion(str(path)) for path in host]
    logs = [log for place, source in enumerate(sources) for log in _find_logs(place, source, kind)]
    logs += [_GivenLog(given, None, None) for given in named if not given.beside]
    _refuse_repeated(named, logs)
    surveys: dict[Input, LogSurvey | None] = {}
    groups = _group(logs, options, surveys, steps=steps)
    runs: list[list[list[Input]]] = [[] for _ in sources]
    flat: list[tuple[list[Input], bool]] = []
    for group in groups:
        main, *companions = group
        inputs = [main.given, *(replace(each.given, companion_of=0) for each in companions)]
        place = next(each.source for each in group if each.source is not None)
        runs[place].append(inputs)
        flat.append((inputs, main.folder is not None))
    hosts = _HostLogs(options, surveys)
    hosts.add_named([each for each in named if each.beside], [inputs for inputs, _ in flat])
    if not any(each.beside for each in named):
        hosts.add_found([inputs for inputs, searched in flat if searched])
    return FoundRuns(runs=runs, unused=hosts.unused)


def identify_companion(path: str) -> Input:
    """Return a file that `--host` names: a host log, or a GPU log to join.

    Raises:
        SourceError: when it is neither.
    """
    try:
        return identify(path, HOST_IMPORTERS)
    except SourceError as error:
        try:
            return identify(path, IMPORTERS)
        except SourceError:
            raise error from None


def _find_logs(place: int, source: str | Path, kind: str | None) -> Iterator[_GivenLog]:
    if is_folder(source):
        for given in find_logs_in_folder(Path(source)):
            yield _GivenLog(given, place, given.path.parent)
    else:
        yield _GivenLog(identify(str(source), kind=kind), place, None)


def _refuse_repeated(named: Sequence[Input], logs: Sequence[_GivenLog]) -> None:
    """Refuse a file that is a source and named with --host as well; one that holds GPUs and machine may be both."""
    sources = {log.path for log in logs if log.source is not None}
    for each in named:
        if not each.beside and each.path.resolve() in sources:
            raise SourceError(
                each.locator, "named as a source and with --host", "name every log once", code="given_twice"
            )


def _group(
    logs: Sequence[_GivenLog], options: ReadOptions, surveys: dict[Input, LogSurvey | None], *, steps: bool
) -> list[list[_GivenLog]]:
    """Return the logs of each run, its main log first, runs in the order of these."""
    partnered = _list_partnered(logs)
    if len(partnered) < _FEWEST:
        return [[log] for log in logs]
    by_input = {log.given: log for log in logs}
    by_folder: dict[Path | None, list[LogSurvey]] = {}
    is_searched = all(log.folder is not None for log in partnered)
    for log in partnered:
        surveys[log.given] = survey_log(log.given, options)
        if (survey := surveys[log.given]) is not None:
            # logs of two folders that were searched are never one run
            by_folder.setdefault(log.folder if is_searched else None, []).append(survey)
    groups = [
        group
        for known in by_folder.values()
        for group in group_logs(
            known,
            zone_known=options.tz is not None,
            may_join=lambda one, other: (
                one.sha256 != other.sha256 and _may_join(by_input[one.given], by_input[other.given])
            ),
            may_add_gpus=lambda one, other: not steps and one.given.path.parent == other.given.path.parent,
        )
    ]
    groups = _attach_named(groups, by_input)
    found = [[by_input[survey.given] for survey in group.logs] for group in groups]
    if steps and len(groups) < _FEWEST <= sum(log.source is not None for log in logs):
        # nothing would be left to compare
        found = [[log] for log in logs if log.source is not None]
        found[0] += [log for log in logs if log.source is None]
    joined = {log for group in found for log in group}
    found += [[log] for log in logs if log not in joined]
    if lost := next((group[0] for group in found if all(log.source is None for log in group)), None):
        raise SourceError(
            lost.given.locator,
            "its rows have no time stamps, so it joins no other log",
            _AS_SOURCE,
            code="no_timestamps",
        )
    places = {log: place for place, log in enumerate(logs)}
    return sorted(found, key=lambda group: places[group[0]])


_AS_SOURCE = "give it as a source of its own, or leave it out"


def _list_partnered(logs: Sequence[_GivenLog]) -> list[_GivenLog]:
    """Return the logs that may join another one: of a folder with several, or beside one named by itself."""
    files: dict[Path | None, set[Path]] = {None: set()}
    for log in logs:
        files.setdefault(log.folder, set()).add(log.path)
    several = {folder for folder, own in files.items() if len(own | files[None]) > 1}
    if len({log.path for log in logs}) > 1:
        several.add(None)
    return [log for log in logs if log.folder in several]


def _may_join(one: _GivenLog, other: _GivenLog) -> bool:
    """Return whether two logs lie in one folder, or either is named by itself."""
    if one is other or one.path == other.path:
        return False
    return one.folder == other.folder or one.folder is None or other.folder is None


def _attach_named(groups: list[LogGroup], by_input: dict[Input, _GivenLog]) -> list[LogGroup]:
    """Return the runs after joining logs that `--host` names, which a person says belong to one.

    Raises:
        SourceError: when one shares no time or no GPU with any run.
    """
    own = [group for group in groups if all(by_input[log.given].source is None for log in group.logs)]
    runs = [group for group in groups if group not in own]
    for log in (log for group in own for log in group.logs):
        near = [group for group in runs if shared_time(group.main.span, log.span) >= 0]
        if not near:
            times = f"it covers {format_span(log.span)}, and {runs[0].main.given.locator} covers "
            raise SourceError(
                log.given.locator,
                f"{times}{format_span(runs[0].main.span)}",
                "check its clock, give --tz, or leave it out",
                code="no_shared_time",
            )
        alike = [group for group in near if match_devices(group.main.gpus, log.gpus)]
        if len(alike) != 1:
            what = "it may belong to any of several runs" if alike else "it holds other GPUs than the run of its time"
            raise SourceError(log.given.locator, what, _AS_SOURCE, code="joins_no_run")
        alike[0].companions.append(log)
    return runs


class _HostLogs:
    """Host logs on their way to the runs whose time they share."""

    def __init__(self, options: ReadOptions, surveys: dict[Input, LogSurvey | None]) -> None:
        self._options = options
        self._surveys = surveys
        self.unused: dict[Path, str] = {}

    def add_named(self, hosts: Sequence[Input], runs: Sequence[list[Input]]) -> None:
        """Join host logs that a person named; one that shares no time with any run is refused when it is read."""
        for host, chosen in self._choose(hosts, runs):
            for place in range(len(runs)) if isinstance(chosen, str) else chosen:
                runs[place].append(host)

    def add_found(self, runs: Sequence[list[Input]]) -> None:
        """Join the host logs in the folder of each run; what may belong to any of several joins none."""
        by_folder: dict[Path, list[list[Input]]] = {}
        for inputs in runs:
            by_folder.setdefault(inputs[0].path.parent, []).append(inputs)
        used = {each.path for inputs in runs for each in inputs}
        for folder, inside in by_folder.items():
            hosts = find_hosts_in_folder(folder, used)
            for host, chosen in self._choose(hosts, inside):
                if isinstance(chosen, str):
                    self.unused[host.path] = chosen
                else:
                    for place in chosen:
                        inside[place].append(host)

    def _choose(self, hosts: Sequence[Input], runs: Sequence[list[Input]]) -> Iterator[tuple[Input, "list[int] | str"]]:
        """Yield each host log with the places of its runs, or why it has none; a single run has all."""
        if len(runs) == 1:
            yield from ((host, [0]) for host in hosts)
        elif hosts:
            times = [_read_times(inputs[0], self._options, self._surveys) for inputs in runs]
            places = [place for place, each in enumerate(times) if each is not None and not each.outcome.has_host]
            known = [each for each in times if each is not None and not each.outcome.has_host]
            for host in hosts:
                chosen = choose_runs(
                    host.path,
                    known,
                    read_host_times(host, self._options),
                    zone_known=self._options.tz is not None,
                )
                yield host, chosen if isinstance(chosen, str) else [places[place] for place in chosen]


def _read_times(log: Input, options: ReadOptions, surveys: dict[Input, LogSurvey | None]) -> RunTimes | None:
    """Return when a log was written; it is read where no survey of it is known."""
    if log not in surveys:
        surveys[log] = survey_log(log, options)
    survey = surveys[log]
    return None if survey is None else RunTimes(log=log, outcome=survey.outcome)


def assign_training_logs(
    files: Sequence[TrainingFile], runs: Sequence[Sequence[Input]], options: ReadOptions
) -> list[list[TrainingFile]]:
    """Return for each run the training logs whose time it shares; a single run has all.

    Raises:
        SourceError: when a log belongs to none, or may belong to any of several.
    """
    found: list[list[TrainingFile]] = [[] for _ in runs]
    if len(runs) == 1:
        return [list(files)]
    surveys: dict[Input, LogSurvey | None] = {}
    times = [_read_times(inputs[0], options, surveys) for inputs in runs] if files else []
    known = [each for each in times if each is not None]
    for file in files:
        zone_known = options.tz is not None
        chosen = choose_runs(file.path, known, read_training_times(file, options), zone_known=zone_known)
        if isinstance(chosen, str):
            raise SourceError(
                file.locator,
                f"a training log that {chosen}",
                "give it with --training, or leave it out",
                code="training_log_of_no_run",
            )
        for place in chosen:
            found[times.index(known[place])].append(file)
    return found


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
    named = [identify_companion(str(path)) for path in host]
    logs = [log for place, source in enumerate(sources) for log in _find_logs(place, source, kind)]
    folders = {log.folder: None for log in logs if log.folder is not None}
    logs += [_GivenLog(each, None, None) for each in named if not each.beside]
    found = {log.given.path for log in logs}
    beside = [each for each in named if each.beside] or [
        each for folder in folders for each in find_hosts_in_folder(folder, found)
    ]
    seen: set[Path] = set()
    for each in (*(log.given for log in logs), *beside):
        if each.path.resolve() in seen:
            raise SourceError(each.locator, "named twice for one run", "name every log once", code="given_twice")
        seen.add(each.path.resolve())
    return [*_with_companions(logs, options or ReadOptions()), *beside]


def _with_companions(given: Sequence[_GivenLog], options: ReadOptions) -> list[Input]:
    """Return main logs, then those that only add metrics to the rows of one."""
    logs = [log.given for log in given]
    if len(logs) < _FEWEST:
        return logs
    by_input = {log.given: log for log in given}
    surveys = [survey for log in logs if (survey := survey_log(log, options)) is not None]
    groups = group_logs(
        surveys,
        zone_known=options.tz is not None,
        may_join=lambda one, other: (
            not other.is_complete
            and bool(other.metrics - one.metrics)
            and _may_join(by_input[one.given], by_input[other.given])
        ),
        may_add_gpus=lambda *_: False,
    )
    joined = {each.given: group.main.given for group in groups for each in group.companions}
    mains = [log for log in logs if log not in joined]
    companions = sorted((each for each in surveys if each.given in joined), key=lambda each: each.rank)
    return [*mains, *(replace(each.given, companion_of=mains.index(joined[each.given])) for each in companions)]
