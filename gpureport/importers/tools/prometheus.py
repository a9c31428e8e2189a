"""Reads pages of dcgm-exporter, and what Prometheus answers to range queries of its metrics, one after the other.

Every series names its GPU by labels: `gpu`, `UUID`, `modelName`, `Hostname` (`hostname` since dcgm-exporter 4.8.3), and
`GPU_I_ID` where it is one of a MIG instance; Prometheus adds `instance`, the exporter. Times are seconds since 1970 in
UTC. Labels of dcgm-exporter and of Kubernetes say of a whole run its pod, namespace, container, job and nodes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gpureport.errors import SourceError
from gpureport.importers.account import Account, damage
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import MASK, TIME
from gpureport.importers.headings import parse_number
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, NOT_OF_FORM
from gpureport.importers.tools import Record, When, form, parse_documents, parse_stamp, say_when, text_lines
from gpureport.importers.tools.dcgm_fields import EITHER, UNTOLD, determine_unit, find_field, read_field
from gpureport.label_tags import LABEL_TAGS
from gpureport.redaction import redact_start

MOST = 2**25
"""Characters of all answers, which are held in memory as a whole: a day of 8 GPUs and 20 metrics at 15 s has 19 million
and takes 200 MiB (measured)."""
_DEPTH = 8
"""Lists and objects around a series at most: a list of answers has four."""
_EXPOSITION = re.compile(r"^(?:# (?:HELP|TYPE) )?DCGM_\w+(?:\{| )", re.MULTILINE)
_EXPORTER = re.compile(r"dcgm-?exporter", re.IGNORECASE)
_OF_POD = ("pod", "namespace", "container")
"""Labels that the scrape sets to the exporter itself where dcgm-exporter sets none, or is not honoured."""
_WHOLE_RUN = 0.95
"""Share of the samples that a label must hold for: queries reach a little over the ends of a job. Pragmatic."""
_WHERE = "the answer of Prometheus"
_QUERY = "save what /api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=...&end=...&step=15 answers"

Labels = Mapping[str, str]
Readings = dict[int, dict[str, str]]
"""Cells by time in microseconds and name of the metric."""


def is_prometheus_answer(text: str) -> bool:
    """Return whether a text begins as an answer of Prometheus does that names a metric of DCGM."""
    return text.lstrip("\ufeff \n\r\t,[").startswith("{") and '"metric"' in text and "DCGM_FI_" in text


def is_page(text: str) -> bool:
    """Return whether a page of dcgm-exporter stands at the beginning of a text."""
    return _EXPOSITION.search(text) is not None


_SAMPLE = re.compile(r"([A-Za-z_]\w*)\{([^}]*)\} (\S+)(?: (\d{13}))?", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*+)"')


@form
def read_pages(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield a row of each GPU for every page of dcgm-exporter; a line above a page that is a time is its time."""
    page: dict[str, Record] = {}
    seen: set[tuple[str, str]] = set()
    hosts: dict[str, bool] = {}
    when: When = None
    account.snapshot = True
    for number, text, cut in text_lines(lines, first, account):
        line = text.strip()
        sample = None if cut else _SAMPLE.fullmatch(line)
        if sample is None:
            moment = parse_stamp(line.strip("# "))
            if moment or line.startswith("#"):
                account.noise += 1
            else:
                account.reject(CUT_LAST_LINE if cut else NOT_OF_FORM, number, text)
            if moment:
                yield from page.values()
                page, seen, when = {}, set(), moment
            continue
        name, told, cell, stamp = sample.groups()
        labels = _parse_labels(told) | {"__name__": name}
        if not (name.startswith("DCGM_") and _is_of_gpu(labels, account)):
            account.noise += 1
            continue
        gpu = _name_gpu(labels, hosts)
        if (name, gpu) in seen:
            yield from page.values()
            page, seen, when = {}, set(), None
        seen.add((name, gpu))
        account.continued += gpu in page
        moment = parse_time(stamp) if stamp else when
        page.setdefault(gpu, {"line": number, **say_when(moment), **_describe(labels)})
        read_field(name, cell, page[gpu], account)
        if name == EITHER:
            account.note(UNTOLD)
    yield from page.values()


