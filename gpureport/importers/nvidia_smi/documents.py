"""`nvidia-smi -q` as text and as XML: documents of sections, one a GPU, each of which is a row."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.clock import parse_printed_time
from gpureport.importers.columns import LOST, TIME, Rows, absence, rows_from_records
from gpureport.importers.nvidia_smi.fields import PREFERRED, find_target
from gpureport.importers.nvidia_smi.query_paths import PART_KINDS, PARTS, find_column
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, ENTITIES, MALFORMED, NO_READING, TORN
from gpureport.metrics import BY_NAME

TEXT, XML = "nvidia-smi -q", "nvidia-smi -q -x"
_NUMBERED = (
    "GPUs are numbered by their minor numbers, as the log shows only some of those that are attached; nvidia-smi may "
    "number them otherwise."
)
_KEPT = (
    "Of each section of nvidia-smi -q what is measured is kept; modes, versions, thresholds and lists of processes are "
    "not."
)
_INSTANT = (
    "The log holds no average power: gpu_power_watts is the instant reading, which is what nvidia-smi calls power.draw "
    "on GPUs older than Ampere."
)
_MOST, _EXTRAS, _LONGEST, _DEEPEST = 1024, 32, 200, 8
"""Sections of a document that are held, values without a metric that are kept, characters of a value, and levels of
elements, at most."""
_ERROR = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""
_MINOR = "minor_number"


@dataclass(slots=True)
class _Section:
    """What a log says of one GPU at one time: the line it begins in, what that says, its GPU, and texts by path."""

    number: int
    text: str
    bus_id: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    flaw: str = ""
    lost: str = ""

    def take(self, cells: Iterable[tuple[str, str]]) -> None:
        """Take texts; one that differs from what its path said before is of another GPU."""
        for path, text in cells:
            if self.cells.setdefault(path, text) != text:
                self.flaw = TORN


@dataclass(slots=True)
class _Document:
    """What `nvidia-smi -q` writes at one time: its head, how many lines that has, and its GPUs."""

    head: dict[str, str] = field(default_factory=dict)
    lines: int = 0
    sections: list[_Section] = field(default_factory=list)


def _records(documents: Iterable[_Document], account: Account) -> Iterator[dict[str, Any]]:
    """Yield the rows of documents, and count the lines of their heads and the sections that are none."""
    account.snapshot = True
    indices: dict[str, str] = {}
    extras: set[str] = set()
    for document in documents:
        time = parse_printed_time(document.head.get("timestamp", ""))
        driver = document.head.get("driver_version") or document.head.get("kmd_version") or None
        _number(document, indices, account)
        found = 0
        for section in document.sections:
            if (record := _record(section, extras, account)) is not None:
                names = {"bus_id": section.bus_id, "index": indices.get(section.bus_id), "driver": driver}
                yield record | names | {TIME: time and time[0]}
                found += 1
        account.continued += document.lines if found else 0
        account.noise += 0 if found else document.lines


def _number(document: _Document, indices: dict[str, str], account: Account) -> None:
    """Give GPUs that are new their index: their place, where all are listed, else the minor number."""
    buses = [section.bus_id for section in document.sections]
    whole = str(len(set(buses))) == str(len(buses)) == document.head.get("attached_gpus")
    for place, section in enumerate(document.sections):
        index = str(place) if whole else section.cells.get(_MINOR, "")
        if section.bus_id not in indices and index.isdecimal() and index not in indices.values():
            indices[section.bus_id] = index
            account.note(*[] if whole else [_NUMBERED])


@lru_cache(100_000)
def _read(path: str, text: str) -> tuple[Any, str | None]:
    """Return the value of a cell, or why it has none; neither where it is damaged."""
    column = find_column(path)
    why = absence(text) or (text if text in LOST_WORDS else None)
    if column is None or why is not None or len(text) > _LONGEST:
        return None, why
    value = column.read(text.removesuffix("x") if column.target.startswith("pcie_link_width") else text)
    return value, text if value is None and _ERROR.fullmatch(text) else None


def _record(section: _Section, extras: set[str], account: Account) -> dict[str, Any] | None:
    """Return the values of a section; None where it has a flaw, which is counted then."""
    record: dict[str, Any] = {"line": section.number}
    absent: dict[tuple[str, str], None] = {}
    parts: dict[str, dict[str, int | None]] = {}
    measured, averaged = False, False
    for path, text in section.cells.items():
        column = find_column(path)
        if column is None:
            continue
        value, why = _read(path, text)
        if value is None and why is None:
            section.flaw = section.flaw or f"{MALFORMED} {column.source}"
        if why is not None:
            absent[column.source, why] = None
        measured |= column.target in BY_NAME
        if column.target.startswith("extra_") and len(extras | {column.target}) <= _EXTRAS:
            extras.add(column.target)
        if path in PARTS:
            parts.setdefault(column.source, {})[path] = value
        elif column.target.startswith("extra_") and column.target not in extras:
            continue
        elif record.get(column.target) is None or (value is not None and column.source in PREFERRED):
            record[column.target] = value
            averaged |= column.source == "power.draw.average" and value is not None
    for source, counts in parts.items():
        # there is no sum where a part has no value, or a kind is missing
        kinds = {path.rpartition("/")[2].partition("_")[0] for path in counts}
        whole = None not in counts.values() and kinds == PART_KINDS
        record[find_target(source)] = sum(count or 0 for count in counts.values()) if whole else None
    lost = section.lost or next((reason for _, reason in absent if reason in LOST_WORDS), "")
    if flaw := section.flaw or ("" if measured or lost else NO_READING):
        account.reject(flaw, section.number, section.text)
        return None
    if lost:
        record[LOST] = lost
    account.absent.update(absent.keys())
    account.averaged |= averaged
    instant = record.get("gpu_power_instant_watts")
    unknown = record.get("gpu_power_watts") is None and ("power.draw.average", "N/A") in absent
    if unknown and instant is not None and not account.averaged:
        record["gpu_power_watts"] = instant
        account.note(_INSTANT)
    account.note(_KEPT)
    return record


_HEADER = re.compile(r"=+ ?NVSMI LOG ?=+\s*")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*", re.ASCII)
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_PASSAGE = re.compile(r"\n(?= {4}\S)")
"""Four blanks stand before what a section says of its GPU, more before what belongs to that."""
_NO_WORD = re.compile(r"[^a-z0-9]+")


def opens_text(line: str) -> bool:
    """Return whether a line is the heading of a document in text."""
    return line.startswith("=") and _HEADER.fullmatch(line) is not None


def read_query_text(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q`: labels with values behind a colon, below each other by their indentation."""
    yield from rows_from_records(_records(_text_documents(lines, first, account), account))


