"""Reads the tables of other tools: nvitop's collector, system metrics of W&B, GPU-Z, Lightning's monitors of devices.

- nvitop's headings are `<tag>/<device>/<metric (unit)>/<statistic>` (nvitop 1.7.2, api/collector.py).
- W&B's names are `system.gpu.0.powerWatts`, with this prefix, another one or none (wandb gpu_stats). `cpu` is what the
  process used, `cpu.{i}.cpu_percent` what each core did: only the latter speak of the machine. `/l:node1` behind a name
  stands for another machine: these are not read.
- GPU-Z writes a table of one GPU.
- Lightning's `DeviceStatsMonitor` and `GPUStatsMonitor` add columns of nvidia-smi's figures to `metrics.csv`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from gpureport.importers import tools
from gpureport.importers.account import Account
from gpureport.importers.columns import extra_name, parse_time
from gpureport.importers.headings import is_time_heading
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.importers.quantities import parse_number, parse_quantity
from gpureport.importers.tools.snapshots import ALL_SMI, NVTOP, TEGRASTATS, describe_cores

Devices = dict[int | None, tools.Record]
"""What a row says of each GPU, and of the machine at None."""

# nvitop

_LEVELS = {"memory_used (GiB)", "memory_used (MiB)", "memory_free (MiB)"}
"""What is a level of its moment: of a window its last reading is wanted, not its mean."""
_NVITOP_HEADING = re.compile(r"(?:(.*)/)?(host|(?:cuda:\d+ \()?gpu:(\d{1,4})\)?)/(.+)/(mean|last)")
_CUMULATIVE = (
    "The means are those since the collection began; the mean of each window was made from two of them and their "
    "duration."
)
_OVERSHOOT = 0.02
"""Share by which the difference of two means may err, since duration and mean are taken a moment apart."""


class _Windows(NamedTuple):
    """Places of the time and its duration; place, GPU and name of each figure, and whether it is a mean."""

    time: int | None
    duration: int | None
    figures: list[tuple[int, int | None, str, bool]]


def _find_windows(header: list[str]) -> _Windows | None:
    """Return the columns a header names, None where it is not one of a collector; of several collections the first."""
    places = {heading: place for place, heading in reversed(list(enumerate(header)))}
    found = [(place, match) for heading, place in places.items() if (match := _NVITOP_HEADING.fullmatch(heading))]
    found = sorted(((place, match) for place, match in found if "pid:" not in (match[1] or "")), key=lambda one: one[0])
    tags = [match[1] for _, match in found if match[4] in tools.NVITOP and match[1]]
    if not tags:
        return None
    chosen: dict[tuple[int | None, str], tuple[int, bool]] = {}
    for place, match in found:
        key, is_mean = (int(match[3]) if match[3] else None, match[4]), match[5] == "mean"
        if match[1] == tags[0] and (key not in chosen or is_mean != (match[4] in _LEVELS)):
            chosen[key] = place, is_mean
    local = next((places[name] for name in ("time", "timestamp", "date") if name in places), None)
    figures = [(place, *key, is_mean) for key, (place, is_mean) in chosen.items()]
    return _Windows(places.get(f"{tags[0]}/timestamp", local), places.get(f"{tags[0]}/duration (s)"), figures)


@tools.form
def read_nvitop(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield the rows of the machine and of each GPU.

    `collect()` gives the mean since `activate` or `clear` was called last. A script that never clears, as the one in
    nvitop's README, writes means over an ever longer time: their differences, weighted with the time, are the means of
    the windows between the rows.
    """
    known: _Windows | None = None
    before: tuple[int, float, dict[int, float]] | None = None
    for number, layout, row in tools.table_rows(lines, first, account, _find_windows):
        known, before = layout, before if layout is known else None
        when = parse_time("" if layout.time is None else row[layout.time])
        duration = None if layout.duration is None else parse_number(row[layout.duration])
        found = ((place, parse_number(row[place])) for place, *_, is_mean in layout.figures if is_mean)
        means = values = {place: mean for place, mean in found if mean is not None}
        # a collection that was cleared is as old as the row before, one that goes on is older by what that was
        if when and duration and before and duration > max((when[0] - before[0]) / 1e6 + before[1] / 2, before[1]):
            values = {}
            for place, _, name, _ in layout.figures:
                if place in means and place in before[2]:
                    value = (means[place] * duration - before[2][place] * before[1]) / (duration - before[1])
                    # what it misses 0 or the whole by is its error
                    value = 0.0 if -_OVERSHOOT * abs(means[place]) - 1e-9 <= value < 0 else value
                    part = "(%)" in name and "fan" not in name and value <= 100 * (1 + _OVERSHOOT)
                    values[place] = min(value, 100.0) if part else value
            account.note(_CUMULATIVE)
        before = None if when is None or duration is None else (when[0], duration, means)
        devices: Devices = {}
        for place, gpu, name, _ in layout.figures:
            cell: Any = values.get(place, "") if place in means and name in tools.NVITOP else row[place]
            tools.take_cells(devices.setdefault(gpu, {}), account, [(name, cell)], tools.NVITOP)
        yield from tools.split_devices(number, when, devices)


