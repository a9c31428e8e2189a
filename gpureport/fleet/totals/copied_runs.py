"""Runs that look like one run read twice: from two stores of a tracker, or from an export and what it was made of."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gpureport.fleet.fleet_report import RunName
from gpureport.fleet.totals.priced_gpu import PricedGpu
from gpureport.fleet.totals.worst_runs import group_by_run

_SAME = 1_000_000
"""Microseconds by which the first and the last samples of copies differ at most: formats round times (pragmatic)."""

Run = Sequence[PricedGpu]
"""The GPUs of one run."""


def find_copied_runs(gpus: Sequence[PricedGpu]) -> tuple[tuple[RunName, ...], ...]:
    """Return the runs that look like one, the earliest first: of one name, from one moment to one other.

    Their GPUs are as many, and no two runs are together whose GPUs are known to be others.
    """
    alike: defaultdict[tuple[str, int, bool], list[Run]] = defaultdict(list)
    for own in group_by_run(gpus).values():
        first = own[0].summary
        if first.started is not None and first.ended is not None:
            alike[first.run_name, len(own), first.timezone is None].append(own)
    found = [group for runs in alike.values() for group in _list_groups(runs)]
    return tuple(tuple(run[0].run for run in group) for group in sorted(found, key=lambda group: _order(group[0])))


def _list_groups(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the groups of copies, each run in one of them."""
    groups: list[list[Run]] = []
    recent: list[list[Run]] = []
    for run in sorted(runs, key=_order):
        # many runs may have one name, few of them one start
        recent = [each for each in recent if _order(run)[0] - _order(each[0])[0] <= _SAME]
        group = next((each for each in recent if all(_may_be_copy(one, run) for one in each)), None)
        if group is None:
            group = []
            groups.append(group)
            recent.append(group)
        group.append(run)
    yield from (group for group in groups if len(group) > 1)


def _order(run: Run) -> tuple[int, str]:
    return run[0].summary.started or 0, run[0].summary.run_id


def _may_be_copy(one: Run, other: Run) -> bool:
    first, second = one[0].summary, other[0].summary
    return (
        abs((first.started or 0) - (second.started or 0)) <= _SAME
        and abs((first.ended or 0) - (second.ended or 0)) <= _SAME
        and not any(_are_others(_list_known(one, name), _list_known(other, name)) for name in ("uuid", "node"))
    )


def _list_known(run: Run, name: str) -> set[str]:
    return {getattr(gpu.summary, name) for gpu in run} - {None}


def _are_others(one: set[str], other: set[str]) -> bool:
    return bool(one and other) and one != other
