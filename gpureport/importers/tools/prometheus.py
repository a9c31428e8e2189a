"""Reads pages of dcgm-exporter, and what Prometheus answers to range queries of its metrics, one after the other.

Every series names its GPU by labels: `gpu`, `UUID`, `modelName`, `Hostname` (`hostname` since dcgm-exporter 4.8.3), and
`GPU_I_ID` where it is one of a MIG instance; Prometheus adds `instance`, the exporter. Times are seconds since 1970 in
UTC. Labels of dcgm-exporter and of Kubernetes say of a whole run its pod, namespace, container, job and nodes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from gpureport.errors import SourceError
from gpureport.importers import tools
from gpureport.importers.account import Account
from gpureport.importers.columns import TIME, parse_time
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.importers.source_text import damage
from gpureport.importers.tools.dcgm_fields import Reading, build_rows
from gpureport.label_tags import LABEL_TAGS
from gpureport.redaction import redact_start

MOST = 2**25
"""Characters of all answers, which are held in memory as a whole: a day of 8 GPUs and 20 metrics at 15 s has 19 million
and takes 200 MiB (measured)."""
_DEPTH = 8
"""Lists and objects around a series at most: a list of answers has four."""
_EXPOSITION = re.compile(r"^(?:# (?:HELP|TYPE) )?DCGM_\w+(?:\{| )", re.MULTILINE)
_SAMPLE = re.compile(r"([A-Za-z_]\w*)\{([^}]*)\} (\S+)(?: (\d{13}))?", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*+)"')
_EXPORTER = re.compile(r"dcgm-?exporter", re.IGNORECASE)
_OF_POD = ("pod", "namespace", "container")
"""Labels that the scrape sets to the exporter itself where dcgm-exporter sets none, or is not honoured."""
_WHOLE_RUN = 0.95
"""Share of the samples that a label must hold for: queries reach a little over the ends of a job. Pragmatic."""
_QUERY = "save what /api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=...&end=...&step=15 answers"
Labels = Mapping[str, str]


def is_answer(text: str) -> bool:
    """Return whether a text begins as an answer of Prometheus does that names a metric of DCGM."""
    return text.lstrip("\ufeff \n\r\t,[").startswith("{") and '"metric"' in text and "DCGM_FI_" in text


def is_page(text: str) -> bool:
    """Return whether a page of dcgm-exporter stands at the beginning of a text."""
    return _EXPOSITION.search(text) is not None


@lru_cache(4096)
def _parse_labels(text: str) -> dict[str, str]:
    return dict(_LABEL.findall(text))


def _describe(labels: Labels, hosts: dict[str, bool]) -> tools.Record:
    """Return what names a GPU; refuse those of several machines without a UUID, of which `hosts` keeps the names."""
    index = labels.get("gpu", "")
    said = {
        "uuid": labels.get("UUID") or labels.get("uuid"),
        "index": index if re.fullmatch(r"[0-9]{1,4}", index) else None,
        "model": labels.get("modelName"),
        "bus_id": labels.get("pci_bus_id"),
        "driver": labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION", labels.get("DCGM_FI_DRIVER_VERSION")),
    }
    # of a query by (gpu, instance) the exporter is all that shows which machine it is
    host = labels.get("Hostname") or labels.get("hostname") or (not said["uuid"] and labels.get("instance"))
    tools.refuse_machines(hosts, host, named=bool(said["uuid"]))
    return {name: text for name, text in said.items() if text}


@tools.form
def read_pages(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield a row of each GPU for every page of dcgm-exporter; a line above a page that is a time is its time."""
    account.snapshot = True
    return build_rows(_read_samples(lines, first, account), account, raw=True)