NVITOP = tools.ToolLog(
    kind="nvitop",
    title="nvitop",
    recognised_by="A CSV whose headings are `tag/device/metric (unit)/statistic`.",
    sample="recorded/phases/nvitop.csv.gz",
    forms=(("nvitop ResourceMetricCollector", partial(tools.has_header, _find_windows), read_nvitop),),
)

# Weights & Biases

_ALLOCATED, _CORE = "memoryAllocated", "core"
"""Share of the memory installed that is used, in per cent; and what the load of a core is called here."""
_WANDB_NAME = re.compile(
    r"_?(?:system[./]_?)?(?:gpu\.(?P<gpu>\d{1,4})\.(?P<metric>\w+)|cpu\.\d{1,5}\.cpu_percent"
    r"|(?P<host>cpu|memory_percent|disk\..*|network\..*|proc\..*|memory))",
    re.ASCII,
)
_TIMES = ("_timestamp", "timestamp")


@lru_cache(4096)
def _parse_name(text: str) -> tuple[int | None, str] | None:
    """Return the GPU (None for the machine) and the metric that a name stands for, None for another name."""
    match = _WANDB_NAME.fullmatch(text)
    if match is None or match["gpu"] is None:
        return match and (None, match["host"] or _CORE)
    return int(match["gpu"]), match["metric"]


def _find_names(names: Iterable[str]) -> list[str] | None:
    """Return names among which is a time and one that only W&B uses, None for others."""
    held = list(names)
    found = [name for name in map(_parse_name, held) if name and name[0] is not None]
    known = not {*tools.WANDB, _ALLOCATED}.isdisjoint(metric for _, metric in found)
    return held if known and not {*_TIMES, "_runtime"}.isdisjoint(held) else None


@tools.form
def read_wandb(lines: Iterable[str], first: int, account: Account, *, json: bool) -> Iterator[tools.Record]:
    """Yield the rows of the machine and of each GPU, from a CSV or JSON lines."""
    for number, cells in (_read_objects if json else _read_rows)(lines, first, account):
        devices: Devices = {}
        cores: list[float | None] = []
        for text, cell in cells.items():
            gpu, metric = _parse_name(text) or (None, "")
            if not metric or cell is None or str(cell) in {"", "nan", "NaN", "null", "None"}:
                continue
            if metric == _CORE and gpu is None:
                cores.append(parse_quantity(cell, "%", "cpu_utilization_ratio"))
            else:
                meanings = {} if gpu is None else tools.WANDB
                tools.take_cells(devices.setdefault(gpu, {}), account, [(metric, cell)], meanings)
        loads = [load for load in cores if load is not None]
        if loads and len(loads) == len(cores):
            devices.setdefault(None, {}).update(describe_cores(loads))
        for record in devices.values():
            share, used = parse_number(record.get(extra_name(_ALLOCATED))), record.get("gpu_memory_used_bytes")
            if used and share and 0 < share <= 100 and "gpu_memory_total_bytes" not in record:  # noqa: PLR2004 - per cent
                del record[extra_name(_ALLOCATED)]
                record["gpu_memory_total_bytes"] = round(used * 100 / share)
        account.noise += not devices
        when = parse_time(str(next((cells[key] for key in _TIMES if key in cells), "")))
        in_order = dict(sorted(devices.items(), key=lambda item: -1 if item[0] is None else item[0]))
        yield from tools.split_devices(number, when, in_order)


