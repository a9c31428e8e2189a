"""Groups files into runs: logs from one machine at one time, from several nodes, and files beside them."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gpureport.errors import SourceError
from gpureport.importers import TRAINING, surveys
from gpureport.importers import sources as files
from gpureport.importers.protocol import Input, Outcome, ReadOptions
from gpureport.importers.source_text import RawFile
from gpureport.recording import Run
from gpureport.regular_files import is_folder

_SAME_MINUTES, _COVERED = 0.8, 0.5
"""Minimum overlap of two logs, as a share of the longer log (or of the shorter, if one adds metrics)."""
_TOGETHER, _INTERVALS = 5_000_000, 3
"""Maximum time, in microseconds or intervals, between the starts or ends of a run's logs."""


class FoundRuns(NamedTuple):
    """Each run's logs in each source, and why some host logs are `unused`."""

    runs: list[list[list[Input]]]
    unused: dict[Path, str]


class _Given:
    def __init__(self, given: Input, source: int | None, folder: Path | None) -> None:
        self.given, self.source, self.folder, self.path = given, source, folder, given.path.resolve()
        self.log: Any = None


_Group = dict[_Given, _Given | None]
"""Logs of one run, each with the main log that it adds data to, or None for a main log."""


def find_source_runs(
    sources: Sequence[str | Path],
    host: Sequence[str | Path] = (),
    *,
    kind: str | None = None,
    options: ReadOptions | None = None,
    steps: bool = False,
) -> FoundRuns:
    """Return the runs in files, folders or `-`; `steps` keeps sources apart."""
    options = options or ReadOptions()
    logs, hosts = _find_logs(sources, host, kind)
    groups = _group_logs(logs, options, steps=steps)
    sourced = [log for log in logs if log.source is not None]
    if steps and len(groups) == 1 < len(sourced):
        # otherwise, there would be nothing to compare
        groups = [{log: None} for log in sourced]
        groups[0] |= dict.fromkeys((log for log in logs if log.source is None), sourced[0])
    runs: list[list[list[Input]]] = [[] for _ in sources]
    searched: dict[Path, list[list[Input]]] = {}
    flat: list[list[Input]] = []
    for group in groups:
        owner = next((log for log in group if log.source is not None), None)
        if owner is None or owner.source is None:
            what = "it has no times, or no time or GPU in common with the logs that it should join"
            hint = "check its clock, give --tz, name it as a separate source, or leave it out"
            raise SourceError(next(iter(group)).given.locator, what, hint, code="joins_no_run")
        flat.append(_list_inputs(group))
        runs[owner.source].append(flat[-1])
        if owner.folder is not None:
            searched.setdefault(owner.folder, []).append(flat[-1])
    refused = _place_hosts(hosts, flat, options)
    for inputs in flat:
        # reading refuses a log that shares no time with any run
        inputs += [each for each in hosts if each.path in refused]
    unused: dict[Path, str] = {}
    used = {each.path for inputs in flat for each in inputs}
    for folder, inside in searched.items() if not hosts else ():
        unused |= _place_hosts(list(files.list_in_folder(folder, "host", used)), inside, options)
    return FoundRuns(runs, unused)


def find_run_logs(
    sources: Sequence[str | Path], host: Sequence[str | Path], kind: str | None, options: ReadOptions
) -> list[Input]:
    logs, hosts = _find_logs(sources, host, kind)
    folders = dict.fromkeys(log.folder for log in logs if log.folder is not None and not hosts)
    used = set[Path]()
    for given in [*(log.given for log in logs), *hosts]:
        if given.path in used:
            raise SourceError(given.locator, "given twice for one run", "give each log only once", code="given_twice")
        used.add(given.path)
    hosts += [each for folder in folders for each in files.list_in_folder(folder, "host", used)]
    groups = _group_logs(logs, options, only_adding=True)
    return [*_list_inputs({log: main for group in groups for log, main in group.items()}), *hosts]


