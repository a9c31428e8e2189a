"""The lines of tables drawn with `|`, `-` and `+`, told apart by their bars."""

from dataclasses import dataclass
from enum import IntEnum

_BORDERS = {b"+-", b"+=", b"|-", b"|="}
_INDEX_AT = 4
"""Place of the last digit of a GPU's index behind the first bar: nvidia-smi writes it four characters wide."""


class LineShape(IntEnum):
    """What a line looks like.

    FRAME is a border, the banner or a line of the table of processes, DEVICE a line of the table of GPUs, INSTANCE one
    of the table of MIG instances; TEXT is no line of a table, BROKEN has no such number of bars.
    """

    BLANK = 0
    TEXT = 1
    FRAME = 2
    DEVICE = 3
    INSTANCE = 4
    BROKEN = 5


_BY_BARS = {2: LineShape.FRAME, 4: LineShape.DEVICE, 5: LineShape.INSTANCE}


@dataclass(frozen=True, slots=True)
class TableLines:
    """Lines by their shape.

    Attributes:
        raw: their bytes, newlines aside.
        shapes: a `LineShape` for each.
    """

    raw: list[bytes]
    shapes: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> "TableLines":
        """Return the lines of some text."""
        raw = data.split(b"\n")
        if not raw[-1]:
            raw.pop()
        return cls(raw, bytes(map(_shape, raw)))

    def __add__(self, other: "TableLines") -> "TableLines":
        return TableLines(self.raw + other.raw, self.shapes + other.shapes)

    def __getitem__(self, part: slice) -> "TableLines":
        return TableLines(self.raw[part], self.shapes[part])

    def __len__(self) -> int:
        return len(self.raw)

    def text(self, line: int) -> str:
        """Return a line as text."""
        return self.raw[line].decode(errors="replace").strip()

    def where(self, shape: LineShape) -> list[int]:
        """Return the lines of a shape."""
        return [line for line, each in enumerate(self.shapes) if each == shape]

    def gpus(self) -> list[int]:
        """Return the lines of the table of GPUs that begin with an index."""
        return [
            line
            for line in self.where(LineShape.DEVICE)
            if self.raw[line].lstrip()[_INDEX_AT : _INDEX_AT + 1].isdigit()
        ]


def _shape(line: bytes) -> LineShape:
    text = line.strip()
    if not text:
        return LineShape.BLANK
    if text[:2] in _BORDERS:
        return LineShape.FRAME if text[-1:] in b"|+" else LineShape.BROKEN
    if not text.startswith(b"|"):
        return LineShape.TEXT
    return _BY_BARS.get(text.count(b"|"), LineShape.BROKEN) if text.endswith(b"|") else LineShape.BROKEN
