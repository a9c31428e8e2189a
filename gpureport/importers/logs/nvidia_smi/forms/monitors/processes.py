"""Lists of processes, as `pmon` and `--query-compute-apps` write them tick by tick, to what they say of each GPU."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.monitors.aligned_columns import CUT
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, WRONG_CELLS
from gpureport.importers.text.text_log import Chunk, Record, make_chunk
from gpureport.importers.values.cells import Absent, absent
from gpureport.units import parse_quantity

_NOTHING = {"-", ""}
_MESSAGES = QueryGpuDialect()
"""Tells what a line is that is no row."""
_REMEMBERED = 4_096
"""How many non-row lines to remember, so that a repeated line gets the same verdict without another look."""
_LONGEST = 200
"""Bytes of a line that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a list.

    Attributes:
        number: its line.
        time: when the list was made, in microseconds.
        gpu: what names the GPU, by `devices.ATTRIBUTES`.
        pid: the process; empty where the line says that there is none.
        memory: its memory as written with its unit; None where the list does not show it.
    """

    number: int
    time: int
    gpu: Mapping[str, str]
    pid: str
    memory: str | None = None


@dataclass(slots=True)
class _Gpu:
    first: Listed
    pids: set[str] = field(default_factory=set)
    memory: int | None = 0

    def values(self) -> dict[str, float | bool | str]:
        """Return the row of the GPU."""
        known: dict[str, float | bool | str] = {**self.first.gpu, "gpu_processes": len(self.pids)}
        return known if self.memory is None else known | {"gpu_process_memory_bytes": self.memory}


class Lists:
    """Puts the lines of each list together, a row a GPU.

    Attributes:
        counted: lines of the lists that are closed; whoever takes them sets it back.
        absent: cells without a memory, by column and reason; likewise.
    """

    def __init__(self, slack: int) -> None:
        """Start before any list; `slack` is how far apart, in microseconds, the stamps of one list may lie."""
        self._slack = slack
        self._open: dict[tuple[tuple[str, str], ...], _Gpu] = {}
        self._began = 0
        self._lines = 0
        self.counted = 0
        self.absent: Counter[tuple[str, str]] = Counter()

    def add(self, line: Listed) -> Iterator[Record]:
        """Take a line; yield the rows of the list before where it begins another one."""
        key = tuple(line.gpu.items())
        known = self._open.get(key)
        again = known is not None and line.pid in known.pids
        if self._open and (again or abs(line.time - self._began) > self._slack):
            yield from self.close()
            known = None
        if not self._open:
            self._began = line.time
        if known is None:
            known = self._open[key] = _Gpu(line)
        self._lines += 1
        known.pids |= {line.pid} - _NOTHING
        known.memory = self._sum(known.memory, line)

    def _sum(self, held: int | None, line: Listed) -> int | None:
        """Return the memory of the processes, None where that of one is not known."""
        if line.pid in _NOTHING:
            return held if line.memory is not None else None
        text = "" if line.memory is None else line.memory
        why = absent(text)
        if isinstance(why, Absent):
            self.absent["used_gpu_memory", why.reason] += line.memory is not None
            return None
        size = parse_quantity(text, "MiB", "By")
        return None if held is None or size is None else held + round(size)

    def close(self) -> Iterator[Record]:
        """Yield the rows of the list that is open."""
        for gpu in sorted(self._open.values(), key=lambda gpu: gpu.first.number):
            yield Record(number=gpu.first.number, time=gpu.first.time, values=gpu.values())
        self._open = {}
        self.counted, self._lines = self.counted + self._lines, 0


class ListReader:
    """Reads the lines of lists one by one."""

    def __init__(self, slack: int, line: Callable[[int, str], Listed | NonDataLine], notes: tuple[str, ...]) -> None:
        """Start before the first line.

        Args:
            slack: how far apart the stamps of one list may lie, in microseconds.
            line: returns what a line says, given its number.
            notes: what a reader must know of any row.
        """
        self._lists = Lists(slack)
        self._line = line
        self._notes = notes
        self._known: dict[bytes, NonDataLine] = {}

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield a chunk a piece, and the last list at the end."""
        cut = False
        for piece in log:
            cut = piece.last and bool(piece.data) and not piece.data.endswith(b"\n")
            yield self._piece(piece, cut=cut)
        yield self._chunk(list(self._lists.close()), (), (CUT,) if cut else ())

    def _piece(self, piece: Piece, *, cut: bool) -> Chunk:
        records: list[Record] = []
        other_lines: list[NonDataLine] = []
        lines = piece.data.split(b"\n")
        for number, raw in enumerate(lines, piece.first_line):
            whole = not cut or number < piece.first_line + len(lines) - 1
            known = self._known.get(raw) if whole else None
            if known is not None:
                other_lines.append(NonDataLine(number, known.kind, known.reason, known.text))
                continue
            text = raw.decode(errors="replace").strip("\r")
            if not text.strip("\0\t "):
                continue
            read = self._line(number, text) if whole else rejected(number, CUT_LAST_LINE, text)
            if isinstance(read, NonDataLine):
                other_lines.append(self._describe_line(raw, read))
            else:
                records += self._lists.add(read)
        return self._chunk(records, other_lines, ())

    def _describe_line(self, raw: bytes, line: NonDataLine) -> NonDataLine:
        """Return a line that is no row with what it is: some are messages; it is told once below each heading."""
        if line.reason in {WRONG_CELLS, BEFORE_HEADER}:
            kind = _MESSAGES.classify(line.text.strip())
            line = line if kind is line.kind else replace(line, kind=kind)
        if line.kind is LineKind.HEADER or len(self._known) >= _REMEMBERED:
            self._known.clear()
        elif len(raw) <= _LONGEST:
            self._known[raw] = line
        return line

    def _chunk(self, records: list[Record], other_lines: Sequence[NonDataLine], notes: tuple[str, ...]) -> Chunk:
        counted, missing = self._lists.counted, dict(self._lists.absent)
        self._lists.counted = 0
        self._lists.absent.clear()
        return make_chunk(
            records,
            lines=counted + len(other_lines),
            other_lines=other_lines,
            continued=counted - len(records),
            absent=missing,
            notes=(*notes, *(self._notes if records else ())),
        )


def rejected(number: int, reason: str, text: str) -> NonDataLine:
    """Return a line that cannot be read."""
    return NonDataLine(number, LineKind.REJECTED, reason, text)
