"""Reads the documents of `gpustat --json`: a time, and what NVML said of every GPU.

gpustat cuts watts and MiB to whole ones, so that power is up to 1 W and memory up to 1 MiB below what it was
(gpustat 1.1.1, core.py). The time is taken after all GPUs were asked, in the local time of the machine.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece, head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import NOT_JSON
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.json_documents import Document, iterate_documents
from gpureport.importers.text.numbered_lines import text_lines
from gpureport.importers.text.text_log import Chunk, FormExtraction
from gpureport.importers.values import quantities
from gpureport.importers.values.timestamps import parse_iso_time

MOST = 2**24
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
_TIME = re.compile(r'"query_time"\s*:')
_GPUS = re.compile(r'"gpus"\s*:\s*\[')
_FAILED = re.compile(r"\(\((.+)\)\)")
"""Replaces the name of a GPU that could not be queried, and says why."""
_PROCESSES = "What gpustat says of processes is not kept."


class Gpustat:
    """The importer of gpustat's JSON."""

    kind: ClassVar[str] = "gpustat"
    title: ClassVar[str] = "gpustat"
    recognised_by: ClassVar[str] = "A JSON document with `query_time` and `gpus`."
    sample: ClassVar[str] = "gpustat/gpustat.json"

    def identify(self, head: bytes) -> bool:
        """Return whether a document begins that holds a time and a list of GPUs."""
        text = head_text(head)
        return bool(_TIME.search(text) and _GPUS.search(text))

    def extract(self, file: RawFile, options: ReadOptions) -> FormExtraction:
        """Begin to read a log."""
        return FormExtraction(file, options, partial(GpustatForm, str(file.path)))


class GpustatForm:
    """Documents of `gpustat --json`."""

    name: ClassVar[str] = "gpustat --json"
    averaged = False

    def __init__(self, path: str = "") -> None:
        """Start without a zone: the times are local. `path` is the log."""
        self.zone: str | None = None
        self._path = path
        self._hosts: dict[str, str] = {}

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a log holds, in its order."""
        builder = ChunkBuilder()
        for document in iterate_documents(text_lines(log), MOST):
            for content, gpu in _take(document, builder):
                self._see(content, gpu)
            if builder.is_full:
                yield from builder.chunks()
        yield from builder.chunks()

    def _see(self, content: Mapping[str, Any], gpu: Mapping[str, Any]) -> None:
        """Look at which machine a GPU is of.

        Raises:
            SourceError: when one number is that of GPUs of several machines, and nothing tells them apart.
        """
        host = content.get("hostname")
        named = isinstance(gpu.get("uuid"), str) or _FAILED.fullmatch(str(gpu.get("name")))
        if not isinstance(host, str) or not host or named:
            return
        first = self._hosts.setdefault(str(gpu.get("index")), host)
        if first != host:
            what = f"GPUs of several machines ({first}, {host}) in one log without uuid"
            raise SourceError(
                self._path, what, "write one file a machine, and read them with --as-one-run", code="several_machines"
            )


def _take(document: Document, builder: ChunkBuilder) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Take the GPUs of the documents that some lines hold; return each with its document."""
    contents = [each for content in document.contents for each in (content if isinstance(content, list) else [content])]
    if document.fault or not all(map(_whole, contents)):
        for line in document.lines:
            builder.reject(line, document.fault or NOT_JSON)
        return []
    gpus = [(content, gpu) for content in contents for gpu in content["gpus"]]
    if not gpus:
        for line in document.lines:
            builder.add_non_data_line(line, LineKind.NOISE)
        return []
    for content, gpu in gpus:
        moment = parse_iso_time(str(content.get("query_time")))
        builder.add_row(
            document.lines[0].number, None if moment is None else moment.micros, _values(content, gpu, builder)
        )
    builder.count_continued(len(document.lines) - len(gpus))
    return gpus


def _whole(content: object) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("gpus"), list):
        return False
    return all(isinstance(gpu, dict) for gpu in content["gpus"])


def _values(content: Mapping[str, Any], gpu: Mapping[str, Any], builder: ChunkBuilder) -> dict[str, float | bool | str]:
    index = quantities.parse_number(gpu.get("index"))
    values: dict[str, float | bool | str] = {}
    if index is not None and index.is_integer() and 0 <= index < 2**14:
        values["index"] = str(int(index))
    if isinstance(content.get("driver_version"), str):
        values["driver"] = content["driver_version"]
    failed = _FAILED.fullmatch(str(gpu.get("name")))
    for key, cell in gpu.items():
        if key in _TEXTS and isinstance(cell, str) and not failed:
            values[_TEXTS[key]] = cell
        elif key in _METRICS:
            _number(key, cell, values, builder)
        elif key == "processes" and cell:
            builder.add_note(_PROCESSES)
        elif key not in {"index", "processes", *_TEXTS} and cell is not None:
            values.update([quantities.extra_column(key, cell)])
    if failed:
        builder.count_absent("utilization.gpu", failed[1])
    return values


def _number(key: str, cell: object, values: dict[str, float | bool | str], builder: ChunkBuilder) -> None:
    target, unit = _METRICS[key]
    value = quantities.parse_quantity(cell, unit, target)
    if value is None:
        builder.count_absent(key, quantities.describe_absence(cell))
    else:
        values[target] = value
