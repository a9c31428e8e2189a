"""Reads logs from monitors: JSON (gpustat, nvtop and all-smi), lines (tegrastats), and tables (nvitop and others).

gpustat truncates watts and MiB (1.1.1, core.py). all-smi uses UTC, and other monitors local time. A Jetson's memory
and power rails serve the whole machine. In W&B, `/l:node1` after a name means another machine.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from gpureport.importers import tools
from gpureport.importers.account import CUT_DOCUMENT, NOT_JSON, NOT_OF_FORM, Account
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import LOST, TIME, extra_name
from gpureport.importers.headings import is_time_heading, parse_number

_MOST = 2**24
_CLOSING = {"{": "}", "[": "]"}
_NOT_KEPT = {"processes", "index", "time", "hostname", "host_id", "instance", "device_type"}


@tools.form
def read_snapshots(lines: Iterable[str], first: int, account: Account, gpus: str, time: str) -> Iterator[tools.Record]:
    """Yield the rows of documents; `gpus` and `time` are their keys, or empty for lists of GPUs."""
    hosts: dict[str, bool] = {}
    account.snapshot = not time
    for held, found in _documents(lines, first, account):
        several = [one for each in found for one in (each if gpus and isinstance(each, list) else [each])]
        contents = [one if gpus and isinstance(one, dict) else {"": one} for one in several]
        # all-smi also writes documents about itself, which have a schema but no GPUs
        listed: list[Any] = [one.get(gpus, [] if "schema" in one else 0) for one in contents]
        if not all(isinstance(each, list) and all(isinstance(gpu, dict) for gpu in each) for each in listed):
            _reject(held, NOT_JSON, account)
            continue
        rows = [(one, *gpu) for one, each in zip(contents, listed, strict=True) for gpu in enumerate(each)]
        account.continued += max(len(held) - len(rows), 0) if rows else 0
        account.noise += 0 if rows else len(held)
        for content, place, gpu in rows:
            cells = {key: cell for key, cell in gpu.items() if key not in _NOT_KEPT}
            cells["driver"] = content.get("driver_version")
            record = tools.take_cells({}, account, cells.items(), tools.JSON)
            # if a GPU could not be queried, this text with the reason replaces its name
            if failed := re.fullmatch(r"\(\((.+)\)\)", str(gpu.get("name"))):
                record = {name: cell for name, cell in record.items() if name not in {"uuid", "model"}}
                account.absent["utilization.gpu", failed[1]] += 1
                if record.get("gpu_utilization_ratio") is None:
                    record[LOST] = failed[1]
            index = str(gpu.get("index") if gpus else place)
            record |= {"index": index} if re.fullmatch(r"[0-9]{1,4}", index) else {}
            named = "uuid" in record or "model" not in record
            tools.refuse_machines(hosts, gpu.get("hostname", content.get("hostname")), named=named)
            yield {"line": held[0][0], TIME: parse_time(str(content.get(time))), **record}


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[list[tuple[int, str]], list[Any]]]:
    held: list[tuple[int, str]] = []
    size = 0
    for number, text in tools.text_lines(lines, first, account, may_be_cut=True):
        if held and text[0] == held[0][1][0]:
            _reject(held, CUT_DOCUMENT, account)
            held = []
        if not held and text[0] not in _CLOSING:
            account.reject(NOT_JSON, number, text)
            continue
        size = (size if held else 0) + len(text)
        held.append((number, text))
        closing = _CLOSING[held[0][1][0]]
        if text[0] == closing or (len(held) == 1 and text.rstrip(", ")[-1:] == closing) or size > _MOST:
            yield held, tools.parse_documents("\n".join(text for _, text in held)) or [None]
            held = []
    _reject(held, CUT_DOCUMENT, account)


def _reject(held: Iterable[tuple[int, str]], reason: str, account: Account) -> None:
    for number, text in held:
        account.reject(reason, number, text)


def _opens(*keys: str) -> Callable[[str], bool]:
    """Return a function that recognises documents with these keys, even after a damaged line."""
    return lambda text: bool(re.search(r"^\ufeff?[{[]", text, re.MULTILINE)) and all(f'"{key}"' in text for key in keys)


_TEGRA = re.compile(
    r"\s*(?:(?P<time>\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) )?RAM (?P<used>\d{1,9})/(?P<total>\d{1,9})MB .*"
    r"\bGR3D_FREQ (?P<use>\d{1,3})%(?:@\[?(?P<clock>\d{1,5}))?.*",
    re.ASCII,
)
_RAIL = re.compile(r"\b([A-Z]\w+) (\d{1,7})(?:mW)?/\d{1,7}(?:mW)?(?= |$)", re.ASCII)


def describe_cores(loads: Sequence[float]) -> tools.Record:
    mean = sum(loads) / len(loads)
    return {"cpu_utilization_ratio": mean, "cpu_busiest_core_ratio": max(loads), "cpu_logical_cores": len(loads)}


@tools.form
def read_tegrastats(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    for number, text in tools.text_lines(lines, first, account):
        found = _TEGRA.fullmatch(text.strip())
        cores = found and re.search(r"\bCPU \[([^\]]*)\]", text)
        loads = [int(load) / 100 for load in re.findall(r"(\d{1,3})%", cores[1])] if cores else []
        if found is None or max(int(found["use"]) / 100, *loads, 0) > 1:
            account.reject(NOT_OF_FORM, number, text)
            continue
        memory = [("RAM used", found["used"]), ("RAM total", found["total"])]
        host = tools.take_cells({}, account, memory, tools.TEGRASTATS) | (describe_cores(loads) if loads else {})
        # a sensor that is switched off reports -256C
        heat = re.search(r"\bgpu@(\d{1,3}(?:\.\d{1,3})?)C\b", text, re.IGNORECASE)
        cells = [("GR3D_FREQ", found["use"]), ("GR3D_FREQ@", found["clock"]), ("gpu@", heat and heat[1])]
        cells = [*((name, cell) for name, cell in cells if cell), *_RAIL.findall(text)]
        gpu = tools.take_cells({}, account, cells, tools.TEGRASTATS)
        when = tools.parse_with(found["time"] or "", "%m-%d-%Y %H:%M:%S")
        yield from tools.split_devices(number, when, {None: host, 0: gpu})


_Table = tuple[int | None, list[tools.Column]]
_ALLOCATED, _CORE = "memoryAllocated", "core"
"""Percentage of memory in use, and the load of a core."""


@tools.form
def read_columns(
    lines: Iterable[str],
    first: int,
    account: Account,
    find: Callable[[list[str]], _Table | None],
    without: Container[str] = ("",),
) -> Iterator[tools.Record]:
    for number, (time, columns), row in tools.table_rows(lines, first, account, find):
        loads = [place for place, gpu, name, _ in columns if (gpu, name) == (None, _CORE) and row[place] not in without]
        devices = tools.take_row(account, (column for column in columns if column[1:3] != (None, _CORE)), row, without)
        cores = [tools.parse_cell(row[place], "%", "cpu_utilization_ratio") for place in loads]
        if cores and None not in cores:
            devices.setdefault(None, {}).update(describe_cores([load or 0.0 for load in cores]))
        for record in devices.values():
            share = parse_number(record.get(extra_name(_ALLOCATED)))
            used = record.get("gpu_memory_used_bytes")
            if used and share and 0 < share <= 100 and "gpu_memory_total_bytes" not in record:  # noqa: PLR2004 - per cent
                del record[extra_name(_ALLOCATED)]
                record["gpu_memory_total_bytes"] = round(used * 100 / share)
        account.noise += not devices
        yield from tools.split_devices(number, tools.parse_stamp("" if time is None else row[time]), devices)


_WANDB_HEADING = re.compile(
    r"_?(?:system[./]_?)?(?:gpu\.(\d{1,4})\.(\w+)|cpu\.\d{1,5}\.cpu_percent"
    r"|(cpu|memory_percent|disk\..*|network\..*|proc\..*|memory))",
    re.ASCII,
)
_TIMES = "_timestamp", "timestamp"  # in W&B
_LIGHTNING_HEADING = re.compile(r"(?:.*/)?(?:device|gpu)_id: (\d{1,4})/([\w.]+) \(.*\)", re.ASCII)


def _find_devices(header: Sequence[str], pattern: "re.Pattern[str]", meanings: tools.Meanings) -> _Table | None:
    others: list[tools.Column] = []
    for place, match in enumerate(map(pattern.fullmatch, header)):
        if match:
            gpu = int(match[1]) if match[1] else None
            name = match[match.lastindex] if match.lastindex else _CORE
            others.append((place, gpu, name, ("", "") if gpu is None else meanings.get(name, ("", ""))))
    known = any(target or (gpu is not None and name == _ALLOCATED) for _, gpu, name, (target, _) in others)
    is_logged = pattern is _LIGHTNING_HEADING
    times = filter(is_time_heading, header) if is_logged else (name for name in _TIMES if name in header)
    time = next(map(header.index, times), None)
    return (time, others) if known and (time is not None or "_runtime" in header or is_logged) else None


def _find_sensors(header: Sequence[str]) -> _Table | None:
    others: list[tools.Column] = []
    for place, heading in enumerate(header[1:] if header[:1] == ["Date"] else (), 1):
        match = re.fullmatch(r"(.+?) \[([^\]]*)\]", heading)
        name = match[1] if match else heading
        target, unit = tools.GPUZ.get(name, ("", ""))
        meaning = target, "F" if match and match[2].endswith("F") else unit
        others.append((place, None if target.startswith("host_") else 0, name, meaning))
    return (0, others) if any(target.startswith("gpu_") for *_, (target, _) in others) else None


_LEVELS = {"memory_used (GiB)", "memory_used (MiB)", "memory_free (MiB)"}
"""Metrics for which the last reading in a window is used instead of the mean."""
_NVITOP_HEADING = re.compile(r"(?:(.*)/)?(host|(?:cuda:\d+ \()?gpu:(\d{1,4})\)?)/(.+)/(mean|last)")
_CUMULATIVE = "The means cover all time since collection began, so each window's mean was computed from two of them."
_OVERSHOOT = 0.02
"""Maximum relative error in a difference between two means."""


def _find_windows(header: list[str]) -> tuple[int | None, int | None, list[tools.Column], set[int]] | None:
    """Return the positions of the time and duration, the columns, and the means' positions."""
    places = {heading: place for place, heading in reversed(list(enumerate(header)))}
    found = [(place, match) for heading, place in places.items() if (match := _NVITOP_HEADING.fullmatch(heading))]
    found = sorted(((place, match) for place, match in found if "pid:" not in (match[1] or "")), key=itemgetter(0))
    tags = [match[1] for _, match in found if match[4] in tools.NVITOP and match[1]]
    if not tags:
        return None
    chosen: dict[tuple[str | None, str], tools.Column] = {}
    for place, match in found:
        key, gpu = (match[3], match[4]), int(match[3]) if match[3] else None
        if match[1] == tags[0] and (key not in chosen or (match[5] == "mean") != (match[4] in _LEVELS)):
            chosen[key] = place, gpu, match[4], tools.NVITOP.get(match[4], ("", ""))
    means = {place for place, match in found if match[5] == "mean" and match[4] in tools.NVITOP}
    local = next((places[name] for name in ("time", "timestamp", "date") if name in places), None)
    time, lasted = places.get(f"{tags[0]}/timestamp", local), places.get(f"{tags[0]}/duration (s)")
    return time, lasted, list(chosen.values()), means


