"""The columns of a collector's CSV: `<tag>/<device>/<metric (unit)>/<statistic>`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

HOST_METRICS = {
    "cpu_percent (%)": ("cpu_utilization_ratio", "%"),
    "memory_used (GiB)": ("host_memory_used_bytes", "GiB"),
}
GPU_METRICS = {
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
"""Metrics by the collector's names (nvitop 1.7.2, api/collector.py); power_limit is NVML's power management limit."""
LEVELS = frozenset({"host_memory_used_bytes", "gpu_memory_used_bytes", "gpu_memory_free_bytes"})
"""What is a level of its moment: of a window its last reading is wanted, not its mean."""
MEAN, LAST = "mean", "last"
_STATISTICS = frozenset({MEAN, LAST, "min", "max"})
_DEVICE = re.compile(r"host|(?:cuda:\d+ \()?gpu:(\d{1,4})\)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A column that holds a statistic of a metric.

    Attributes:
        place: its position in the row.
        gpu: index of the GPU; None for the machine.
        source: the collector's name of the metric.
        target: metric of the series; empty for one without a column of its own.
        unit: unit it counts in.
        name: `mean` or `last`.
    """

    place: int
    gpu: int | None
    source: str
    target: str
    unit: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a collector's CSV.

    Attributes:
        header: its headings.
        epoch: position of the collector's time, None when it is left out.
        local: position of a time as text, None when there is none.
        duration: position of the time since the collection began, None when it is left out.
        statistics: columns that are used.
        ignored: sorts of columns that are not.
    """

    header: tuple[str, ...]
    epoch: int | None
    local: int | None
    duration: int | None
    statistics: tuple[Statistic, ...]
    ignored: tuple[str, ...]


def recognise_layout(header: Sequence[str]) -> Layout | None:
    """Return the columns a header names, None when it is none of a collector.

    Where several collections were written side by side, the first is read.
    """
    tags = dict.fromkeys(tag for heading in header if (tag := _tag(heading)) is not None)
    if not tags:
        return None
    tag = next(iter(tags))
    own = {heading.removeprefix(f"{tag}/"): place for place, heading in reversed(list(enumerate(header)))}
    found = [each for name, place in own.items() if (each := _statistic(name, place)) is not None]
    found.sort(key=lambda each: each.place)
    ignored = {
        "min and max of each window": any(name.endswith(("/min", "/max")) for name in own),
        "what single processes used": any("/pid:" in f"/{name}" for name in own),
        "MIG instances": any(
            name.startswith(("gpu:", "cuda:")) and not _DEVICE.fullmatch(name.partition("/")[0]) for name in own
        ),
        "other collections than the first": len(tags) > 1,
    }
    return Layout(
        header=tuple(header),
        epoch=own.get("timestamp"),
        local=next((place for place, heading in enumerate(header) if heading in {"time", "timestamp", "date"}), None),
        duration=own.get("duration (s)"),
        statistics=tuple(_chosen(found)),
        ignored=tuple(text for text, holds in ignored.items() if holds),
    )


def _tag(heading: str) -> str | None:
    """Return the collection that a column of a known metric belongs to."""
    parts = heading.split("/")
    if len(parts) < 4 or parts[-1] not in _STATISTICS or parts[-4].startswith("pid:"):  # noqa: PLR2004 - tag, device, metric, statistic
        return None
    device, metric = parts[-3:-1]
    known = metric in (HOST_METRICS if device == "host" else GPU_METRICS)
    return "/".join(parts[:-3]) if known and _DEVICE.fullmatch(device) else None


def _statistic(name: str, place: int) -> Statistic | None:
    device, _, rest = name.partition("/")
    source, _, statistic = rest.rpartition("/")
    match = _DEVICE.fullmatch(device)
    if match is None or not source or statistic not in {MEAN, LAST}:
        return None
    gpu = None if match[1] is None else int(match[1])
    target, unit = (HOST_METRICS if gpu is None else GPU_METRICS).get(source, ("", ""))
    return Statistic(place=place, gpu=gpu, source=source, target=target, unit=unit, name=statistic)


def _chosen(found: Sequence[Statistic]) -> list[Statistic]:
    """Return one statistic of each metric: the mean, the last reading of levels where there is one."""
    named: dict[tuple[int | None, str], dict[str, Statistic]] = {}
    for each in found:
        named.setdefault((each.gpu, each.source), {})[each.name] = each
    chosen = []
    for statistics in named.values():
        one = next(iter(statistics.values()))
        wanted = LAST if one.target in LEVELS else MEAN
        chosen.append(statistics.get(wanted, one))
    return chosen