def _find_logs(
    sources: Sequence[str | Path], host: Sequence[str | Path], kind: str | None
) -> tuple[list[_Given], list[Input]]:
    named = [files.identify_companion(str(path)) for path in host]
    logs: list[_Given] = []
    for place, source in enumerate(sources):
        if is_folder(source):
            logs += [_Given(given, place, given.path.parent) for given in files.list_gpu_logs(Path(source))]
        else:
            logs.append(_Given(files.identify(str(source), kind=kind), place, None))
    logs += [_Given(each, None, None) for each in named if not each.beside]
    given = {log.path for log in logs if log.source is not None}
    if twice := next((log for log in logs if log.source is None and log.path in given), None):
        what = "given both as a source and with --host"
        raise SourceError(twice.given.locator, what, "give each log only once", code="given_twice")
    return logs, [each for each in named if each.beside]


def _list_inputs(group: _Group) -> list[Input]:
    mains = [log for log, main in group.items() if main is None]
    added = [replace(log.given, companion_of=mains.index(main)) for log, main in group.items() if main is not None]
    return [*(log.given for log in mains), *added]


def _group_logs(
    given: Sequence[_Given], options: ReadOptions, *, steps: bool = False, only_adding: bool = False
) -> list[_Group]:
    """Group logs into runs, in order; a log that spans several runs is a companion in each of them.

    With `only_adding`, the logs are one run, and some only add metrics to it.
    """
    # logs that were found in different folders are never one run
    folders, paths = Counter(log.folder for log in given), {log.path for log in given}
    for each in given if len(paths) > 1 else ():
        each.log = surveys.survey_log(each.given, options) if None in folders or folders[each.folder] > 1 else None
    # runs by their main logs
    groups: dict[_Given, _Group] = {}
    for each in sorted((each for each in given if each.log is not None), key=lambda each: each.log.rank):
        able = {
            main: group
            for main, group in groups.items()
            if main.path != each.path
            and (main.folder == each.folder or None in {main.folder, each.folder})
            and surveys.shared_time(main.log.span, each.log.span) >= 0
            and surveys.have_one_clock(main.log.outcome, each.log.outcome, options.tz)
            and (not only_adding or each.log.adds_to(main.log))
        }
        homes = _find_homes([*able.values()], each)
        for main, group in (homes or {}).items():
            group[each] = main
        if homes is None and not steps and not only_adding:
            for main, group in able.items():
                log = each.log
                known = [device for one in group for device in one.log.gpus]
                same_ids = not {device.id for device in known}.isdisjoint(device.id for device in log.gpus)
                is_node = same_ids or list(group.values()).count(None) > 1
                same_columns = log.metrics == main.log.metrics or (log.is_complete and main.log.is_complete)
                # if the user named two logs, they are two runs rather than two nodes
                is_found = same_columns and None not in {main.folder, each.folder}
                if _run_together(main, each) and (is_found if is_node else not surveys.match_devices(known, log.gpus)):
                    # a partial copy of another log is not a second node
                    group[each] = None if is_node and surveys.relate_logs(main.log, log) != "same" else main
                    break
        if not any(each in group for group in groups.values()):
            groups[each] = {each: None}
    places = {each: place for place, each in enumerate(given)}
    every = [*groups.values(), *(_Group({each: None}) for each in given if each.log is None)]
    every = [dict(sorted(group.items(), key=lambda item: (item[1] is not None, places[item[0]]))) for group in every]
    return sorted(every, key=lambda group: places[next(iter(group))])


def _find_homes(groups: Sequence[_Group], each: _Given) -> dict[_Given, _Group] | None:
    found: dict[str, dict[_Given, _Group]] = {}
    for group in groups:
        for other, main in ((other, main or other) for other, main in group.items()):
            log, span = each.log, main.log.span
            shorter, longer = sorted((span[1] - span[0], log.span[1] - log.span[0]))
            # a log that adds metrics may be shorter or longer
            enough = _COVERED * shorter if log.metrics - main.log.metrics else _SAME_MINUTES * longer
            if surveys.shared_time(span, log.span) >= max(enough, 0):
                # rows from idle machines may be equal by chance
                told = surveys.relate_logs(other.log, log, copies=False)
                found.setdefault("" if told == "untold" and not log.adds_to(other.log) else told, {})[main] = group
    best = next((found[told] for told in ("same", "untold") if told in found), None)
    return {} if best and surveys.any_overlap([main.log.span for main in best]) else best