def _read_rows(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, names, row in tools.table_rows(lines, first, account, _find_names):
        yield number, dict(zip(names, row, strict=True))


def _read_objects(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text, cut in tools.text_lines(lines, first, account):
        found = tools.parse_documents(text) or []
        if len(found) == 1 and isinstance(found[0], dict):
            yield number, found[0]
        else:
            account.reject(reasons.CUT_LAST_LINE if cut else reasons.NOT_JSON, number, text)


def _is_wandb_json(text: str) -> bool:
    objects = (tools.parse_documents(line) or () for line in tools.first_lines(text) if line.startswith("{"))
    return any(isinstance(one, dict) and _find_names(one) is not None for found in objects for one in found)


WANDB = tools.ToolLog(
    kind="wandb",
    title="Weights & Biases",
    recognised_by="A CSV or JSON lines with system metrics such as `system.gpu.0.powerWatts` and a time.",
    sample="wandb/wandb.csv",
    forms=(
        ("W&B system metrics", _is_wandb_json, partial(read_wandb, json=True)),
        ("W&B system metrics", partial(tools.has_header, _find_names), partial(read_wandb, json=False)),
    ),
)

# GPU-Z, and Lightning's monitors of devices

_GPUZ_HEADING = re.compile(r"(.+?) \[([^\]]*)\]")
_LIGHTNING_HEADING = re.compile(r"(?:.*/)?(?:device|gpu)_id: (\d{1,4})/([\w.]+) \(.*\)", re.ASCII)


_Column = tuple[int, int | None, str, tools.Meaning]
"""Place, GPU (None for the machine), name and meaning of a column."""


class _Columns(NamedTuple):
    time: int | None
    others: list[_Column]


def _find_sensors(header: Sequence[str]) -> _Columns | None:
    """Return the columns of a sensor log of GPU-Z, None where a line is not the header of one."""
    others: list[_Column] = []
    for place, heading in enumerate(header[1:] if header[:1] == ["Date"] else (), 1):
        match = _GPUZ_HEADING.fullmatch(heading)
        name = match[1] if match else heading
        target, unit = tools.GPUZ.get(name, ("", ""))
        of_host, in_fahrenheit = target.startswith("host_"), match and match[2].endswith("F")
        others.append((place, None if of_host else 0, name, (target, "F" if in_fahrenheit else unit)))
    return _Columns(0, others) if any(target.startswith("gpu_") for *_, (target, _) in others) else None


def _find_devices(header: Sequence[str]) -> _Columns | None:
    """Return the columns of GPUs among those of a training, None for another line."""
    found = [(place, match) for place, heading in enumerate(header) if (match := _LIGHTNING_HEADING.fullmatch(heading))]
    others: list[_Column] = [
        (place, int(match[1]), match[2], tools.LIGHTNING.get(match[2], ("", ""))) for place, match in found
    ]
    time = next((place for place, heading in enumerate(header) if is_time_heading(heading)), None)
    return _Columns(time, others) if any(target for *_, (target, _) in others) else None


@tools.form
def read_columns(
    lines: Iterable[str], first: int, account: Account, find: Callable[[list[str]], _Columns | None]
) -> Iterator[tools.Record]:
    """Yield the rows of each device; those that say nothing of one, as where training was logged alone, are noise."""
    for number, columns, row in tools.table_rows(lines, first, account, find):
        devices: Devices = {}
        for place, gpu, name, meaning in columns.others:
            if row[place]:
                tools.take_cells(devices.setdefault(gpu, {}), account, [(name, row[place])], {name: meaning})
        account.noise += not devices
        when = tools.parse_stamp("" if columns.time is None else row[columns.time])
        yield from tools.split_devices(number, when, devices)


MONITORS = tools.ToolLog(
    kind="monitors",
    title="nvtop, all-smi, tegrastats, GPU-Z, Lightning",
    recognised_by=(
        "JSON of `nvtop -s` or `all-smi record`, a line of tegrastats, a sensor log of GPU-Z, or a CSV with columns "
        "such as `device_id: 0/utilization.gpu (%)`."
    ),
    sample="",
    forms=(
        NVTOP,
        ALL_SMI,
        TEGRASTATS,
        ("GPU-Z sensor log", partial(tools.has_header, _find_sensors), partial(read_columns, find=_find_sensors)),
        ("Lightning metrics.csv", partial(tools.has_header, _find_devices), partial(read_columns, find=_find_devices)),
    ),
)
