"""Reads JSON in which a tool says what every GPU does at a moment: documents one after the other, or one a line.

- gpustat cuts watts and MiB to whole ones, so that power is up to 1 W and memory up to 1 MiB below what it was
  (gpustat 1.1.1, core.py). The time is taken after all GPUs were asked, in the local time of the machine.
- nvtop prints an array of GPUs, without a time; bytes and per cent as text with or without a unit. Its `mem_util` is
  the share of the memory that is used, not of the time it is accessed.
- all-smi writes an object a moment, in UTC, between frames that say how it records.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.clock import parse_time
from gpureport.importers.headings import parse_number
from gpureport.importers.protocol.reject_reasons import CUT_DOCUMENT, NOT_JSON
from gpureport.importers.tools import (
    Form,
    Meaning,
    Record,
    ToolLog,
    form,
    parse_documents,
    say_when,
    take_cells,
    text_lines,
)

_MOST = 2**24
"""Characters of a document; one of 16 GPUs with a thousand processes has a tenth."""
_FAILED = re.compile(r"\(\((.+)\)\)")
"""Replaces the name of a GPU that could not be queried, and says why."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_NOT_KEPT = frozenset({"processes", "index", "time", "hostname", "host_id", "instance", "device_type"})
"""Keys of a GPU that are left out: some repeat what stands above."""
_MACHINES = "write one file a machine, and read them with --as-one-run"
_GPUSTAT = {
    "uuid": ("uuid", ""),
    "name": ("model", ""),
    "temperature.gpu": ("gpu_temperature_celsius", "C"),
    "fan.speed": ("gpu_fan_ratio", "%"),
    "utilization.gpu": ("gpu_utilization_ratio", "%"),
    "utilization.enc": ("gpu_encoder_ratio", "%"),
    "utilization.dec": ("gpu_decoder_ratio", "%"),
    "power.draw": ("gpu_power_watts", "W"),
    "enforced.power.limit": ("gpu_power_limit_watts", "W"),
    "memory.used": ("gpu_memory_used_bytes", "MiB"),
    "memory.total": ("gpu_memory_total_bytes", "MiB"),
}
_NVTOP = {
    "device_name": ("model", ""),
    "gpu_clock": ("gpu_graphics_clock_hertz", "MHz"),
    "mem_clock": ("gpu_memory_clock_hertz", "MHz"),
    "temp": ("gpu_temperature_celsius", "C"),
    "fan_speed": ("gpu_fan_ratio", "%"),
    "power_draw": ("gpu_power_watts", "W"),
    "gpu_util": ("gpu_utilization_ratio", "%"),
    "mem_total": ("gpu_memory_total_bytes", "B"),
    "mem_used": ("gpu_memory_used_bytes", "B"),
    "mem_free": ("gpu_memory_free_bytes", "B"),
}
_ALL_SMI = {
    "uuid": ("uuid", ""),
    "name": ("model", ""),
    "utilization": ("gpu_utilization_ratio", "%"),
    "used_memory": ("gpu_memory_used_bytes", "B"),
    "total_memory": ("gpu_memory_total_bytes", "B"),
    "temperature": ("gpu_temperature_celsius", "C"),
    "frequency": ("gpu_graphics_clock_hertz", "MHz"),
    "power_consumption": ("gpu_power_watts", "W"),
}


class Snapshots(NamedTuple):
    """How a tool writes its documents.

    Attributes:
        gpus: key of the list of GPUs; empty where the document is that list, and their place in it is their index.
        time: key of the time; empty where there is none.
        meanings: what the keys of a GPU hold.
    """

    gpus: str
    time: str
    meanings: dict[str, Meaning]


