"""`nvidia-smi -q` as text and as XML: documents of sections, one a GPU, each of which is a row."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.columns import LOST, TIME, Rows, absence, rows_from_records
from gpureport.importers.nvidia_smi.drawn_tables import parse_printed_time
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
_MOST, _EXTRAS, _LONGEST = 1024, 32, 200
"""Sections of a document that are held, values without a metric that are kept, and characters of a value, at most."""
_WORDS = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""
_MINOR = "minor_number"
_NO_WORD = re.compile(r"[^a-z0-9]+")


@dataclass(slots=True)
class _Passage:
    """A part of a section: what stands below one label, or in one XML element.

    Most say in every document what they said in the one before, so what their text holds is remembered.

    Attributes:
        label: first step of the paths of its cells.
        cells: texts by path.
        flaw: why it cannot be used, empty where it can.
        values: values by metric or attribute; None for a column that is there and holds none.
        absent: cells without a value, by query field and reason.
        measured: whether any cell is one of a metric.
        averaged: whether it holds power that is an average over a second.
    """

    label: str
    cells: dict[str, str]
    flaw: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    absent: list[tuple[str, str]] = field(default_factory=list)
    measured: bool = False
    averaged: bool = False

    @classmethod
    def read(cls, label: str, cells: Iterable[tuple[str, str]]) -> "_Passage":
        """Return a passage by its texts and their paths; another text than stood in its place before is a flaw."""
        found, parts = cls(label, {}), dict[str, dict[str, int | None]]()
        for path, text in cells:
            if found.cells.setdefault(path, text) != text:
                found.flaw = TORN
        for path, text in found.cells.items():
            column = find_column(path)
            if column is None:
                continue
            why = absence(text) or (text if text in LOST_WORDS else None)
            short = text.removesuffix("x") if column.target.startswith("pcie_link_width") else text
            value = column.read(short) if why is None and len(text) <= _LONGEST else None
            if why is None and value is None and len(text) <= _LONGEST and _WORDS.fullmatch(text):
                why = text
            if value is None and why is None:
                found.flaw = found.flaw or f"{MALFORMED} {column.source}"
            found.measured |= column.target in BY_NAME
            if path in PARTS:
                parts.setdefault(column.source, {})[path] = value
            elif value is None:
                found.values.setdefault(column.target, None)
            elif found.values.get(column.target) is None or column.source in PREFERRED:
                found.values[column.target] = value
                found.averaged |= column.source == "power.draw.average"
            if why is not None and (path not in PARTS or (column.source, why) not in found.absent):
                found.absent.append((column.source, why))
        for source, counts in parts.items():
            # there is no sum where a part has no value, or a kind is missing
            kinds = {path.rpartition("/")[2].partition("_")[0] for path in counts}
            whole = None not in counts.values() and kinds == PART_KINDS
            found.values[find_target(source)] = sum(counts.values()) if whole else None
        return found


@dataclass(slots=True)
class _Section:
    """What a log says of one GPU at one time: the line it begins in, what that says, its GPU and its passages."""

    number: int
    text: str
    bus_id: str = ""
    passages: list[_Passage] = field(default_factory=list)
    flaw: str = ""
    lost: str = ""

    @property
    def minor(self) -> str:
        """Number of its device file, empty where it is not said."""
        text = next((each.cells[_MINOR] for each in self.passages if _MINOR in each.cells), "")
        return text if _is_small(text) else ""


@dataclass(slots=True)
class _Document:
    """What `nvidia-smi -q` writes at one time: its head, how many lines that has, and its GPUs."""

    time: int | None = None
    driver: str | None = None
    attached: int | None = None
    lines: int = 0
    sections: list[_Section] = field(default_factory=list)

    def take(self, label: str, text: str) -> None:
        """Take what its head says."""
        if label == "timestamp":
            time = parse_printed_time(text)
            self.time = None if time is None else time[0]
        elif label in {"driver_version", "kmd_version"}:
            self.driver = text or None
        elif label == "attached_gpus":
            self.attached = int(text) if _is_small(text) else None


def _is_small(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4  # noqa: PLR2004 - 0 to 9999


def _records(documents: Iterable[_Document], account: Account) -> Iterator[dict[str, Any]]:
    """Yield the rows of documents, and count the lines of their heads and the sections that are none."""
    indices: dict[str, str] = {}
    extras: set[str] = set()
    for document in documents:
        _number(document, indices, account)
        found = 0
        for section in document.sections:
            record = _record(section, account)
            if record is not None:
                own = {name for name in record if name.startswith("extra_")}
                extras |= own if len(extras | own) <= _EXTRAS else set()
                names = {TIME: document.time, "bus_id": section.bus_id, "driver": document.driver}
                record = {name: value for name, value in record.items() if name not in own - extras}
                yield record | names | {"index": indices.get(section.bus_id)}
                found += 1
        if found:
            account.continued += document.lines
        else:
            account.noise += document.lines


def _number(document: _Document, indices: dict[str, str], account: Account) -> None:
    """Give GPUs that are new their index: their place, where all are listed, else the minor number."""
    buses = [section.bus_id for section in document.sections]
    whole = len(set(buses)) == len(buses) == document.attached
    for place, section in enumerate(document.sections):
        index = str(place) if whole else section.minor
        if section.bus_id not in indices and index and index not in indices.values():
            indices[section.bus_id] = index
            if not whole:
                account.note(_NUMBERED)


def _record(section: _Section, account: Account) -> dict[str, Any] | None:
    """Return the values of a section; None where it has a flaw, which is counted then."""
    passages = section.passages
    if len({each.label for each in passages}) < len(passages):
        # what one passage says another says as well, or otherwise
        whole = _Passage.read("", [cell for each in passages for cell in each.cells.items()])
        passages = [whole]
    absent = [each for passage in passages for each in passage.absent]
    lost = section.lost or next((reason for _, reason in absent if reason in LOST_WORDS), "")
    flaw = section.flaw or next((each.flaw for each in passages if each.flaw), "")
    if not flaw and not lost and not any(each.measured for each in passages):
        flaw = NO_READING
    if flaw:
        account.reject(flaw, section.number, section.text)
        return None
    record: dict[str, Any] = {"line": section.number}
    for passage in passages:
        record |= passage.values
        account.averaged |= passage.averaged
    if lost:
        record[LOST] = lost
    account.absent.update(absent)
    instant = record.get("gpu_power_instant_watts")
    unknown = record.get("gpu_power_watts") is None and ("power.draw.average", "N/A") in absent
    if unknown and instant is not None and not account.averaged:
        record["gpu_power_watts"] = instant
        account.note(_INSTANT)
    account.note(_KEPT)
    account.snapshot = True
    return record


_HEADER = re.compile(r"=+ ?NVSMI LOG ?=+\s*")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*", re.ASCII)
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_INNER = " " * 5
"""What a line begins with that belongs to one above it: four blanks stand before what a section says of its GPU."""


def opens_text(line: str) -> bool:
    """Return whether a line is the heading of a document in text."""
    return line.startswith("=") and _HEADER.fullmatch(line) is not None


def read_query_text(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q`: labels with values behind a colon, below each other by their indentation."""
    yield from rows_from_records(_records(_text_documents(lines, first, account), account))


