"""Reads what tools say of all GPUs at a moment: JSON documents one after the other, and the lines of tegrastats.

- gpustat cuts watts and MiB to whole ones, so that power is up to 1 W and memory up to 1 MiB below what it was
  (gpustat 1.1.1, core.py). The time is taken after all GPUs were asked, in the local time of the machine.
- nvtop prints an array of GPUs, without a time; bytes and per cent as text with or without a unit. Its `mem_util` is
  the share of the memory that is used, not of the time it is accessed.
- all-smi writes an object a moment, in UTC, between frames that say how it records.
- tegrastats of a Jetson prints a line a moment. CPU and GPU share the memory, which stands in the series of the
  machine, and no rail of power is the GPU's alone: they are kept as text, in mW.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from gpureport.importers import tools
from gpureport.importers.account import Account
from gpureport.importers.columns import TIME, parse_time
from gpureport.importers.protocol import reject_reasons as reasons

_MOST = 2**24
"""Characters of a document; one of 16 GPUs with a thousand processes has a tenth."""
_CLOSING = {"{": "}", "[": "]"}
_FAILED = re.compile(r"\(\((.+)\)\)")
"""Replaces the name of a GPU that could not be queried, and says why."""
_NOT_KEPT = {"processes", "index", "time", "hostname", "host_id", "instance", "device_type"}
"""Keys of a GPU that are left out: some repeat what stands above."""


@tools.form
def read_snapshots(lines: Iterable[str], first: int, account: Account, gpus: str, time: str) -> Iterator[tools.Record]:
    """Yield the rows of documents, pretty-printed or one a line; refuse GPUs of several machines without a uuid.

    `gpus` and `time` are the keys of a document; empty where it is the list of GPUs, in their order, without a time.
    """
    hosts: dict[str, bool] = {}
    account.snapshot = not time
    for held in _documents(lines, first, account):
        found: list[Any] = tools.parse_documents("\n".join(text for _, text in held)) or [None]
        found = [one for each in found for one in (each if gpus and isinstance(each, list) else [each])]
        contents = [one if gpus else {"": one} for one in found]
        # frames of all-smi that say how it records have a schema in place of GPUs
        listed: list[Any] = [
            one.get(gpus, [] if "schema" in one else 0) if isinstance(one, dict) else 0 for one in contents
        ]
        if not all(isinstance(each, list) and all(isinstance(gpu, dict) for gpu in each) for each in listed):
            _reject(held, reasons.NOT_JSON, account)
            continue
        rows = [(one, *gpu) for one, each in zip(contents, listed, strict=True) for gpu in enumerate(each)]
        account.continued += max(len(held) - len(rows), 0) if rows else 0
        account.noise += 0 if rows else len(held)
        for content, place, gpu in rows:
            cells = {key: cell for key, cell in gpu.items() if key not in _NOT_KEPT}
            cells["driver"] = content.get("driver_version")
            record = tools.take_cells({}, account, cells.items(), tools.JSON)
            for failed in (_FAILED.fullmatch(cell) for cell in cells.values() if isinstance(cell, str)):
                if failed:
                    record = {name: cell for name, cell in record.items() if name not in {"uuid", "model"}}
                    account.absent["utilization.gpu", failed[1]] += 1
            index = str(gpu.get("index") if gpus else place)
            record |= {"index": index} if re.fullmatch(r"[0-9]{1,4}", index) else {}
            named = "uuid" in record or "model" not in record
            tools.refuse_machines(hosts, gpu.get("hostname", content.get("hostname")), named=named)
            yield {"line": held[0][0], TIME: parse_time(str(content.get(time))), **record}


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of each document, from a bracket that opens a line to the one that closes it."""
    held: list[tuple[int, str]] = []
    size = 0
    for number, text, _ in tools.text_lines(lines, first, account):
        if held and text[0] == held[0][1][0]:
            _reject(held, reasons.CUT_DOCUMENT, account)
            held = []
        if not held and text[0] not in _CLOSING:
            account.reject(reasons.NOT_JSON, number, text)
            continue
        size = (size if held else 0) + len(text)
        held.append((number, text))
        closing = _CLOSING[held[0][1][0]]
        if size > _MOST:
            _reject(held, reasons.NOT_JSON, account)
            held = []
        elif text[0] == closing or (len(held) == 1 and text.rstrip(", ")[-1:] == closing):
            yield held
            held = []
    _reject(held, reasons.CUT_DOCUMENT, account)