@lru_cache(4096)
def _parse_labels(text: str) -> dict[str, str]:
    return dict(_LABEL.findall(text))


def _name_gpu(labels: Labels, hosts: dict[str, bool]) -> str:
    """Return what names a GPU; `hosts` keeps of each machine whether all its GPUs have a UUID.

    Raises:
        SourceError: when GPUs are of several machines and nothing tells them apart.
    """
    uuid = labels.get("UUID") or labels.get("uuid")
    # of a query by (gpu, instance) the exporter is all that tells machines apart
    host = labels.get("Hostname") or labels.get("hostname") or ("" if uuid else labels.get("instance", ""))
    if host:
        hosts[host] = hosts.get(host, True) and bool(uuid)
    if len(hosts) > 1 and not all(hosts.values()):
        what = f"GPUs of several machines ({', '.join(sorted(hosts)[:5])}) without UUID"
        raise SourceError(_WHERE, what, 'query one: {Hostname="..."}', code="several_machines")
    return uuid or f"{host}/{labels.get('gpu', '')}"


@form
def read_prometheus(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows that the answers hold, in the order of time.

    Raises:
        SourceError: when they are too large, cut, errors, or of no metric of DCGM.
    """
    held, size = list[str](), 0
    for line in lines:
        size += len(line)
        if size > MOST:
            what = f"longer than {MOST >> 20} Mi characters, which is held in memory as a whole"
            raise SourceError(_WHERE, what, "query a shorter range, or with a longer step", code="answer_too_large")
        held.append(line)
    series = [(labels, samples) for labels, samples in _find_series(held) if _is_of_gpu(labels, account)]
    gpus = _gather(series, account)
    units = _find_units([readings for _, readings in gpus.values()], account)
    _take_tags(series, account)
    moments = sorted((time, key) for key, (_, readings) in gpus.items() for time in readings)
    for time, key in moments:
        texts, readings = gpus[key]
        record: Record = {"line": first, TIME: time, "zone": "UTC", **texts}
        for name, cell in readings[time].items():
            read_field(name, cell, record, account, units.get(name))
        yield record
    account.continued += max(sum(not line.isspace() for line in held) - len(moments), 0)


def _find_series(lines: Sequence[str]) -> Iterator[tuple[Labels, list[Any]]]:
    """Yield the labels and the samples of each series; an instant query has one of each."""
    contents = None if any(map(damage, lines)) else parse_documents("".join(lines))
    if contents is None:
        raise SourceError(_WHERE, "not JSON, or cut", _QUERY, code="not_json")
    results = [series for content in contents for series in _find_results(content)]
    if not results:
        hint = f"{_QUERY} over a time that Prometheus remembers"
        raise SourceError(_WHERE, "it holds no series", hint, code="no_series")
    for series in results:
        labels, samples = series["metric"], series.get("values", [series.get("value")])
        if not isinstance(labels, dict) or not isinstance(samples, list):
            raise SourceError(_WHERE, "a series without labels or without samples", _QUERY, code="not_a_series")
        yield {str(name): str(text) for name, text in labels.items()}, samples


def _find_results(content: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the series of one answer: whole, its data, its result, or several in a list."""
    if isinstance(content, list) and depth <= _DEPTH:
        for each in content:
            yield from _find_results(each, depth + 1)
    elif isinstance(content, dict) and depth <= _DEPTH:
        if content.get("status") == "error":
            what = f"an error: {redact_start(str(content.get('error')))}"
            raise SourceError(_WHERE, what, "mend the query", code="query_failed")
        if "metric" in content:
            yield content
        else:
            yield from _find_results(content.get("data", content.get("result")), depth + 1)


def _gather(series: Iterable[tuple[Labels, list[Any]]], account: Account) -> dict[str, tuple[dict[str, str], Readings]]:
    """Return what describes each GPU, and its readings; refuse GPUs that nothing tells apart."""
    gpus: dict[str, tuple[dict[str, str], Readings]] = {}
    hosts: dict[str, bool] = {}
    for labels, samples in series:
        name = labels["__name__"]
        _, readings = gpus.setdefault(_name_gpu(labels, hosts), (_describe(labels), {}))
        for sample in samples:
            # a series that begins again, as with another pod, continues the one before
            whole = isinstance(sample, list) and len(sample) == 2 and isinstance(sample[1], str | int | float)  # noqa: PLR2004 - time and value
            when = parse_time(f"{sample[0]}") if whole else None
            if when is None or not when[1]:
                account.absent[name, "no sample"] += 1
            elif readings.setdefault(when[0], {}).setdefault(name, str(sample[1])) != str(sample[1]):
                account.note(f"{name} has several values for one GPU and time; the first is kept.")
    if not gpus:
        hint = f"{_QUERY}, without functions around it"
        raise SourceError(_WHERE, "no series names a metric of DCGM and a GPU", hint, code="no_gpu_metric")
    if len(hosts) > 1:
        account.note(
            f"GPUs of {len(hosts)} machines, told by UUID; where a number is taken, the next free one is given."
        )
    return gpus


def _is_of_gpu(labels: Labels, account: Account) -> bool:
    """Return whether a series is a metric of DCGM of a whole GPU; say why it is not read otherwise."""
    name = labels.get("__name__", "")
    if name.startswith("DCGM_"):
        if labels.get("GPU_I_ID"):
            account.note("Series of MIG instances stand for no GPU and are not read.")
        return not labels.get("GPU_I_ID")
    why = (
        f"of {name} are no metric of DCGM and" if name else "without a name, which a function in the query takes away,"
    )
    account.note(f"Series {why} are not read.")
    return False


def _describe(labels: Labels) -> dict[str, str]:
    index = labels.get("gpu", "")
    said = {
        "uuid": labels.get("UUID", labels.get("uuid")),
        "index": index if re.fullmatch(r"[0-9]{1,4}", index) else None,
        "model": labels.get("modelName"),
        "bus_id": labels.get("pci_bus_id"),
        "driver": labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION", labels.get("DCGM_FI_DRIVER_VERSION")),
    }
    return {name: text for name, text in said.items() if text}


def _find_units(gpus: Iterable[Readings], account: Account) -> dict[str, str]:
    """Return the unit of each metric that has another one than its name says, judged by its values."""
    values: dict[str, list[float]] = {}
    for name, cell in (item for gpu in gpus for reading in gpu.values() for item in reading.items()):
        if (found := parse_number(cell)) is not None:
            values.setdefault(name, []).append(found)
    units: dict[str, str] = {}
    for name, numbers in values.items():
        known = find_field(name)
        if known is None or known[0] == MASK:
            continue
        unit = determine_unit(name, known, numbers)
        if unit is None:
            account.note(f"{name} holds nothing but 0 and 1: per cent or a ratio, nobody can say; kept as it is.")
        elif unit != known[1] or name == EITHER:
            units[name] = unit
            if unit != known[1]:
                account.note(f"{name} was read in {unit}, as its values say.")
    return units


def _take_tags(series: Iterable[tuple[Labels, list[Any]]], account: Account) -> None:
    """Take the tags that hold for the whole run, and say which do not; a run of several machines has all names."""
    whole, found = 0, dict[str, Counter[str]]()
    for labels, samples in series:
        whole += len(samples)
        of_exporter = any(_EXPORTER.search(labels.get(label, "")) for label in _OF_POD)
        for label, value in labels.items():
            if value and not _EXPORTER.search(value) and not (of_exporter and label in _OF_POD):
                found.setdefault(label, Counter())[value] += len(samples)
    for tag in LABEL_TAGS:
        values = next((found[label] for label in tag.series_labels if label in found), Counter())
        if tag.name == "node" and values:
            account.tags["node"] = ", ".join(sorted(values))
        elif values and max(values.values()) >= _WHOLE_RUN * whole:
            account.tags[tag.name] = values.most_common(1)[0][0]
        elif values:
            account.note(
                f"The samples name {len(values)} {tag.name}s and {whole - values.total()} of {whole} none, so the run "
                f"has no tag {tag.name}."
            )
