"""Sections of `nvidia-smi -q`, one a GPU, to rows: read from text and from XML alike."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsection_values import SubsectionReader
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsections import (
    Subsection,
    SubsectionValues,
    join_subsections,
)
from gpureport.importers.logs.nvidia_smi.query.driver_messages import LOST
from gpureport.importers.protocol.reject_reasons import MALFORMED, NO_READING
from gpureport.importers.text.text_log import Record
from gpureport.importers.values.cells import Value

NUMBERED = (
    "GPUs are numbered by their minor numbers, as the log shows only some of those that are attached; nvidia-smi may "
    "number them otherwise."
)
KEPT = (
    "Of each section of nvidia-smi -q what is measured is kept; modes, versions, thresholds and lists of processes are "
    "not."
)
INSTANT = (
    "The log holds no average power: gpu_power_watts is the instant reading, which is what nvidia-smi calls power.draw "
    "on GPUs older than Ampere."
)
_POWER, _INSTANT = "gpu_power_watts", "gpu_power_instant_watts"
_NO_AVERAGE = ("power.draw.average", "N/A")


@dataclass(slots=True, kw_only=True)
class Section:
    """What a log says of one GPU at one time.

    Attributes:
        number: the line it begins in.
        bus_id: the GPU.
        text: that line.
        passages: what it holds, in its order.
        minor: number of its device file, empty where it is not said.
        flaw: why it cannot be used, empty where it can.
        lost: the driver's words that the GPU answers no more, empty where it did not use them.
    """

    number: int
    bus_id: str
    text: str
    passages: list[Subsection] = field(default_factory=list)
    minor: str = ""
    flaw: str = ""
    lost: str = ""

    def join(self, passage: Subsection) -> None:
        """Take a passage."""
        if passage.cells:
            self.passages.append(passage)
        self.minor = passage.minor or self.minor
        self.flaw = passage.flaw or self.flaw


@dataclass(slots=True, kw_only=True)
class Document:
    """What `nvidia-smi -q` writes at one time.

    Attributes:
        time: its time as written, in microseconds; None where it has none.
        driver: version of the driver.
        attached: how many GPUs the machine has, None where it is not said.
        sections: its GPUs.
        head: its lines above and below them.
    """

    time: int | None = None
    driver: str | None = None
    attached: int | None = None
    sections: list[Section] = field(default_factory=list)
    head: list[NonDataLine] = field(default_factory=list)


class Sections:
    """Turns documents into rows.

    Attributes:
        absent: cells without a value so far, by query field and reason.
        silent: columns of which a cell has no value.
        averaged: whether power is an average over a second.
        notes: what a reader must know.
        lost: what the driver said of GPUs that answer no more, by the line of their section.
    """

    def __init__(self) -> None:
        self.absent: Counter[tuple[str, str]] = Counter()
        self.silent: dict[str, None] = {}
        self.averaged = False
        self.notes: dict[str, None] = {}
        self.lost: dict[int, str] = {}
        self._reader = SubsectionReader()
        self.keeps_path = self._reader.keeps_path
        self._indices: dict[str, str] = {}

    def read(self, document: Document) -> tuple[list[Record], list[NonDataLine]]:
        """Return the rows of a document, and the sections that are none."""
        records, other_lines = [], []
        self._number(document)
        for section in document.sections:
            values = self._values(section)
            if values is None:
                other_lines.append(NonDataLine(section.number, LineKind.REJECTED, section.flaw, section.text))
                continue
            values |= self._names(document, section)
            if section.lost:
                self.lost[section.number] = section.lost
            records.append(Record(number=section.number, time=document.time, values=values))
        if records:
            self.notes[KEPT] = None
        return records, other_lines

    def _values(self, section: Section) -> dict[str, Value] | None:
        """Return the values of a section by metric or attribute; None where it has a flaw, which it names then."""
        meanings = [passage.meaning or self._reader.meaning(passage) for passage in section.passages]
        values: dict[str, Value] = {}
        for each in meanings:
            values.update(each.values)
        labels = {passage.label for passage in section.passages}
        apart = len(labels) == len(meanings) and "" not in labels
        if not apart or sum(len(each.values) for each in meanings) > len(values):
            # what one passage says another says as well, or otherwise
            whole = join_subsections(section.passages)
            section.flaw = section.flaw or whole.flaw
            meanings = [self._reader.meaning(whole)]
            values = dict(meanings[0].values)
        reasons = {reason for each in meanings for _, reason in each.absent}
        section.lost = section.lost or next((text for text in LOST if text in reasons), "")
        section.flaw = section.flaw or _flaw(meanings, lost=bool(section.lost))
        if section.flaw:
            return None
        self._note(meanings, values)
        return values

    def _note(self, meanings: Sequence[SubsectionValues], values: dict[str, Value]) -> None:
        lacking = list(chain.from_iterable(each.absent for each in meanings))
        self.absent.update(lacking)
        self.silent.update(dict.fromkeys(chain.from_iterable(each.silent for each in meanings)))
        self.averaged |= any(each.averaged for each in meanings)
        if not (self.averaged or _POWER in values) and _INSTANT in values and _NO_AVERAGE in lacking:
            values[_POWER] = values[_INSTANT]
            self.notes[INSTANT] = None

    def _names(self, document: Document, section: Section) -> dict[str, Value]:
        names = {"bus_id": section.bus_id, "index": self._indices.get(section.bus_id), "driver": document.driver}
        return {name: text for name, text in names.items() if text}

    def _number(self, document: Document) -> None:
        """Give GPUs that are new their index: their place, where all are listed, else the minor number."""
        new = [section for section in document.sections if section.bus_id not in self._indices]
        if not new:
            return
        buses = [section.bus_id for section in document.sections]
        whole = len(set(buses)) == len(buses) == document.attached
        taken = set(self._indices.values())
        for section in new:
            index = str(buses.index(section.bus_id)) if whole else section.minor
            if index and index not in taken:
                self._indices[section.bus_id] = index
                taken.add(index)
                if not whole:
                    self.notes[NUMBERED] = None


def _flaw(meanings: Sequence[SubsectionValues], *, lost: bool) -> str:
    """Return why the passages of a section are no row, empty where they are one: a lost GPU needs no values."""
    spoilt = next((each.spoilt for each in meanings if each.spoilt), "")
    if spoilt:
        return f"{MALFORMED} {spoilt}"
    return "" if lost or any(each.measured for each in meanings) else NO_READING