@form
def read_snapshots(lines: Iterable[str], first: int, account: Account, shape: Snapshots) -> Iterator[Record]:
    """Yield the rows of documents, pretty-printed or one a line.

    Raises:
        SourceError: when one number is that of GPUs of several machines, and nothing tells them apart.
    """
    hosts: dict[str, str] = {}
    account.snapshot = not shape.time
    for held in _documents(lines, first, account):
        found: list[Any] = parse_documents("\n".join(text for _, text in held)) or [None]
        several = [each if isinstance(each, list) else [each] for each in found]
        contents = [each for one in several for each in one] if shape.gpus else [{"": each} for each in found]
        if not all(_is_whole(content, shape) for content in contents):
            _reject(held, NOT_JSON, account)
            continue
        gpus = [(each, place, gpu) for each in contents for place, gpu in enumerate(each.get(shape.gpus) or ())]
        if gpus:
            account.continued += max(len(held) - len(gpus), 0)
        else:
            account.noise += len(held)
        for content, place, gpu in gpus:
            record = _read(gpu, shape, account) | ({} if shape.gpus else {"index": str(place)})
            take_cells(record, account, [("driver", content.get("driver_version"))], {"driver": ("driver", "")})
            index, host = record.get("index", ""), gpu.get("hostname", content.get("hostname"))
            known = "uuid" in record or "model" not in record or not isinstance(host, str)
            if not known and hosts.setdefault(index, host) != host:
                what = f"GPUs of several machines ({hosts[index]}, {host}) in one log without uuid"
                raise SourceError("the log", what, _MACHINES, code="several_machines")
            when = parse_time(str(content.get(shape.time)))
            yield {"line": held[0][0], **say_when(when), **record}


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[Sequence[tuple[int, str]]]:
    """Yield the lines of each document, which ends where its brackets close; one that is cut is rejected."""
    held: list[tuple[int, str]] = []
    depth = size = 0
    for number, text, _ in text_lines(lines, first, account):
        begins = text.startswith(("{", "["))
        if held and begins and held[0][1][0] == text[0]:
            _reject(held, CUT_DOCUMENT, account)
            held, depth, size = [], 0, 0
        if not held and not text.lstrip().startswith(("{", "[")):
            account.reject(NOT_JSON, number, text)
            continue
        held.append((number, text))
        bare = _STRING.sub("", text)
        depth += sum(bare.count(bracket) for bracket in "{[") - sum(bare.count(bracket) for bracket in "}]")
        size += len(text)
        if depth <= 0 or size > _MOST:
            if size <= _MOST:
                yield held
            else:
                _reject(held, NOT_JSON, account)
            held, depth, size = [], 0, 0
    _reject(held, CUT_DOCUMENT, account)


def _reject(held: Sequence[tuple[int, str]], reason: str, account: Account) -> None:
    for number, text in held:
        account.reject(reason, number, text)


def _is_whole(content: object, shape: Snapshots) -> bool:
    """Return whether a document lists GPUs; the frames of all-smi that say how it records have a schema instead."""
    gpus = content.get(shape.gpus, [] if "schema" in content else None) if isinstance(content, dict) else None
    return isinstance(gpus, list) and all(isinstance(gpu, dict) for gpu in gpus)


def _read(gpu: dict[str, Any], shape: Snapshots, account: Account) -> Record:
    """Return what a document says of a GPU."""
    failed = next(
        (found for each in gpu.values() if isinstance(each, str) and (found := _FAILED.fullmatch(each))), None
    )
    record: Record = {}
    take_cells(record, account, ((key, cell) for key, cell in gpu.items() if key not in _NOT_KEPT), shape.meanings)
    index = parse_number(gpu.get("index"))
    if index is not None and index.is_integer() and 0 <= index < 2**14:
        record["index"] = str(int(index))
    if gpu.get("processes"):
        account.note("What the log says of processes is not kept.")
    if failed:
        record.pop("uuid", None)
        record.pop("model", None)
        account.absent["utilization.gpu", failed[1]] += 1
    return record


def _opens(bracket: str, keys: Sequence[str], text: str) -> bool:
    return text.lstrip("\ufeff \r\n\t")[:1] in bracket and all(f'"{key}"' in text for key in keys)


GPUSTAT = ToolLog(
    kind="gpustat",
    title="gpustat",
    recognised_by="A JSON document with `query_time` and `gpus`.",
    sample="gpustat/gpustat.json",
    forms=(
        (
            "gpustat --json",
            partial(_opens, "{[", ("query_time", "gpus")),
            partial(read_snapshots, shape=Snapshots("gpus", "query_time", _GPUSTAT)),
        ),
    ),
)
NVTOP: Form = (
    "nvtop -s",
    partial(_opens, "[", ("device_name", "gpu_util")),
    partial(read_snapshots, shape=Snapshots("", "", _NVTOP)),
)
ALL_SMI: Form = (
    "all-smi record",
    partial(_opens, "{", ("power_consumption", "used_memory")),
    partial(read_snapshots, shape=Snapshots("gpus", "timestamp", _ALL_SMI)),
)
