"""`nvidia-smi -q -x`, with `-l` or without: XML documents one behind the other, the last of which may be cut."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar
from xml.etree import ElementTree as ET

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.full_query.document_reader import DocumentReader
from gpureport.importers.logs.nvidia_smi.forms.full_query.query_paths import SECTIONS
from gpureport.importers.logs.nvidia_smi.forms.full_query.sections import Section
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsections import (
    MINOR,
    Subsection,
    SubsectionCache,
    parse_small_integer,
)
from gpureport.importers.logs.nvidia_smi.forms.printed_times import parse_printed_time
from gpureport.importers.logs.nvidia_smi.query.driver_messages import LOST
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, ENTITIES, TORN
from gpureport.importers.text.text_log import Chunk

_OPENING = re.compile(r"\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>)")
_GPU = re.compile(rb"<gpu[\s>]")
_END = b"</gpu>"
_DOCUMENT = b"<?xml"
_ROOT = b"<nvidia_smi_log>"
_LISTS = (b"supported_clocks", b"processes", b"accounted_processes", b"retired_pages")
"""Long lists within a GPU's element, of which nothing is kept; they are half of it."""
_HELD = 8 * 2**20
"""Bytes of one GPU's element that are held at most; those of genuine logs have 30 KiB."""
_DEEPEST = 8
_REMEMBERED = 50_000
_CHILD = re.compile(rb"\n\t\t(?=<[^/])")
"""Where an element within that of a GPU begins."""
_STAMP, _ATTACHED = (re.compile(rb"<%s>([^<]*)</%s>" % (tag, tag)) for tag in (b"timestamp", b"attached_gpus"))
_DRIVER = re.compile(rb"<(?:driver|kmd)_version>([^<]*)</(?:driver|kmd)_version>")


