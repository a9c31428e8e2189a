"""Reads the CSV of nvitop's ResourceMetricCollector: rows of the machine and of each GPU, at the end of their window.

Its headings are `<tag>/<device>/<metric (unit)>/<statistic>` (nvitop 1.7.2, api/collector.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gpureport.importers.account import Account
from gpureport.importers.columns import extra_name, parse_time
from gpureport.importers.extraction import Extraction
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, WRONG_CELLS
from gpureport.importers.quantities import convert_to_base, describe_absence, parse_number
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head_text
from gpureport.importers.tools import Record, form, split_cells, split_devices, text_lines
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
_LEVELS = {"host_memory_used_bytes", "gpu_memory_used_bytes", "gpu_memory_free_bytes"}
"""What is a level of its moment: of a window its last reading is wanted, not its mean."""
_HEADING = re.compile(
    r"(?P<tag>.*)/(?P<device>host|(?:cuda:\d+ \()?gpu:\d{1,4}\)?)/(?P<metric>[^/]+)/(?:mean|last|min|max)"
)
_DEVICE = re.compile(r"host|(?:cuda:\d+ \()?gpu:(\d{1,4})\)?")
_KEPT = "Of each window nvitop's mean is kept, and the last reading of memory"
_WHOLE = 102.0
"""A part of a whole that exceeds it by the error of the difference of two means is the whole."""
_OVERSHOOT = 0.02
"""Share by which the difference of two means may err, since duration and mean are taken a moment apart."""


@dataclass(frozen=True, slots=True)
class _Statistic:
    """A column: its place, the GPU (None for the machine), the collector's name, `mean` or `last`, metric and unit."""

    place: int
    gpu: int | None
    source: str
    name: str
    meaning: tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns: headings, places of the time and of how long it was collected, what is read, and what is not."""

    header: list[str]
    time: int | None
    duration: int | None
    statistics: list[_Statistic]
    ignored: list[str]


class Nvitop:
    """The importer of nvitop's collections."""

    kind: ClassVar[str] = "nvitop"
    title: ClassVar[str] = "nvitop"
    recognised_by: ClassVar[str] = "A CSV whose headings are `tag/device/metric (unit)/statistic`."
    sample: ClassVar[str] = "recorded/phases/nvitop.csv.gz"

    def identify(self, head: bytes) -> bool:
        """Return whether one of the first lines names columns of a collector."""
        lines = head_text(head).splitlines()[:5]
        return any("/" in line and _find_layout(split_cells(line)) is not None for line in lines)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a CSV."""
        return Extraction(file, options, read_nvitop, name="nvitop ResourceMetricCollector")


def _find_layout(header: list[str]) -> _Layout | None:
    """Return the columns a header names, None where it is none of a collector; of several collections the first."""
    tags = dict.fromkeys(tag for heading in header if (tag := _tag(heading)) is not None)
    if not tags:
        return None
    tag = next(iter(tags))
    own = {heading.removeprefix(f"{tag}/"): place for place, heading in reversed(list(enumerate(header)))}
    ignored = {
        "min and max of each window": any(name.endswith(("/min", "/max")) for name in own),
        "what single processes used": any("/pid:" in f"/{name}" for name in own),
        "MIG instances": any(
            name.startswith(("gpu:", "cuda:")) and not _DEVICE.fullmatch(name.partition("/")[0]) for name in own
        ),
        "other collections than the first": len(tags) > 1,
    }
    local = next((place for place, heading in enumerate(header) if heading in {"time", "timestamp", "date"}), None)
    return _Layout(
        header,
        own.get("timestamp", local),
        own.get("duration (s)"),
        _find_statistics(own),
        [text for text, holds in ignored.items() if holds],
    )


def _tag(heading: str) -> str | None:
    """Return the collection that a column of a known metric belongs to."""
    match = _HEADING.fullmatch(heading)
    known = match and match["metric"] in (_HOST if match["device"] == "host" else _GPU)
    of_process = match and match["tag"].rpartition("/")[2].startswith("pid:")
    return match["tag"] if match and known and not of_process else None


def _find_statistics(own: dict[str, int]) -> list[_Statistic]:
    """Return one statistic of each metric: the mean, the last reading of levels where there is one."""
    named: dict[tuple[int | None, str], dict[str, _Statistic]] = {}
    for heading, place in sorted(own.items(), key=lambda item: item[1]):
        device, _, rest = heading.partition("/")
        source, _, name = rest.rpartition("/")
        match = _DEVICE.fullmatch(device)
        if match and source and name in {"mean", "last"}:
            gpu = None if match[1] is None else int(match[1])
            meaning = (_HOST if gpu is None else _GPU).get(source, ("", ""))
            named.setdefault((gpu, source), {})[name] = _Statistic(place, gpu, source, name, meaning)
    chosen = []
    for found in named.values():
        one = next(iter(found.values()))
        chosen.append(found.get("last" if one.meaning[0] in _LEVELS else "mean", one))
    return chosen


@form
def read_nvitop(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of the machine and of each GPU."""
    layout: _Layout | None = None
    windows = _Windows()
    for number, text, cut in text_lines(lines, first, account):
        row = split_cells(text)
        heading = _find_layout(row) if "/" in text else None
        if heading:
            layout, windows.last = heading, None
            account.headers += 1
            account.note(f"{_KEPT}; not kept: {', '.join(layout.ignored)}." if layout.ignored else f"{_KEPT}.")
        elif layout is None:
            account.reject(BEFORE_HEADER, number, text)
        elif cut or len(row) != len(layout.header):
            account.reject(CUT_LAST_LINE if cut else WRONG_CELLS, number, text)
        else:
            when = parse_time("" if (place := layout.time) is None else row[place])
            yield from split_devices(number, when, _read(row, layout, windows.since(layout, row, when), account))
    if windows.cumulative:
        account.note(
            "The means are those since the collection began; the mean of each window was made from two of them and "
            "their duration."
        )