@tools.form
def read_nvitop(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield the rows of a `ResourceMetricCollector`.

    `collect()` returns means since the last `clear()`. If a script never calls `clear()`, the mean
    between two rows is computed from their means, weighted by duration.
    """
    before: tuple[int, float, dict[int, float]] | None = None
    for number, (time, lasted, figures, of_means), row in tools.table_rows(lines, first, account, _find_windows):
        when = parse_time("" if time is None else row[time])
        duration = None if lasted is None else parse_number(row[lasted])
        means = {place: mean for place in of_means if (mean := parse_number(row[place])) is not None}
        cells: list[Any] = [means.get(place, cell) for place, cell in enumerate(row)]
        # an uncleared collection began before the previous row
        if when and duration and before and duration > max((when[0] - before[0]) / 1e6 + before[1] / 2, before[1]):
            for place, _, name, _ in figures:
                if place in means and place not in before[2]:
                    cells[place] = ""
                elif place in means:
                    value = (means[place] * duration - before[2][place] * before[1]) / (duration - before[1])
                    # rounding may move a difference of means just outside 0 to 100%
                    value = 0.0 if -_OVERSHOOT * abs(means[place]) - 1e-9 <= value < 0 else value
                    part = "(%)" in name and "fan" not in name and value <= 100 * (1 + _OVERSHOOT)
                    cells[place] = min(value, 100.0) if part else value
            account.note(_CUMULATIVE)
        before = None if when is None or duration is None else (when[0], duration, means)
        yield from tools.split_devices(number, when, tools.take_row(account, figures, cells))


_QUERIED, _RECORDED = (partial(read_snapshots, gpus="gpus", time=time) for time in ("query_time", "timestamp"))
_SNAPSHOT = "gpustat --json", _opens("query_time", "gpus"), _QUERIED
_WINDOWS = "nvitop ResourceMetricCollector", partial(tools.has_header, _find_windows), read_nvitop
_find_events = partial(_find_devices, pattern=_WANDB_HEADING, meanings=tools.WANDB)
_find_logged = partial(_find_devices, pattern=_LIGHTNING_HEADING, meanings=tools.LIGHTNING)
_read_events = partial(read_columns, find=_find_events, without={"", "nan", "NaN", "null", "None"})
_EVENTS = "W&B system metrics", partial(tools.has_header, _find_events), _read_events
GPUSTAT = tools.ToolLog(kind="gpustat", title="gpustat", forms=(_SNAPSHOT,))
NVITOP = tools.ToolLog(kind="nvitop", title="nvitop", forms=(_WINDOWS,))
WANDB = tools.ToolLog(kind="wandb", title="Weights & Biases", forms=(_EVENTS,))
MONITORS = tools.ToolLog(
    kind="monitors",
    title="nvtop, all-smi, tegrastats, GPU-Z, Lightning",
    forms=(
        ("nvtop -s", _opens("device_name", "gpu_util"), partial(read_snapshots, gpus="", time="")),
        ("all-smi record", _opens("power_consumption", "used_memory"), _RECORDED),
        ("tegrastats", lambda text: any(map(_TEGRA.match, tools.first_lines(text))), read_tegrastats),
        ("GPU-Z sensor log", partial(tools.has_header, _find_sensors), partial(read_columns, find=_find_sensors)),
        ("Lightning metrics.csv", partial(tools.has_header, _find_logged), partial(read_columns, find=_find_logged)),
    ),
)