@lru_cache(4096)
def _step(label: str) -> str:
    """Return a label of the text as a step of a path."""
    return _NO_WORD.sub("_", label.strip().lower()).strip("_") if len(label) <= _LONGEST else ""


@lru_cache(4096)
def _text_cells(text: str) -> list[tuple[str, str]]:
    """Return what a passage says by its paths; most say what they said the time before."""
    cells: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = [(-1, "")]
    for line in text.split("\n"):
        written = line.lstrip(" ")
        label, colon, value = written.partition(":")
        name = _step(label)
        while above[-1][0] >= len(line) - len(written):
            above.pop()
        path = f"{above[-1][1]}/{name}".removeprefix("/")
        above.append((len(line) - len(written), path))
        if not name:
            # the same path with two texts is a flaw
            cells += [("", ""), ("", written)]
        elif colon and (path == _MINOR or find_column(path) is not None):
            cells.append((path, value.strip()))
    return cells


def _text_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    document: _Document | None = None
    inside: list[str] | None = None
    """Lines of the section of a GPU; None outside of any."""

    def close() -> None:
        if document and document.sections:
            for passage in _PASSAGE.split("\n".join(inside or [])):
                document.sections[-1].take(_text_cells(passage) if passage else ())

    for number, line in enumerate(lines, first):
        text = line.rstrip()
        if not text:
            continue
        if not line.endswith("\n"):
            account.reject(CUT_LAST_LINE, number, text)
        elif inside is not None and line[0] == " ":
            account.continued += 1
            inside.append(text)
        else:
            close()
            inside = None
            gpu = _GPU.fullmatch(text)
            begins = opens_text(text) or (gpu is not None and (document is None or len(document.sections) >= _MOST))
            if begins and document is not None:
                yield document
            document = _Document() if begins else document
            if gpu is not None and document is not None:
                document.sections.append(_Section(number, text, gpu[1].upper()))
                inside = []
            else:
                _take_line(document, number, text, account)
    close()
    if document is not None:
        yield document


def _take_line(document: _Document | None, number: int, text: str, account: Account) -> None:
    """Take a line outside of any section: the heading of a document, its head, or something else."""
    label, colon, value = text.partition(":")
    if opens_text(text):
        account.headers += 1
    elif document is not None and colon and _step(label) in _HEAD:
        document.lines += 1
        document.head[_step(label)] = value.strip()
    else:
        account.stray(number, text.strip())