def _reject(held: Iterable[tuple[int, str]], reason: str, account: Account) -> None:
    for number, text in held:
        account.reject(reason, number, text)


def _opens(*keys: str) -> Callable[[str], bool]:
    """Return what recognises a document that has keys; a damaged line may stand above it."""
    return lambda text: bool(re.search(r"^\ufeff?[{[]", text, re.MULTILINE)) and all(f'"{key}"' in text for key in keys)


GPUSTAT = tools.ToolLog(
    kind="gpustat",
    title="gpustat",
    recognised_by="A JSON document with `query_time` and `gpus`.",
    sample="gpustat/gpustat.json",
    forms=(("gpustat --json", _opens("query_time", "gpus"), partial(read_snapshots, gpus="gpus", time="query_time")),),
)
NVTOP: tools.Form = "nvtop -s", _opens("device_name", "gpu_util"), partial(read_snapshots, gpus="", time="")
ALL_SMI: tools.Form = (
    "all-smi record",
    _opens("power_consumption", "used_memory"),
    partial(read_snapshots, gpus="gpus", time="timestamp"),
)

# tegrastats

_TEGRA = re.compile(
    r"(?:(?P<time>\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) )?RAM (?P<used>\d{1,9})/(?P<total>\d{1,9})MB .*"
    r"\bGR3D_FREQ (?P<use>\d{1,3})%(?:@\[?(?P<clock>\d{1,5}))?.*",
    re.ASCII,
)
_CORES = re.compile(r"\bCPU \[([^\]]*)\]")
_HEAT = re.compile(r"\bgpu@(\d{1,3}(?:\.\d{1,3})?)C\b", re.IGNORECASE)
"""A sensor that is switched off says -256C."""
_RAIL = re.compile(r"\b([A-Z]\w+) (\d{1,7})(?:mW)?/\d{1,7}(?:mW)?(?= |$)", re.ASCII)


def describe_cores(loads: Sequence[float]) -> tools.Record:
    """Return what the load of each core says of the machine."""
    mean = sum(loads) / len(loads)
    return {"cpu_utilization_ratio": mean, "cpu_busiest_core_ratio": max(loads), "cpu_logical_cores": len(loads)}


@tools.form
def read_tegrastats(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield the rows of the machine and of its GPU."""
    for number, text, cut in tools.text_lines(lines, first, account):
        found = None if cut else _TEGRA.fullmatch(text.strip())
        cores = found and _CORES.search(text)
        loads = [int(load) / 100 for load in re.findall(r"(\d{1,3})%", cores[1])] if cores else []
        if found is None or max(int(found["use"]) / 100, *loads, 0) > 1:
            account.reject(reasons.CUT_LAST_LINE if cut else reasons.NOT_OF_FORM, number, text)
            continue
        memory = [("RAM used", found["used"]), ("RAM total", found["total"])]
        host = tools.take_cells({}, account, memory, tools.TEGRASTATS) | (describe_cores(loads) if loads else {})
        heat = _HEAT.search(text)
        cells = [("GR3D_FREQ", found["use"]), ("GR3D_FREQ@", found["clock"]), ("gpu@", heat and heat[1])]
        cells = [*((name, cell) for name, cell in cells if cell), *_RAIL.findall(text)]
        gpu = tools.take_cells({}, account, cells, tools.TEGRASTATS)
        when = tools.parse_with(found["time"] or "", "%m-%d-%Y %H:%M:%S")
        yield from tools.split_devices(number, when, {None: host, 0: gpu})


TEGRASTATS: tools.Form = (
    "tegrastats",
    lambda text: any(_TEGRA.fullmatch(line.strip()) for line in tools.first_lines(text)),
    read_tegrastats,
)