@lru_cache(4096)
def _step(label: str) -> str:
    """Return a label of the text as a step of a path."""
    return _NO_WORD.sub("_", label.strip().lower()).strip("_") if len(label) <= 300 else ""  # noqa: PLR2004


@lru_cache(4096)
def _text_passage(text: str) -> _Passage:
    cells: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = [(-1, "")]
    torn = False
    for line in text.split("\n"):
        line = line.rstrip()  # noqa: PLW2901
        written = line.lstrip(" ")
        label, colon, value = written.partition(":")
        name = _step(label)
        if not name:
            torn |= bool(written)
            continue
        while above[-1][0] >= len(line) - len(written):
            above.pop()
        path = f"{above[-1][1]}/{name}".removeprefix("/")
        above.append((len(line) - len(written), path))
        if colon:
            cells.append((path, value.strip()))
    kept = [cell for cell in cells if cell[0] == _MINOR or find_column(cell[0]) is not None]
    found = _Passage.read(cells[0][0].partition("/")[0] if cells else "", kept)
    found.flaw = TORN if torn else found.flaw
    return found


def _text_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    document: _Document | None = None
    passage: list[str] | None = None
    """Lines of the section of a GPU below one label; None outside of any section."""

    def close() -> None:
        if passage and document:
            document.sections[-1].passages.append(_text_passage("".join(passage)))

    for number, line in enumerate(lines, first):
        if passage is not None and line[:5] == _INNER and line[-1] == "\n":
            account.continued += not line.isspace()
            passage.append(line)
            continue
        text = line.rstrip()
        if text and not line.endswith("\n"):
            account.reject(CUT_LAST_LINE, number, text)
        elif passage is not None and text[:1] == " ":
            account.continued += 1
            close()
            passage = [line]
        elif text:
            close()
            passage = None
            gpu = _GPU.fullmatch(text)
            begins = opens_text(text) or (gpu is not None and (document is None or len(document.sections) >= _MOST))
            if begins and document is not None:
                yield document
            document = _Document() if begins else document
            if gpu is not None and document is not None:
                document.sections.append(_Section(number, text, gpu[1].upper()))
                passage = []
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
        document.take(_step(label), value.strip())
    else:
        account.stray(number, text.strip())


