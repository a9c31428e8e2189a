"""`nvidia-smi -q` as text and as XML: documents of sections, one a GPU, each of which is a row."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Any

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.columns import LOST, TIME, Rows, absence, rows_from_records
from gpureport.importers.nvidia_smi.fields import PREFERRED, find_target
from gpureport.importers.nvidia_smi.query_paths import PART_KINDS, PARTS, find_column
from gpureport.importers.printed import parse_printed_time
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
_MOST, _EXTRAS, _LONGEST = 1024, 32, 200
"""Sections of a document that are held, values without a metric that are kept, and characters of a value, at most."""
_ERROR = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""
_MINOR = "minor_number"


@dataclass(slots=True)
class _Section:
    """What a log says of one GPU at one time: the line it begins in, what that says, its GPU, and the lines below."""

    number: int
    text: str
    bus_id: str
    lines: list[str] = field(default_factory=list)
    cells: dict[str, str] = field(default_factory=dict)
    flaw: str = ""
    lost: str = ""


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
        small = re.fullmatch(r"[0-9]{1,4}", index)
        if section.bus_id not in indices and small and index not in indices.values():
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
        if column.target.startswith("extra_"):
            extras |= {column.target} if len(extras) < _EXTRAS else set()
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
    lost = next((why for why in (section.lost, *(why for _, why in absent)) if why in LOST_WORDS), "")
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


_OPENING = re.compile(r"=+ ?NVSMI LOG ?=+|\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>).*", re.DOTALL)
_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_GPU = re.compile(rf'GPU ({_BUS})|\s*<gpu(?: id="([^"]*)")?>([^<]*)(</gpu>)?', re.ASCII)
"""The first line of a section, and in XML what stands there of a GPU that is lost."""
_ELEMENT = re.compile(r"<(/?)(\w+)>(?:([^<]*)</\2>)?|<\w+ ?/>", re.ASCII)
"""A line of XML, as nvidia-smi writes it: an element, its beginning or its end."""
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_PASSAGE = re.compile(r"\n(?= {4}\S|\t\t<\w)")
"""Before what a section says of its GPU stand four blanks or two tabulators, more before what belongs to that."""
_NO_WORD = re.compile(r"[^a-z0-9]+")


def opens_text(line: str) -> bool:
    """Return whether a line is the heading of a document in text."""
    return line.startswith("=") and _OPENING.fullmatch(line.rstrip()) is not None


def opens_xml(line: str) -> bool:
    """Return whether a line begins a document in XML."""
    return "<" in line and _OPENING.match(line) is not None


def read_query_text(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q`: labels with values behind a colon, below each other by their indentation."""
    yield from rows_from_records(_records(_documents(lines, first, account), account))


def read_query_xml(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q -x`: one element a line, as nvidia-smi writes it.

    No parser ever sees a declaration of the document, and a section that is damaged costs no other.
    """
    yield from rows_from_records(_records(_documents(lines, first, account), account))


@lru_cache(4096)
def _step(label: str) -> str:
    """Return a label of the text as a step of a path."""
    return _NO_WORD.sub("_", label.strip().lower()).strip("_") if len(label) <= _LONGEST else ""


@lru_cache(4096)
def _read_passage(passage: str) -> list[tuple[str, str]] | None:
    """Return what some lines say by their paths, None where they are damaged; most say what they said before."""
    cells: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = [(-1, "")]
    for line in passage.split("\n"):
        written = line.lstrip()
        depth = len(line) - len(written)
        label, colon, value = written.partition(":")
        end, leaf = "", colon != ""
        if written[0] == "<":
            element = _ELEMENT.fullmatch(written)
            end, label, text = element.groups() if element else ("", "", None)
            if element and not label:
                continue
            value, leaf = text or "", text is not None
        name, inside = _step(label), depth + 1 if end else depth
        while above[-1][0] >= inside:
            above.pop()
        if not name or (end and (above[-1][0], above[-1][1].rpartition("/")[2]) != (depth, name)):
            return None
        if not end:
            path = f"{above[-1][1]}/{name}".removeprefix("/")
            above.append((depth, path))
            if leaf and (path == _MINOR or find_column(path) is not None):
                cells.append((path, unescape(value).strip()))
    return cells


def _close(section: _Section, account: Account, *, hostile: bool) -> None:
    """Read the lines of a section; a path that says two things is of two GPUs."""
    account.continued += len(section.lines)
    for passage in _PASSAGE.split("\n".join(section.lines)) if section.lines else ():
        cells = _read_passage(passage)
        torn = cells is None or any(section.cells.setdefault(path, text) != text for path, text in cells)
        section.flaw = section.flaw or (TORN if torn else "")
    section.lines.clear()
    section.flaw = ENTITIES if hostile else section.flaw


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    document, hostile, line = _Document(), False, ""
    section: _Section | None = None
    for number, line in enumerate(lines, first):
        text = line.rstrip()
        if not text:
            continue
        if section is not None and line[0] in " \t" and "</gpu>" not in text and "<gpu " not in text:
            section.lines.append(text)
            continue
        if section is not None:
            ends = text.strip() == "</gpu>"
            if "<gpu" in section.text and not ends:
                section.flaw = TORN
            account.continued += ends
            _close(section, account, hostile=hostile)
            section = None
            if ends:
                continue
        opens, gpu = _OPENING.fullmatch(text) is not None, _GPU.fullmatch(text)
        begins = opens and (document.sections or text.startswith(("<?xml", "=")))
        if begins or len(document.sections) >= _MOST:
            yield document
            document, hostile = _Document({} if begins else document.head), False
        if gpu is not None:
            section = _Section(number, text.strip(), (gpu[1] or gpu[2] or "").strip().upper())
            section.lost = (gpu[3] or "").strip()
            document.sections.append(section)
            section = None if gpu[4] else section
        else:
            hostile |= "<!ENTITY" in text
            _take_line(document, number, text.strip(), account)
    if section is not None:
        section.flaw = CUT_LAST_LINE if "<gpu" in section.text or line[-1:] != "\n" else ""
        _close(section, account, hostile=hostile)
    yield document


def _take_line(document: _Document, number: int, text: str, account: Account) -> None:
    """Take a line outside of any section: the heading of a document, its head, or something else."""
    label, colon, value = text.partition(":")
    element = _ELEMENT.fullmatch(text)
    if element and element[2]:
        label, colon, value = element[2], ":", element[3] or ""
    if text.startswith("<?xml") or opens_text(text):
        account.headers += 1
    elif "<!ENTITY" in text:
        account.reject(ENTITIES, number, text)
    elif text[0] == "<" or (colon and _step(label) in _HEAD):
        document.lines += 1
        document.head |= {_step(label): value.strip()} if _step(label) in _HEAD else {}
    else:
        account.stray(number, text)
