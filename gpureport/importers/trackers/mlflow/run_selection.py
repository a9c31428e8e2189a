"""Which runs of a store are meant: by id, its beginning, name, experiment, filter, or the newest."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.protocol.tracker import Selection, SkippedRun
from gpureport.importers.trackers.mlflow.run_store import RunInfo, RunStore
from gpureport.importers.trackers.start_order import sort_by_start

_SHORTEST = 6
_SHOWN = 5
_HINT = "--list shows the runs"


def select_runs(store: RunStore, named: str | None, selection: Selection) -> tuple[list[RunInfo], list[SkippedRun]]:
    """Return the runs that are meant, the earliest first, and those left out though nobody said so.

    Runs named one by one come in the order they are named, and leave out none.

    Where none is named, or many at once, those that cannot be read come last, however few are wanted.

    Args:
        store: the store.
        named: run in the locator, None where it names none.
        selection: what the options say.

    Raises:
        SourceError: when no run, or more than the one named, is meant, or one that is named cannot be read.
    """
    wanted = (*(() if named is None else (named,)), *selection.runs)
    if wanted and not selection.children and (direct := _find_by_ids(store, wanted)):
        return direct[: selection.latest], []
    runs = store.runs(selection.experiment, selection.filter)
    groups = (
        [_find_by_name(store, runs, name) for name in wanted] if wanted else [_select_finished(store, runs, selection)]
    )
    found = _merge_groups(groups, runs, selection)
    kept = {run.id for run in [run for run in found if run.fault is None][: selection.latest]}
    in_time = _merge_groups([_sort_by_start(group) for group in groups], _sort_by_start(runs), selection)
    whole = [run for run in in_time if run.id in kept]
    faulty = [run for run in found if run.fault is not None]
    return whole + faulty, [] if wanted else list(_list_skipped_runs(runs, found))


def list_runs(store: RunStore, selection: Selection) -> list[RunInfo]:
    """Return the runs a listing shows, the newest first, then those that are deleted where all are wanted."""
    runs = store.runs(selection.experiment, selection.filter)
    deleted = [run for run in runs if run.deleted and selection.latest is None]
    return [*[run for run in runs if not run.deleted][: selection.latest], *deleted]


def _sort_by_start(runs: Iterable[RunInfo]) -> list[RunInfo]:
    """Return runs in the order in which they started, at once by name; last those of which that is not known."""
    return sort_by_start(
        runs, start=lambda run: None if run.started is None else run.started * 1000, name=lambda run: run.name
    )


def _merge_groups(groups: Sequence[Sequence[RunInfo]], runs: Sequence[RunInfo], selection: Selection) -> list[RunInfo]:
    """Return the runs of all groups, each once, with those nested in them where they are wanted."""
    found = list({run.id: run for group in groups for run in group}.values())
    return _add_children(found, runs) if selection.children else found


def _find_by_ids(store: RunStore, wanted: Sequence[str]) -> list[RunInfo]:
    """Return runs by their whole ids, without asking for all runs of the store; none unless all are such."""
    if not all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in wanted):  # noqa: PLR2004 - hex digits of an id
        return []
    found = [store.run(name) for name in dict.fromkeys(wanted)]
    return [run for run in found if run is not None] if all(found) else []


def _find_by_name(store: RunStore, runs: Sequence[RunInfo], name: str) -> list[RunInfo]:
    """Return the run of an id, of the beginning of one, or of a name; all runs whose name fits one with `*`."""
    active = [run for run in runs if not run.deleted]
    if exact := [run for run in runs if run.id == name] or [run for run in active if run.name == name]:
        return _require_one(store, name, exact, runs)
    if "*" in name and (fitting := _find_fitting(runs, name)):
        return fitting
    begun = [run for run in runs if run.id.startswith(name)] if len(name) >= _SHORTEST else []
    if begun:
        return _require_one(store, name, begun, runs)
    raise SourceError(store.where, f"no run {name!r}", _suggest_runs(name, active), code="unknown_run")


def _find_fitting(runs: Iterable[RunInfo], wildcard: str) -> list[RunInfo]:
    """Return the runs that are not deleted whose name or id fits one with `*`."""
    return [
        run
        for run in runs
        if not run.deleted and (matches_wildcard(wildcard, run.name) or matches_wildcard(wildcard, run.id))
    ]


def _require_one(store: RunStore, name: str, found: Sequence[RunInfo], runs: Sequence[RunInfo]) -> list[RunInfo]:
    """Return the run that was found where it is one and can be read; the error of several says how to read each.

    Args:
        store: the store.
        name: what was named.
        found: the runs that fit it.
        runs: all runs of the store.
    """
    if len(found) == 1:
        if (fault := found[0].fault) is not None:
            raise fault
        return list(found)
    said = ", ".join(run.summary for run in found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    reads_all = [run.id for run in _find_fitting(runs, f"{name}*")] == [run.id for run in found]
    every = f"; {name + '*'!r} reads all of them" if reads_all else ""
    raise SourceError(
        store.where, f"{len(found)} runs are called {name!r}", f"name one by its id: {said}{every}", code="several_runs"
    )


def _suggest_runs(name: str, runs: Iterable[RunInfo]) -> str:
    known = {each: run for run in runs for each in (run.id, run.name)}
    close = list(
        {known[each].id: known[each] for each in get_close_matches(name, known, n=_SHOWN, cutoff=0.5)}.values()
    )
    said = ", ".join(f"{run.name} ({run.id})" for run in close)
    return f"did you mean {said}?" if said else _HINT


def _select_finished(store: RunStore, runs: Sequence[RunInfo], selection: Selection) -> list[RunInfo]:
    """Return the runs that have ended and hold hardware series, those nested in others left out, and the faulty.

    Monitoring that is switched on everywhere records the same hardware for a run and for each nested in it.
    """
    ended = [run for run in runs if not run.deleted and (run.finished or "status" in (selection.filter or ""))]
    found = [run for run in ended if run.hardware or run.fault is not None]
    if not found:
        what = f"none of {len(runs)} runs has ended and holds hardware series" if runs else "no run"
        raise SourceError(store.where, what, f"{_HINT}; --run reads one whatever it holds", code="no_finished_run")
    ids = {run.id for run in found}
    return [run for run in found if run.parent not in ids]


def _list_skipped_runs(runs: Iterable[RunInfo], found: Sequence[RunInfo]) -> Iterator[SkippedRun]:
    """Yield the runs that are neither read nor deleted, each with its first reason."""
    read = {run.id for run in found}
    for run in runs:
        if run.id in read or run.deleted:
            continue
        reason = "nested in another" if run.parent in read else "without hardware series"
        yield SkippedRun(name=run.name or run.id, reason=reason if run.finished else f"still {run.status}")


def _add_children(found: Sequence[RunInfo], runs: Sequence[RunInfo]) -> list[RunInfo]:
    kept: dict[str, RunInfo] = {}
    waiting = list(found)
    while waiting:
        run = waiting.pop(0)
        if run.id not in kept:
            kept[run.id] = run
            waiting = [each for each in runs if each.parent == run.id and not each.deleted] + waiting
    return list(kept.values())


def select_experiment(
    where: str, runs: Sequence[RunInfo], known: Mapping[str, str], experiment: str | None, wanted: str | None
) -> list[RunInfo]:
    """Return the runs of an experiment; all when None.

    Args:
        where: what a person calls the store.
        runs: runs.
        known: names of the experiments, by id.
        experiment: name or id of an experiment.
        wanted: filter, which only a server understands.

    Raises:
        SettingsError: when there is a filter.
        SourceError: when there is no such experiment.
    """
    if wanted is not None:
        hint = f"name runs with --run or --experiment, or start one: mlflow server --backend-store-uri {where}"
        raise SettingsError("--filter", "only a server filters runs", hint, code="filter_needs_server")
    if experiment is None:
        return list(runs)
    ids = {key for key, name in known.items() if experiment in {key, name}}
    if not ids:
        raise no_such_experiment(where, experiment, known.values())
    return [run for run in runs if run.experiment_id in ids]


def no_such_experiment(where: str, experiment: str, names: Iterable[str]) -> SourceError:
    """Return an error that names experiments of a similar name, else the first ones."""
    known = sorted(set(names))
    close = get_close_matches(experiment, known, n=5, cutoff=0.5) or known[:5]
    return SourceError(
        where, f"no experiment {experiment!r}", f"it has {', '.join(close) or 'none'}", code="no_such_experiment"
    )


def matches_wildcard(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern in which `*` stands for anything; case matters."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