def _read_samples(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    page, seen, hosts = 0, set[tuple[str, str]](), dict[str, bool]()
    when: tools.When = None
    for number, text, cut in tools.text_lines(lines, first, account):
        line = text.strip()
        sample, moment = None if cut else _SAMPLE.fullmatch(line), tools.parse_stamp(line.strip("# "))
        name, told, cell, stamp = sample.groups() if sample else ("", "", "", None)
        labels = _parse_labels(told)
        if moment:
            page, seen, when = page + 1, set(), moment
        if name.startswith("DCGM_") and not labels.get("GPU_I_ID"):
            gpu = _describe(labels, hosts)
            key = name, str(gpu.get("uuid") or gpu.get("index"))
            if key in seen:
                page, seen, when = page + 1, set(), None
            seen.add(key)
            yield Reading(number, page, gpu | {TIME: parse_time(stamp) if stamp else when}, [(name, cell)])
        elif sample or moment or line.startswith("#"):
            account.noise += 1
        else:
            account.reject(reasons.CUT_LAST_LINE if cut else reasons.NOT_OF_FORM, number, text)


@tools.form
def read_answers(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield the rows that the answers hold, in the order of time.

    Raises:
        SourceError: when they are too large, cut, errors, or of no metric of DCGM.
    """
    held, size = list[str](), 0
    for line in lines:
        size += len(line)
        if size > MOST:
            what = f"longer than {MOST >> 20} Mi characters, which is held in memory as a whole"
            raise _refuse(what, "query a shorter range, or with a longer step")
        held.append(line)
    contents = None if any(map(damage, held)) else tools.parse_documents("".join(held))
    series = [one for content in contents or () for one in _find_series(content)]
    kept = [(labels, samples) for labels, samples in series if labels.get("__name__", "").startswith("DCGM_")]
    kept = [(labels, samples) for labels, samples in kept if not labels.get("GPU_I_ID")]
    if not kept:
        raise _refuse("not JSON, or cut" if contents is None else "no series of it is a metric of DCGM of a whole GPU")
    if len(kept) < len(series):
        account.note("Series that are no metric of DCGM, without a name, or of MIG instances are not read.")
    rows = 0
    for row in build_rows(_read_series(kept, first, account), account, raw=True):
        rows += 1
        yield row
    _take_tags(kept, account)
    account.continued += max(sum(not line.isspace() for line in held) - rows, 0)


def _refuse(what: str, hint: str = _QUERY) -> SourceError:
    return SourceError("the answer of Prometheus", what, hint, code="unusable_answer")


def _find_series(content: object, depth: int = 0) -> Iterator[tuple[Labels, list[Any]]]:
    """Yield labels and samples of one answer: whole, its data, its result, or several in a list; an instant has one."""
    if isinstance(content, list) and depth <= _DEPTH:
        for each in content:
            yield from _find_series(each, depth + 1)
    elif isinstance(content, dict) and depth <= _DEPTH:
        labels, samples = content.get("metric"), content.get("values", [content.get("value")])
        if content.get("status") == "error":
            raise _refuse(f"an error: {redact_start(str(content.get('error')))}", "mend the query")
        if labels is None:
            yield from _find_series(content.get("data", content.get("result")), depth + 1)
        elif isinstance(labels, dict) and isinstance(samples, list):
            yield {str(name): str(text) for name, text in labels.items()}, samples


def _read_series(series: Iterable[tuple[Labels, list[Any]]], first: int, account: Account) -> Iterator[Reading]:
    hosts: dict[str, bool] = {}
    for labels, samples in series:
        name, gpu = labels["__name__"], _describe(labels, hosts)
        for sample in samples:
            whole = isinstance(sample, list) and len(sample) == 2 and isinstance(sample[1], str | int | float)  # noqa: PLR2004 - time and value
            when = parse_time(f"{sample[0]}") if whole else None
            if when is None or not when[1]:
                account.absent[name, "no sample"] += 1
            else:
                yield Reading(first, 0, gpu | {TIME: when}, [(name, str(sample[1]))])


def _take_tags(series: Iterable[tuple[Labels, list[Any]]], account: Account) -> None:
    """Take the tags that hold for the whole run; a run of several machines has the names of all."""
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
            account.note(f"The samples name {len(values)} {tag.name}s or none, so the run has no tag {tag.name}.")
