"""The trend: what runs did week by week."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gpureport.fleet.fleet_report import Week
from gpureport.fleet.totals.priced_gpu import PricedGpu, sum_use

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WEEK = timedelta(days=7)
_LONGEST = 520
"""Weeks of a period beyond which those without a run are left out: a clock that was wrong by years fills no page."""


def divide_by_week(gpus: Sequence[PricedGpu]) -> tuple[Week, ...]:
    """Return what runs did in each week, oldest first; runs without dates are part of none."""
    parts: defaultdict[datetime, list[PricedGpu]] = defaultdict(list)
    begins, ends = [], []
    for gpu in gpus:
        if gpu.summary.started is None or gpu.summary.ended is None:
            continue
        begin, end = (_EPOCH + timedelta(microseconds=time) for time in (gpu.summary.started, gpu.summary.ended))
        begins.append(begin)
        ends.append(end)
        for monday, share in _list_shares(begin, end):
            parts[monday].append(_take_share(gpu, share))
    if not parts:
        return ()
    mondays = _list_mondays(min(parts), max(parts))
    return tuple(
        Week(
            monday=monday.date().isoformat(),
            use=sum_use(parts.get(monday, [])),
            is_partial=monday < min(begins) or monday + _WEEK > max(ends),
        )
        for monday in (mondays if len(mondays) <= _LONGEST else sorted(parts))
    )


def _list_mondays(first: datetime, last: datetime) -> list[datetime]:
    return [first + place * _WEEK for place in range((last - first) // _WEEK + 1)]


def _list_shares(begin: datetime, end: datetime) -> Iterator[tuple[datetime, float]]:
    """Yield the Monday of each week that a time touches, with its share in that week."""
    day = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = day - timedelta(days=day.weekday())
    if end <= begin:
        yield monday, 1.0
    while monday < end and end > begin:
        yield monday, (min(end, monday + _WEEK) - max(begin, monday)) / (end - begin)
        monday += _WEEK


def _take_share(gpu: PricedGpu, share: float) -> PricedGpu:
    if share == 1:
        return gpu
    seconds = tuple((name, amount * share) for name, amount in gpu.summary.seconds)
    return replace(
        gpu,
        summary=replace(gpu.summary, seconds=seconds),
        gpu_seconds=gpu.gpu_seconds * share,
        lost_seconds=gpu.lost_seconds * share,
    )
