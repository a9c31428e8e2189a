"""Reads the CSV of nvitop's ResourceMetricCollector: rows of the machine and of each GPU, at the end of their window.

Its headings are `<tag>/<device>/<metric (unit)>/<statistic>` (nvitop 1.7.2, api/collector.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gpureport.importers.account import Account
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import extra_name
from gpureport.importers.headings import convert_to_base, describe_absence, parse_number
from gpureport.importers.tools import Record, ToolLog, form, has_header, split_devices, table_rows
from gpureport.metrics import BY_NAME

_HOST = {
    "cpu_percent (%)": ("cpu_utilization_ratio", "%"),
    "memory_used (GiB)": ("host_memory_used_bytes", "GiB"),
}
_GPU = {
    "gpu_utilization (%)": ("gpu_utilization_ratio", "%"),
    "memory_utilization (%)": ("gpu_memory_controller_ratio", "%"),
    "memory_used (MiB)": ("gpu_memory_used_bytes", "MiB"),
    "memory_free (MiB)": ("gpu_memory_free_bytes", "MiB"),
    "memory_total (MiB)": ("gpu_memory_total_bytes", "MiB"),
    "fan_speed (%)": ("gpu_fan_ratio", "%"),
    "temperature (C)": ("gpu_temperature_celsius", "C"),
    "power_usage (W)": ("gpu_power_watts", "W"),
    "power_limit (W)": ("gpu_power_limit_requested_watts", "W"),
}
_LEVELS = {"memory_used (GiB)", "memory_used (MiB)", "memory_free (MiB)"}
"""What is a level of its moment: of a window its last reading is wanted, not its mean."""
_HEADING = re.compile(r"(?:(.*)/)?(host|(?:cuda:\d+ \()?gpu:(\d{1,4})\)?)/(.+)/(mean|last)")
_KEPT = (
    "Of each window nvitop's mean is kept, and the last reading of memory; not kept: minima, maxima, what single "
    "processes and MIG instances used, and other collections than the first."
)
_CUMULATIVE = (
    "The means are those since the collection began; the mean of each window was made from two of them and their "
    "duration."
)
_WHOLE = 102.0
"""A part of a whole that exceeds it by the error of the difference of two means is the whole."""
_OVERSHOOT = 0.02
"""Share by which the difference of two means may err, since duration and mean are taken a moment apart."""


class _Layout(NamedTuple):
    """Places of the time and of how long it was collected; of each figure the GPU, the name, and the column."""

    time: int | None
    duration: int | None
    columns: dict[tuple[int | None, str], tuple[int, bool]]
    """Place, and whether it is a mean, by GPU (None for the machine) and name."""


def _find_layout(header: list[str]) -> _Layout | None:
    """Return the columns a header names, None where it is none of a collector; of several collections the first."""
    places = {heading: place for place, heading in reversed(list(enumerate(header)))}
    matches = [(place, match) for heading, place in places.items() if (match := _HEADING.fullmatch(heading))]
    matches = sorted((each for each in matches if "pid:" not in (each[1][1] or "")), key=lambda each: each[0])
    known = [match[1] for _, match in matches if match[4] in (_HOST if match[3] is None else _GPU) and match[1]]
    if not known:
        return None
    columns: dict[tuple[int | None, str], tuple[int, bool]] = {}
    for place, match in matches:
        key = None if match[3] is None else int(match[3]), match[4]
        is_mean = match[5] == "mean"
        if match[1] == known[0] and (key not in columns or is_mean != (match[4] in _LEVELS)):
            columns[key] = place, is_mean
    local = next((places[name] for name in ("time", "timestamp", "date") if name in places), None)
    return _Layout(places.get(f"{known[0]}/timestamp", local), places.get(f"{known[0]}/duration (s)"), columns)


@form
def read_nvitop(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of the machine and of each GPU.

    `collect()` gives the mean since `activate` or `clear` was called last. A script that never clears, as the one in
    nvitop's README, writes means over an ever longer time: their differences, weighted with the time, are the means of
    the windows between the rows.
    """
    known: _Layout | None = None
    before: tuple[int, float, dict[int, float]] | None = None
    for number, layout, row in table_rows(lines, first, account, _find_layout):
        if layout is not known:
            known, before = layout, None
            account.note(_KEPT)
        when = parse_time("" if layout.time is None else row[layout.time])
        duration = None if layout.duration is None else parse_number(row[layout.duration])
        found = {place: parse_number(row[place]) for place, is_mean in layout.columns.values() if is_mean}
        means = {place: mean for place, mean in found.items() if mean is not None}
        now = None if when is None or duration is None else (when[0], duration, means)
        if now and before and now[1] > max((now[0] - before[0]) / 1e6 + before[1] / 2, before[1]):
            # a collection that was cleared is as old as the row before, one that goes on is older by what that was
            means = dict(_differences(before[1], before[2], now[1], means))
            account.note(_CUMULATIVE)
        before = now
        yield from split_devices(number, when, _read(row, layout, means, account))


def _differences(
    before: float, earlier: Mapping[int, float], duration: float, means: Mapping[int, float]
) -> Iterator[tuple[int, float]]:
    """Yield the means of the time since the row before; a column that lacked a mean then has none now."""
    for place, mean in means.items():
        if place in earlier:
            value = (mean * duration - earlier[place] * before) / (duration - before)
            # below 0 by less than the error is 0
            yield place, 0.0 if -_OVERSHOOT * abs(mean) - 1e-9 <= value < 0 else value


def _read(
    row: Sequence[str], layout: _Layout, means: Mapping[int, float], account: Account
) -> dict[int | None, Record]:
    """Return what a row says of each device."""
    devices: dict[int | None, Record] = {}
    for (gpu, name), (place, is_mean) in layout.columns.items():
        record, cell = devices.setdefault(gpu, {}), row[place]
        target, unit = (_HOST if gpu is None else _GPU).get(name, ("", ""))
        if not target:
            record |= {extra_name(name): cell} if cell else {}
            continue
        found = means.get(place) if is_mean else parse_number(cell)
        if found is not None and unit == "%" and 100 < found <= _WHOLE and not BY_NAME[target].may_exceed_one:  # noqa: PLR2004 - per cent
            found = 100.0
        value = None if found is None else convert_to_base(found, unit, target)
        if value is None:
            account.absent[name, describe_absence(cell)] += 1
        else:
            record[target] = value
    return devices


NVITOP = ToolLog(
    kind="nvitop",
    title="nvitop",
    recognised_by="A CSV whose headings are `tag/device/metric (unit)/statistic`.",
    sample="recorded/phases/nvitop.csv.gz",
    forms=(("nvitop ResourceMetricCollector", partial(has_header, _find_layout), read_nvitop),),
)