def _run_together(main: _Given, each: _Given) -> bool:
    one, other = main.log, each.log
    longer = max(one.span[1] - one.span[0], other.span[1] - other.span[0])
    apart = max(abs(mine - theirs) for mine, theirs in zip(one.span, other.span, strict=True))
    slower, faster = sorted((one.interval, other.interval), reverse=True)
    return (
        main.path.parent == each.path.parent
        and surveys.shared_time(one.span, other.span) >= max(_SAME_MINUTES * longer, 1)
        and apart <= max(_TOGETHER, _INTERVALS * slower * 1e6)
        and slower <= 2 * faster
        and not any(surveys.models_differ(one.gpus[0], gpu) for gpu in other.gpus)
        # a log with its own label file is a separate run
        and not any(place.is_file() for log in (main, each) for place in files.list_label_files(log.path)[1:])
    )


def _place_hosts(hosts: Sequence[Input], runs: Sequence[list[Input]], options: ReadOptions) -> dict[Path, str]:
    if len(runs) == 1:
        runs[0].extend(hosts)
        return {}
    unused: dict[Path, str] = {}
    times = {place: run for place, run in _read_times(runs if hosts else [], options).items() if not run.has_host}
    for host in hosts:
        alone = _read_outcome(host, options)
        # each run supplies dates for a file with missing or ambiguous dates
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
    found = {place: surveys.survey_log(inputs[0], options) for place, inputs in enumerate(runs)}
    return {place: log.outcome for place, log in found.items() if log is not None}


def _read_outcome(given: Input, options: ReadOptions) -> Outcome | None:
    with suppress(SourceError):
        return surveys.Log(given, options).outcome
    return None


def _choose_runs(runs: dict[int, Outcome], told: dict[int, Outcome | None], options: ReadOptions) -> list[int] | str:
    known = {place: outcome for place, outcome in told.items() if outcome is not None}
    comparable = [place for place, outcome in known.items() if surveys.have_one_clock(outcome, runs[place], options.tz)]
    if found := [place for place in comparable if surveys.shared_time(runs[place].span, known[place].span) >= 0]:
        several = surveys.any_overlap([runs[place].span for place in found])
        return "could belong to any of several runs" if several else found
    if len(comparable) < len(known):
        return "has a time zone while the GPU logs have none, or vice versa; give the missing time zone with --tz"
    return "does not overlap any GPU log"


def assign_training_logs(
    files: Sequence[Input], runs: Sequence[Sequence[Input]], options: ReadOptions
) -> list[list[Input]]:
    if len(runs) == 1:
        return [list(files)]
    found: list[list[Input]] = [[] for _ in runs]
    times = _read_times(runs, options) if files else {}
    started = min((outcome.span[0] for outcome in times.values()), default=0)
    for file in files:
        outcome = None
        with suppress(SourceError):
            read = TRAINING["training"].read(RawFile(file.path), options, started, file.locator)
            outcome = read.outcome if read.dated else None
        chosen = _choose_runs(times, dict.fromkeys(times, outcome), options)
        if isinstance(chosen, str):
            hint = "give it with --training, or leave it out"
            raise SourceError(file.locator, f"a training log that {chosen}", hint, code="training_log_of_no_run")
        for place in chosen:
            found[place].append(file)
    return found


def longer_names(locators: Sequence[str]) -> list[str]:
    paths = [files.split_path(locator) for locator in locators]
    shortest = min((count for _, count in paths), default=1)
    longest = max((len(parts) for parts, _ in paths), default=0)
    names = [["/".join(parts[-length:]) for parts, _ in paths] for length in range(shortest, longest + 1)]
    # of names that distinguish equally many runs, the first is the shortest
    return max(names, key=lambda each: len(set(each)), default=[])


def lengthen_equal_names(named: Sequence[tuple[str, str | None]]) -> list[str]:
    """Return runs' names; identical names also get the parts of their paths that differ."""
    names = [name for name, _ in named]
    for name in {*names}:
        places = [place for place, (own, log) in enumerate(named) if own == name and log is not None]
        if len(places) > 1:
            for place, longer in zip(places, longer_names([named[each][1] or "" for each in places]), strict=True):
                names[place] = longer
    return names


def make_names_distinct(runs: Sequence[Run]) -> list[Run]:
    named: list[tuple[str, str | None]] = []
    for run in runs:
        log = run.sources[0].locator if run.sources and not run.tracked else "-"
        named.append((run.name, log if log != "-" and run.name == files.derive_name(log) else None))
    return [replace(run, name=name) for run, name in zip(runs, lengthen_equal_names(named), strict=True)]
