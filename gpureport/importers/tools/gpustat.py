"""Reads the documents of `gpustat --json`: a time, and what NVML said of every GPU.

gpustat cuts watts and MiB to whole ones, so that power is up to 1 W and memory up to 1 MiB below what it was
(gpustat 1.1.1, core.py). The time is taken after all GPUs were asked, in the local time of the machine.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import extra_name, parse_time
from gpureport.importers.extraction import Extraction
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import CUT_DOCUMENT, NOT_JSON
from gpureport.importers.quantities import parse_number
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head_text, sound_lines
from gpureport.importers.tools import Record, form, parse_documents, say_when, take_number

_MOST = 2**24
"""Characters of a document; one of 16 GPUs with a thousand processes has a tenth."""
_METRICS = {
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
_TEXTS = {"uuid": "uuid", "name": "model"}
_FAILED = re.compile(r"\(\((.+)\)\)")
"""Replaces the name of a GPU that could not be queried, and says why."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
Lines = Sequence[tuple[int, str]]


class Gpustat:
    """The importer of gpustat's JSON."""

    kind: ClassVar[str] = "gpustat"
    title: ClassVar[str] = "gpustat"
    recognised_by: ClassVar[str] = "A JSON document with `query_time` and `gpus`."
    sample: ClassVar[str] = "gpustat/gpustat.json"

    def identify(self, head: bytes) -> bool:
        """Return whether a document begins that holds a time and a list of GPUs."""
        text = head_text(head)
        return bool(re.search(r'"query_time"\s*:', text) and re.search(r'"gpus"\s*:\s*\[', text))

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log."""
        return Extraction(file, options, partial(read_gpustat, path=str(file.path)), name="gpustat --json")


@form
def read_gpustat(lines: Iterable[str], first: int, account: Account, path: str = "") -> Iterator[Record]:
    """Yield the rows of documents, pretty-printed or one a line.

    Raises:
        SourceError: when one number is that of GPUs of several machines, and nothing tells them apart.
    """
    hosts: dict[str, str] = {}
    for held in _documents(lines, first, account):
        contents = parse_documents("\n".join(text for _, text in held)) or [None]
        contents = [each for content in contents for each in (content if isinstance(content, list) else [content])]
        if not all(map(_is_whole, contents)):
            _reject(held, NOT_JSON, account)
            continue
        gpus = [(content, gpu) for content in contents for gpu in content["gpus"]]
        if not gpus:
            account.noise += len(held)
            continue
        account.continued += max(len(held) - len(gpus), 0)
        for content, gpu in gpus:
            failed, index = _FAILED.fullmatch(str(gpu.get("name"))), str(gpu.get("index"))
            host = None if failed or isinstance(gpu.get("uuid"), str) else content.get("hostname")
            if host and isinstance(host, str) and hosts.setdefault(index, host) != host:
                what = f"GPUs of several machines ({hosts[index]}, {host}) in one log without uuid"
                hint = "write one file a machine, and read them with --as-one-run"
                raise SourceError(path, what, hint, code="several_machines")
            when = parse_time(str(content.get("query_time")))
            yield {"line": held[0][0], **say_when(when), **_values(content, gpu, account, failed)}


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[Lines]:
    """Yield the lines of each document, which ends where its brackets close; one that is cut is rejected."""
    held: list[tuple[int, str]] = []
    depth = size = 0
    for number, text in sound_lines(lines, first, account):
        if held and held[0][1].startswith("{") and text.startswith("{"):
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


def _reject(held: Lines, reason: str, account: Account) -> None:
    for number, text in held:
        account.reject(reason, number, text)


def _is_whole(content: object) -> bool:
    gpus = content.get("gpus") if isinstance(content, dict) else None
    return isinstance(gpus, list) and all(isinstance(gpu, dict) for gpu in gpus)


def _values(
    content: Mapping[str, Any], gpu: Mapping[str, Any], account: Account, failed: "re.Match[str] | None"
) -> Record:
    index, driver = parse_number(gpu.get("index")), content.get("driver_version")
    values: Record = {"driver": driver} if isinstance(driver, str) else {}
    if index is not None and index.is_integer() and 0 <= index < 2**14:
        values["index"] = str(int(index))
    for key, cell in gpu.items():
        if key in _TEXTS and isinstance(cell, str) and not failed:
            values[_TEXTS[key]] = cell
        elif key in _METRICS:
            take_number(values, account, key, cell, _METRICS[key])
        elif key == "processes" and cell:
            account.note("What gpustat says of processes is not kept.")
        elif key not in {"index", "processes", *_TEXTS} and cell is not None:
            values[extra_name(key)] = str(cell)
    if failed:
        account.absent["utilization.gpu", failed[1]] += 1
    return values