@dataclass(slots=True)
class _Windows:
    """Means since a collection began to means of the time since the row before.

    `collect()` gives the mean since `activate` or `clear` was called last. A script that never clears, as the one in
    nvitop's README, writes means over an ever longer time: their differences, weighted with the time, are the means of
    the windows between the rows.

    Attributes:
        cumulative: whether any row went on with the collection of the row before.
        last: time in microseconds, duration in seconds and means by column of the row before.
    """

    cumulative: bool = False
    last: tuple[int, float, dict[int, float]] | None = None

    def since(self, layout: _Layout, row: Sequence[str], when: tuple[int, bool] | None) -> dict[int, float]:
        """Return the means of the time since the row before; a column that lacked a mean then has none now."""
        duration = None if layout.duration is None else parse_number(row[layout.duration])
        found = {each.place: parse_number(row[each.place]) for each in layout.statistics if each.name != "last"}
        means = {place: mean for place, mean in found.items() if mean is not None}
        before, self.last = self.last, None
        if when is None or duration is None:
            return means
        self.last = when[0], duration, means
        # a collection that was cleared is as old as the row before, one that goes on is older by what that was
        if before is None or duration <= max((when[0] - before[0]) / 1e6 + before[1] / 2, before[1]):
            return means
        self.cumulative = True
        since: dict[int, float] = {}
        for place, mean in means.items():
            if place in before[2]:
                value = (mean * duration - before[2][place] * before[1]) / (duration - before[1])
                # below 0 by less than the error is 0
                since[place] = 0.0 if -_OVERSHOOT * abs(mean) - 1e-9 <= value < 0 else value
        return since


def _read(
    row: Sequence[str], layout: _Layout, means: Mapping[int, float], account: Account
) -> dict[int | None, Record]:
    """Return what a row says of each device."""
    devices: dict[int | None, Record] = {}
    for each in layout.statistics:
        record, cell = devices.setdefault(each.gpu, {}), row[each.place]
        target, unit = each.meaning
        if not target:
            record |= {extra_name(each.source): cell} if cell else {}
            continue
        found = parse_number(cell) if each.name == "last" else means.get(each.place)
        if found is not None and unit == "%" and 100 < found <= _WHOLE and not BY_NAME[target].may_exceed_one:  # noqa: PLR2004 - per cent
            found = 100.0
        value = None if found is None else convert_to_base(found, unit, target)
        if value is None:
            account.absent[each.source, describe_absence(cell)] += 1
        else:
            record[target] = value
    return devices