_OPENING = re.compile(r"\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>)")
_BOUNDS = re.compile(r"(?=<gpu[\s>])|(?<=</gpu>)|(?=<\?xml)")
_CHILD = re.compile(r"\n\t\t(?=<\w)")
"""Where an element within that of a GPU begins, as nvidia-smi writes it."""
_HEAD_ELEMENT = re.compile(r"<(timestamp|driver_version|kmd_version|attached_gpus)>([^<]*)</\1>")
_HELD = 8 * 2**20
"""Characters of one GPU's element that are held at most; those of genuine logs have 30,000."""


def opens_xml(line: str) -> bool:
    """Return whether a line begins a document in XML."""
    return _OPENING.match(line) is not None


def read_query_xml(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q -x`.

    Each element of a GPU is parsed alone, so that one that is damaged costs no other, and no declaration of a document
    ever reaches the parser.
    """
    yield from rows_from_records(_records(_xml_documents(lines, first, account), account))


def _xml_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    document, hostile = _Document(), False
    element: list[str] = []
    begun, size = 0, 0

    def close(flaw: str) -> None:
        if element:
            flaw = ENTITIES if hostile else flaw
            document.sections.append(_xml_section("".join(element), begun, flaw))
            element.clear()

    for number, line in enumerate(lines, first):
        if element and not ("gpu>" in line or "<gpu" in line or "<?xml" in line or size > _HELD):
            account.continued += not line.isspace()
            element.append(line)
            size += len(line)
            continue
        for part in _BOUNDS.split(line):
            text = part.strip()
            if not text:
                continue
            opens_gpu = text.startswith(("<gpu ", "<gpu>"))
            if opens_gpu or text.startswith("<?xml") or size > _HELD:
                close(TORN)
            if text.startswith("<?xml") or len(document.sections) >= _MOST:
                yield document
                head = {} if text.startswith("<?xml") else document.head
                document, hostile = _Document(head), hostile and bool(head)
            if opens_gpu:
                # a row each, in lines that rise
                begun, size = max(number, begun + 1), 0
            if element or opens_gpu:
                account.continued += bool(element)
                element.append(part)
                close("") if text.endswith("</gpu>") else None
            else:
                hostile |= "<!ENTITY" in text
                _take_head(document, number, text, account)
    close(CUT_LAST_LINE)
    yield document


def _take_head(document: _Document, number: int, text: str, account: Account) -> None:
    """Take a line that is of no GPU: the head and end of a document, and what is no document."""
    document.head |= {label: said.strip() for label, said in _HEAD_ELEMENT.findall(text)}
    if text.startswith("<?xml"):
        account.headers += 1
    elif "<!ENTITY" in text:
        account.reject(ENTITIES, number, text)
    elif text[0] == "<":
        document.lines += 1
    else:
        account.stray(number, text)


def _xml_section(text: str, number: int, flaw: str) -> _Section:
    section = _Section(number, text[:_LONGEST].partition("\n")[0].strip(), flaw=flaw)
    opening, *children = _CHILD.split("" if flaw else text.strip().removesuffix("</gpu>").rstrip())
    try:
        gpu = _parse(f"{opening}</gpu>")
        section.take(_leaves(gpu, ""))
        for child in children:
            section.take(_xml_cells(child))
    except ET.ParseError:
        section.flaw = flaw or TORN
        return section
    section.bus_id = gpu.get("id", "").strip().upper()
    body = (gpu.text or "").strip()
    section.lost = body if body in LOST_WORDS else ""
    return section


def _parse(text: str) -> ET.Element:
    # an element without a document type declares no entities
    return ET.XML(text, ET.XMLParser(encoding="utf-8"))  # noqa: S314


@lru_cache(2048)
def _xml_cells(text: str) -> list[tuple[str, str]]:
    """Return what an element of a GPU says by its paths; most say what they said the time before."""
    child = _parse(text)
    return [*_leaves(child, f"{child.tag}/")]


def _leaves(element: ET.Element, above: str) -> Iterator[tuple[str, str]]:
    if not len(element):
        path = above.removesuffix("/")
        if path == _MINOR or find_column(path) is not None:
            yield path, (element.text or "").strip()
    elif above.count("/") <= _DEEPEST:
        for child in element:
            yield from _leaves(child, f"{above}{child.tag}/")
