"""Reads what Prometheus answers to range queries of dcgm-exporter's metrics: JSON, several answers one after the other.

Every series names its GPU by labels: `gpu`, `UUID`, `modelName`, `Hostname` (`hostname` since dcgm-exporter 4.8.3), and
`GPU_I_ID` where it is one of a MIG instance; Prometheus adds `instance`, the exporter. Times are seconds since 1970 in
UTC.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.dcgm import fields
from gpureport.importers.logs.dcgm.field_values import Values, read_field
from gpureport.importers.logs.dcgm.series_labels import SeriesLabels
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.json_documents import parse_documents
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values.quantities import parse_number
from gpureport.importers.values.timestamps import parse_epoch_time
from gpureport.redaction import redact_start

MOST = 2**25
"""Characters of all answers, which are held in memory as a whole: a day of 8 GPUs and 20 metrics at 15 s has 19 million
and takes 200 MiB (measured)."""
_DEPTH = 8
"""Lists and objects around a series at most: a list of answers has four."""
_EXPOSITION = re.compile(r"^(?:# (?:HELP|TYPE) )?DCGM_\w+(?:\{| )", re.MULTILINE)
_WHERE = "the answer of Prometheus"
_QUERY = "save what /api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=...&end=...&step=15 answers"


def is_prometheus_answer(text: str) -> bool:
    """Return whether a text begins as an answer of Prometheus does that names a metric of DCGM."""
    return text.lstrip("\ufeff \n\r\t,[").startswith("{") and '"metric"' in text and "DCGM_FI_" in text


def is_snapshot(text: str) -> bool:
    """Return whether a text is what dcgm-exporter shows when it is scraped: one moment, without a time."""
    return _EXPOSITION.match(text.lstrip()) is not None


@dataclass(slots=True)
class _Gpu:
    """What was answered about one GPU: texts that describe it, and readings by time."""

    texts: Mapping[str, str]
    readings: dict[int, dict[str, str]] = field(default_factory=dict)


class PrometheusForm:
    """Answers of Prometheus."""

    name: ClassVar[str] = "Prometheus query_range"
    averaged = False

    def __init__(self) -> None:
        """Start in UTC, as the times are."""
        self.zone: str | None = "UTC"

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the answers hold, in the order of time.

        Raises:
            SourceError: when they are too large, cut, errors, or of no metric of DCGM.
        """
        lines = _lines(log)
        builder, labels = ChunkBuilder(), SeriesLabels()
        gpus = _gpus(_series(lines), builder, labels)
        units = _units(gpus.values(), builder)
        moments = sorted((time, key) for key, gpu in gpus.items() for time in gpu.readings)
        for time, key in moments:
            values: Values = dict(gpus[key].texts)
            for name, cell in gpus[key].readings[time].items():
                read_field(name, cell, values, builder, units.get(name))
            builder.add_row(1, time, values)
            if builder.is_full:
                yield from builder.chunks()
        builder.count_continued(len(lines) - len(moments))
        for note in labels.notes():
            builder.add_note(note)
        yield from (replace(chunk, tags=labels.tags()) for chunk in builder.chunks())


def _lines(log: Iterable[Piece]) -> list[TextLine]:
    held, size = [], 0
    for line in text_lines(log):
        held.append(line)
        size += len(line.text)
        if size > MOST:
            what = f"longer than {MOST >> 20} Mi characters, which is held in memory as a whole"
            raise SourceError(_WHERE, what, "query a shorter range, or with a longer step", code="answer_too_large")
    return held


def _series(lines: Sequence[TextLine]) -> Iterator[tuple[Mapping[str, str], Sequence[Any]]]:
    contents = None if any(line.fault for line in lines) else parse_documents("\n".join(line.text for line in lines))
    if contents is None:
        raise SourceError(_WHERE, "not JSON, or cut", _QUERY, code="not_json")
    results = [series for content in contents for series in _results(content)]
    if not results:
        raise SourceError(
            _WHERE, "it holds no series", f"{_QUERY} over a time that Prometheus remembers", code="no_series"
        )
    for series in results:
        labels, samples = series.get("metric"), series.get("values")
        if "value" in series and samples is None:
            raise SourceError(_WHERE, "an instant query: one sample of each series", _QUERY, code="instant_query")
        if not isinstance(labels, dict) or not isinstance(samples, list):
            raise SourceError(_WHERE, "a series without labels or without samples", _QUERY, code="not_a_series")
        yield {str(name): str(text) for name, text in labels.items()}, samples