_OPENING = re.compile(r"\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>)")
_BOUNDS = re.compile(r"(?=<gpu[\s>])|(?<=</gpu>)|(?=<\?xml)")
_CHILD = re.compile(r"\n\t\t(?=<[^/])")
"""Where an element within that of a GPU begins."""
_HEAD_ELEMENT = re.compile(r"<(timestamp|driver_version|kmd_version|attached_gpus)>([^<]*)</\1>")
_HELD = 8 * 2**20
"""Characters of one GPU's element that are held at most; those of genuine logs have 30,000."""
_LISTS = {"supported_clocks", "processes", "accounted_processes", "retired_pages"}
_DEEPEST = 8


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
    document, hostile, last = _Document(), False, 0
    element: list[str] = []
    begun, size, counted = 0, 0, 0

    def end(flaw: str) -> None:
        nonlocal element
        section = _Section(max(begun, last + 1), element[0][:_LONGEST].strip(), flaw=ENTITIES if hostile else flaw)
        if not section.flaw:
            _parse_element("".join(element).strip(), section)
        document.sections.append(section)
        account.continued += counted - 1
        element = []

    for number, line in enumerate(lines, first):
        if element and not ("gpu>" in line or "<gpu" in line or "<?xml" in line or size > _HELD):
            element.append(line)
            size, counted = size + len(line), counted + (not line.isspace())
            continue
        for part in _BOUNDS.split(line):
            text = part.strip()
            if not text:
                continue
            opens_gpu, opens_document = re.match(r"<gpu[\s>]", text) is not None, text.startswith("<?xml")
            if element and (opens_gpu or opens_document or size > _HELD):
                end(TORN)
                last = document.sections[-1].number
            if opens_document or (text.startswith("<nvidia_smi_log>") and document.sections):
                yield document
                document, hostile = _Document(), False
            if element or opens_gpu:
                begun, size, counted = (begun, size, counted) if element else (number, 0, 0)
                element.append(part)
                size, counted = size + len(part), counted + 1
                if part.endswith("</gpu>"):
                    end("")
                    last = document.sections[-1].number
            else:
                hostile |= "<!ENTITY" in text
                _take_head(document, number, text, account)
        if len(document.sections) >= _MOST:
            yield document
            document = _Document(document.time, document.driver, document.attached)
    if element:
        end(CUT_LAST_LINE)
    yield document


def _take_head(document: _Document, number: int, text: str, account: Account) -> None:
    """Take a line that is of no GPU: the head and end of a document, and what is no document."""
    for label, said in _HEAD_ELEMENT.findall(text):
        document.take(label, said.strip())
    if text.startswith("<?xml"):
        account.headers += 1
    elif "<!ENTITY" in text:
        account.reject(ENTITIES, number, text)
    elif text[0] == "<":
        document.lines += 1
    else:
        account.stray(number, text)


def _parse_element(text: str, section: _Section) -> None:
    """Fill a section from the element of a GPU."""
    opening, *texts = _CHILD.split(text.removesuffix("</gpu>").rstrip())
    try:
        # a declaration stands by itself where it could not stand inside of an element
        if texts and "<!" not in text and "<?" not in text:
            gpu = _parse(f"{opening}</gpu>")
            try:
                section.passages = [_xml_passage(each) for each in texts]
            except ET.ParseError:
                # its lines do not tell where its elements begin
                texts = []
        if not section.passages:
            gpu = _parse(text)
            section.passages = [_passage(child) for child in gpu]
    except ET.ParseError:
        section.flaw = TORN
        return
    section.bus_id = gpu.get("id", "").strip().upper()
    body = (gpu.text or "").strip()
    section.lost = body if body in LOST_WORDS else ""


def _parse(text: str) -> ET.Element:
    # an element without a document type declares no entities
    return ET.XML(text, ET.XMLParser(encoding="utf-8"))  # noqa: S314


@lru_cache(2048)
def _xml_passage(text: str) -> _Passage:
    return _passage(_parse(text))


def _passage(top: ET.Element) -> _Passage:
    return _Passage.read(top.tag, () if top.tag in _LISTS else _leaves(top, "", 0))


def _leaves(element: ET.Element, above: str, depth: int) -> Iterator[tuple[str, str]]:
    path = f"{above}/{element.tag}".removeprefix("/")
    if not len(element):
        if path == _MINOR or find_column(path) is not None:
            yield path, (element.text or "").strip()
    elif depth < _DEEPEST:
        for child in element:
            yield from _leaves(child, path, depth + 1)
