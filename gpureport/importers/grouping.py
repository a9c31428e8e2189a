"""Which logs of GPUs are one run: those of one machine and the same minutes, and a log a node."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.nodes import match_devices, models_differ, relate_logs
from gpureport.importers.protocol.importer import Input, ReadOptions
from gpureport.importers.run_facts import list_label_files
from gpureport.importers.surveys import Log, any_overlap, format_span, shared_time, survey_log

if TYPE_CHECKING:
    from gpureport.importers.runs import GivenLog

Group = dict[Log, Log | None]
"""Logs of one run, each with the main log that it adds to; None is that of a main log, one for each node."""
_AS_SOURCE = "give it as a source of its own, or leave it out"
_SAME_MINUTES, _COVERED = 0.8, 0.5
"""Share of the longer log that two recorders of one run have in common, and of the shorter one that must lie in the
time of the main log where it adds metrics (pragmatic)."""
_TOGETHER, _INTERVALS = 5_000_000, 3
"""Microseconds by which logs of different GPUs or nodes of one run begin and end apart at most, or so many intervals if
that is longer: one command starts and ends their recorders, while jobs of a cluster may well begin in the same minute
(pragmatic)."""
_SIMILAR_INTERVALS = 2.0
"""They are written with intervals that differ by no more than this factor (pragmatic)."""


def group_logs(
    given: "Sequence[GivenLog]", options: ReadOptions, *, steps: bool = False, only_adding: bool = False
) -> list[Group]:
    """Return the runs that logs belong to. A log that spans several runs is a companion in each.

    Logs without times belong to none, nor does one that is alone, which is a run whatever it holds. Logs of other GPUs
    are no part of a run of `steps` to compare. With `only_adding` all are one run anyway, to which some add metrics.
    """
    by_input = {log.given: log for log in given} if len({log.path for log in given}) > 1 else {}
    logs = [survey for log in by_input if (survey := survey_log(log, options)) is not None]

    def may_join(main: Log, log: Log) -> bool:
        one, other = by_input[main.given], by_input[log.given]
        together = one.path != other.path and (one.folder == other.folder or None in {one.folder, other.folder})
        if not together or shared_time(main.span, log.span) < 0:
            return False
        if options.tz is None and (main.outcome.timezone is None) != (log.outcome.timezone is None):
            return False
        if only_adding:
            return not log.is_complete and bool(log.metrics - main.metrics)
        return main.file.sha256() != log.file.sha256()

    def may_add(main: Log, log: Log, is_node: bool) -> bool:
        one, other = by_input[main.given], by_input[log.given]
        # two logs that are named, each by itself, are two runs rather than two nodes
        is_found = one.folder is not None and other.folder is not None
        # a file that labels one log alone says that it is a run
        is_labelled = any(place.is_file() for each in (one, other) for place in list_label_files(each.path)[1:])
        together = one.path.parent == other.path.parent and not is_labelled
        return not (steps or only_adding) and together and (is_found or not is_node)

    groups: list[Group] = []
    for log in sorted(logs, key=lambda each: each.rank):
        able = [group for group in groups if may_join(next(iter(group)), log)]
        # logs that one recorder wrote are one run, whatever they read
        own = [group for group in able if log.recording and next(iter(group)).recording == log.recording]
        homes = {next(iter(group)): group for group in own[:1]} or _find_homes(able, log)
        for main, group in (homes or {}).items():
            group[log] = main
        if not homes and (homes is not None or not any(_add_devices(group, log, may_add) for group in able)):
            groups.append({log: None})
    return groups


def _find_homes(groups: Sequence[Group], log: Log) -> dict[Log, Group] | None:
    """Return the main logs that a log adds to, each with its run; None where there is none.

    Of several at the same time it is the one that a uuid or its readings name, otherwise none is returned.
    """
    found: dict[str, dict[Log, Group]] = {}
    for group in groups:
        for each, main in ((each, main or each) for each, main in group.items()):
            if _share_minutes(main, log):
                # what only adds metrics may be of any machine that nothing speaks against
                # rows of machines that do nothing may be equal by chance
                told = relate_logs(each, log, copies=False)
                adds = not log.is_complete and bool(log.metrics - each.metrics)
                found.setdefault("" if told == "untold" and not adds else told, {})[main] = group
    best = next((found[told] for told in ("same", "alike", "untold") if told in found), None)
    return {} if best and any_overlap([main.span for main in best]) else best


def _share_minutes(main: Log, log: Log) -> bool:
    """Return whether a log covers the minutes of the main one; a log that adds metrics may be shorter or longer."""
    shared = shared_time(main.span, log.span)
    shorter, longer = sorted((main.span[1] - main.span[0], log.span[1] - log.span[0]))
    return shared >= 0 and shared >= (_COVERED * shorter if log.metrics - main.metrics else _SAME_MINUTES * longer)


def _add_devices(group: Group, log: Log, may_add: Callable[[Log, Log, bool], bool]) -> bool:
    """Add a log to a run as further GPUs of its machine, or where it holds the same ids as another node.

    Such logs have the same begin, end, interval and model; those of nodes are recorded by one command.
    """
    main, known = next(iter(group)), [device for each in group for device in each.gpus]
    same_ids = not {device.id for device in known}.isdisjoint(device.id for device in log.gpus)
    is_node = same_ids or list(group.values()).count(None) > 1
    longer = max(each.span[1] - each.span[0] for each in (main, log))
    apart = max(abs(mine - theirs) for mine, theirs in zip(main.span, log.span, strict=True))
    slower, faster = sorted((main.interval, log.interval), reverse=True)
    if (
        shared_time(main.span, log.span) < max(_SAME_MINUTES * longer, 1)
        or apart > max(_TOGETHER, _INTERVALS * slower * 1e6)
        or slower > _SIMILAR_INTERVALS * faster
        or any(models_differ(main.gpus[0], each) for each in log.gpus)
        or not may_add(main, log, is_node)
    ):
        return False
    same_columns = log.metrics == main.metrics or (log.is_complete and main.is_complete)
    is_alike = same_columns and log.given.importer.kind == main.given.importer.kind
    # a copy of a part of the other is no second node
    if is_alike and relate_logs(main, log) != "alike" if is_node else not match_devices(known, log.gpus):
        group[log] = None if is_node else main
    return log in group


def attach_named(groups: list[Group], named: Sequence[Input]) -> list[Group]:
    """Return the runs after joining logs that `--host` names, which a person says belong to one.

    Raises:
        SourceError: when one has no times, or shares no time or no GPU with any run.
    """
    joined = {log.given for group in groups for log in group}
    if timeless := next((log for log in named if log not in joined), None):
        what = "its rows have no time stamps, so it joins no other log"
        raise SourceError(timeless.locator, what, _AS_SOURCE, code="no_timestamps")
    own = [group for group in groups if all(log.given in named for log in group)]
    runs = [group for group in groups if group not in own]
    for log in (log for group in own for log in group):
        near = [group for group in runs if shared_time(next(iter(group)).span, log.span) >= 0]
        if not runs:
            what = "no log of GPUs that it could join has time stamps"
            raise SourceError(log.given.locator, what, _AS_SOURCE, code="no_timestamps")
        if not near:
            main = next(iter(runs[0]))
            what = f"it covers {format_span(log.span)}, and {main.given.locator} covers {format_span(main.span)}"
            hint = "check its clock, give --tz, or leave it out"
            raise SourceError(log.given.locator, what, hint, code="no_shared_time")
        mains = [(group, main) for group in near for main, adds_to in group.items() if adds_to is None]
        alike = [(group, main) for group, main in mains if match_devices(main.gpus, log.gpus)]
        if len(alike) != 1:
            what = "it may belong to any of several runs" if alike else "it holds other GPUs than the run of its time"
            raise SourceError(log.given.locator, what, _AS_SOURCE, code="joins_no_run")
        group, main = alike[0]
        group[log] = main
    return runs