def _results(content: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the series of one answer: whole, its data, its result, or several in a list."""
    if depth > _DEPTH:
        return
    if isinstance(content, list):
        for each in content:
            yield from _results(each, depth + 1)
    elif isinstance(content, dict) and content.get("status") == "error":
        raise SourceError(
            _WHERE, f"an error: {redact_start(str(content.get('error')))}", "mend the query", code="query_failed"
        )
    elif isinstance(content, dict) and "metric" in content:
        yield content
    elif isinstance(content, dict):
        inner = content.get("data", content.get("result"))
        if inner is not None:
            yield from _results(inner, depth + 1)


def _gpus(
    series: Iterable[tuple[Mapping[str, str], Sequence[Any]]], builder: ChunkBuilder, run_labels: SeriesLabels
) -> dict[str, _Gpu]:
    gpus: dict[str, _Gpu] = {}
    hosts: dict[str, None] = {}
    for labels, samples in series:
        name = labels.get("__name__", "")
        if not name.startswith("DCGM_"):
            builder.add_note(_left_out(name))
            continue
        if labels.get("GPU_I_ID"):
            builder.add_note("Series of MIG instances stand for no GPU and are not read.")
            continue
        # of a query by (gpu, instance) the exporter is all that tells machines apart
        uuid = labels.get("UUID") or labels.get("uuid")
        host = labels.get("Hostname") or labels.get("hostname") or ("" if uuid else labels.get("instance", ""))
        key = uuid or f"{host}/{labels.get('gpu', '')}"
        hosts |= {host: None} if host else {}
        gpu = gpus.setdefault(key, _Gpu(_texts(labels)))
        run_labels.add(labels, len(samples))
        for sample in samples:
            _add(gpu, name, sample, builder)
    if not gpus:
        raise SourceError(
            _WHERE,
            "no series names a metric of DCGM and a GPU",
            f"{_QUERY}, without functions around it",
            code="no_gpu_metric",
        )
    _check(gpus, hosts, builder)
    return gpus


def _left_out(name: str) -> str:
    return (
        f"Series of {name} are no metric of DCGM and are not read."
        if name
        else "Series without a name are not read: a function in the query takes it away."
    )


def _texts(labels: Mapping[str, str]) -> dict[str, str]:
    driver = labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION", labels.get("DCGM_FI_DRIVER_VERSION"))
    index = labels.get("gpu", "")
    said = {
        "uuid": labels.get("UUID", labels.get("uuid")),
        "index": index if re.fullmatch(r"[0-9]{1,4}", index) else None,
        "model": labels.get("modelName"),
        "bus_id": labels.get("pci_bus_id"),
        "driver": driver,
    }
    return {name: text for name, text in said.items() if text}


def _add(gpu: _Gpu, name: str, sample: object, builder: ChunkBuilder) -> None:
    """Add a sample; a series that begins again, as with another pod, continues the one before."""
    whole = isinstance(sample, list) and len(sample) == 2 and isinstance(sample[1], str | int | float)  # noqa: PLR2004 - time and value
    moment = parse_epoch_time(sample[0], "s") if isinstance(sample, list) and whole else None
    if moment is None or not isinstance(sample, list):
        builder.count_absent(name, "no sample")
        return
    known = gpu.readings.setdefault(moment.micros, {}).setdefault(name, str(sample[1]))
    if known != str(sample[1]):
        builder.add_note(f"{name} has several values for one GPU and time; the first is kept.")


def _check(gpus: Mapping[str, _Gpu], hosts: Mapping[str, None], builder: ChunkBuilder) -> None:
    """Refuse GPUs that nothing tells apart, and say where those of several machines get other numbers."""
    if len(hosts) < 2:  # noqa: PLR2004 - one machine
        return
    if any("uuid" not in gpu.texts for gpu in gpus.values()):
        named = ", ".join(sorted(hosts)[:5])
        raise SourceError(
            _WHERE,
            f"GPUs of several machines ({named}) without UUID",
            'query one: {Hostname="..."}',
            code="several_machines",
        )
    builder.add_note(
        f"GPUs of {len(hosts)} machines, told by UUID; where a number is taken, the next free one is given."
    )


def _units(gpus: Iterable[_Gpu], builder: ChunkBuilder) -> dict[str, str]:
    """Return the unit of each metric, judged by its name and its values."""
    values: dict[str, list[float]] = {}
    for gpu in gpus:
        for readings in gpu.readings.values():
            for name, cell in readings.items():
                if (found := parse_number(cell)) is not None:
                    values.setdefault(name, []).append(found)
    units: dict[str, str] = {}
    for name, numbers in values.items():
        known = fields.find_field(name)
        if known is None or known.target == fields.MASK:
            continue
        unit = fields.determine_unit(known, numbers)
        if unit is None:
            builder.add_note(f"{name} holds nothing but 0 and 1: per cent or a ratio, nobody can say; kept as it is.")
        elif unit != known.unit:
            units[name] = unit
            builder.add_note(f"{name} was read in {unit}, as its values say.")
        elif name == fields.EITHER:
            units[name] = unit
    return units