class QueryXml:
    """Reads the XML of `nvidia-smi -q -x`: the line that begins a GPU's element is counted for its row.

    Each element of a GPU is parsed alone, so that one that is damaged costs no other, and no declaration of a
    document ever reaches the parser.
    """

    name: ClassVar[str] = "nvidia-smi -q -x"

    def __init__(self) -> None:
        self.zone: str | None = None
        self.averaged = False
        self._documents = DocumentReader()
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._known = SubsectionCache()
        self._hostile = False
        self._number = 0

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line begins a document."""
        return _OPENING.match(line) is not None

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the documents hold that end in each piece."""
        held, first = b"", 1
        for piece in log:
            if held and piece.first_line != first + held.count(b"\n"):
                self._read(held, first, last=True)
                held = b""
            first = first if held else piece.first_line
            data = held + piece.data
            at = self._read(data, first, last=piece.last)
            first += data.count(b"\n", 0, at)
            held = data[at:]
            yield from self._ready()
        self._read(held, first, last=True)
        self._documents.end()
        yield from self._ready()

    def _ready(self) -> Iterator[Chunk]:
        self.averaged = self._documents.averaged
        yield from self._documents.ready()

    def _read(self, data: bytes, first: int, *, last: bool) -> int:
        """Read text whose first line has a number; return up to where it was read."""
        at, number = 0, first
        while at < len(data):
            gpu = _GPU.search(data, at)
            begin = len(data) if gpu is None else gpu.start()
            self._between(data[at:begin], number)
            number += data.count(b"\n", at, begin)
            if gpu is None:
                return len(data)
            end, whole = _element(data, begin)
            if end == len(data) and not whole and not last and end - begin < _HELD:
                return begin
            self._element(data[begin:end], number, TORN if end < len(data) else CUT_LAST_LINE, whole=whole)
            number += data.count(b"\n", begin, end)
            at = end
        return at

    def _between(self, text: bytes, number: int) -> None:
        """Take what stands between the elements of GPUs: ends and heads of documents, and what is no document."""
        if text.isspace():
            return
        for part in re.split(rb"(?=<\?xml)", text):
            if part.startswith(_DOCUMENT) or (_ROOT in part and self._documents.full):
                self._documents.begin()
                self._hostile = False
            self._hostile |= b"<!ENTITY" in part
            self._head(part)
            for place, line in enumerate(part.split(b"\n")):
                if line and not line.isspace():
                    self._line(line.decode(errors="replace").strip(), number + place)
            number += part.count(b"\n")

    def _head(self, text: bytes) -> None:
        head = self._documents.head
        if head is None:
            return
        stamp, driver, attached = (pattern.search(text) for pattern in (_STAMP, _DRIVER, _ATTACHED))
        if stamp:
            head.time = parse_printed_time(stamp[1].decode(errors="replace"))
        if driver:
            head.driver = driver[1].decode(errors="replace").strip() or None
        if attached:
            head.attached = parse_small_integer(attached[1].decode(errors="replace").strip())

    def _line(self, line: str, number: int) -> None:
        if line.startswith("<?xml"):
            self._documents.add_line(NonDataLine(number, LineKind.HEADER, "", line))
        elif "<!ENTITY" in line:
            self._documents.add_line(NonDataLine(number, LineKind.REJECTED, ENTITIES, line))
        elif line.startswith("<"):
            self._documents.above(NonDataLine(number, LineKind.NOISE, "", line))
        else:
            self._documents.stray(number, line)

    def _element(self, data: bytes, number: int, flaw: str, *, whole: bool) -> None:
        """Take the element of a GPU; `flaw` says why it is not whole where it is not."""
        self._number = number = max(number, self._number + 1)
        lines = sum(map(bool, map(bytes.strip, data.split(b"\n"))))
        self._documents.continued += lines - 1
        text = data[:200].partition(b"\n")[0].decode(errors="replace").strip()
        section = Section(number=number, bus_id="", text=text, flaw="" if whole else flaw)
        if self._hostile:
            section.flaw = ENTITIES
        if not section.flaw:
            self._parse(data, section)
        self._documents.add(section)

    def _parse(self, data: bytes, section: Section) -> None:
        """Fill a section from the element of a GPU."""
        try:
            gpu, passages = self._passages(_short(data))
        except ET.ParseError:
            section.flaw = TORN
            return
        section.bus_id = gpu.get("id", "").strip().upper()
        body = (gpu.text or "").strip()
        section.lost = body if body in LOST else ""
        for passage in passages:
            section.join(passage)

    def _passages(self, data: bytes) -> tuple[ET.Element, list[Subsection]]:
        """Return the element of a GPU, and what the elements in it hold.

        Raises:
            ParseError: when it is not well-formed.
        """
        opening, *texts = _CHILD.split(data[: -len(_END)].rstrip())
        # a declaration stands by itself where it could not stand inside of an element
        if texts and b"<!" not in data and b"<?" not in data:
            try:
                return _parsed(opening + _END), [self._known.get(text) or self._new(text) for text in texts]
            except ET.ParseError:
                # its lines do not tell where its elements begin
                pass
        gpu = _parsed(data)
        return gpu, [self._passage(element) for element in gpu]

    def _new(self, text: bytes) -> Subsection:
        """Return what the text of an element holds, and remember it."""
        passage = self._passage(_parsed(text))
        self._known.add(text, passage)
        return passage

    def _passage(self, top: ET.Element) -> Subsection:
        found = Subsection(label=top.tag)
        below = [("", top)]
        while below:
            above, element = below.pop()
            path, kept = self._path(above, element.tag)
            if len(element):
                below += [(path, child) for child in reversed(element) if path]
            elif kept:
                found.take(path, (element.text or "").strip())
        return found

    def _path(self, above: str, tag: str) -> tuple[str, bool]:
        """Return the path of an element, empty where nothing below it is kept, and whether its own text is."""
        if (above, tag) not in self._paths:
            if len(self._paths) > _REMEMBERED:
                self._paths.clear()
            path = f"{above}/{tag}" if above else tag
            inside = path.partition("/")[0] in SECTIONS and path.count("/") < _DEEPEST
            kept = path == MINOR or self._documents.keeps_path(path)
            self._paths[above, tag] = path if inside or kept else "", kept
        return self._paths[above, tag]


def _element(data: bytes, begin: int) -> tuple[int, bool]:
    """Return where the element of a GPU ends, and whether it is whole: not where another begins within it."""
    end = data.find(_END, begin)
    stop = len(data) if end < 0 else end
    document, other = data.find(_DOCUMENT, begin, stop), _GPU.search(data, begin + len(_END), stop)
    cuts = [place for place in (document, -1 if other is None else other.start()) if place >= 0]
    if cuts:
        return min(cuts), False
    return (stop, False) if end < 0 else (end + len(_END), True)


def _parsed(text: bytes) -> ET.Element:
    """Return an element.

    Raises:
        ParseError: when it is not well-formed.
    """
    parser = ET.XMLParser(encoding="utf-8")  # noqa: S314 - an element without a document type declares no entities
    return ET.XML(text, parser)


def _short(data: bytes) -> bytes:
    for name in _LISTS:
        begin = data.find(b"<%s>" % name)
        end = data.find(b"</%s>" % name, begin)
        if 0 <= begin < end:
            data = data[:begin] + data[end + len(name) + 3 :]
    return data
