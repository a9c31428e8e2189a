"""Passages of sections are remembered by their text, and put together as if each had been read again."""

import pytest

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.nvidia_smi.forms.full_query.q_text import QueryText
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsections import (
    Subsection,
    SubsectionCache,
    join_subsections,
    parse_small_integer,
)
from gpureport.importers.protocol.reject_reasons import TORN
from tests.importers.logs.nvidia_smi.forms.outputs import query_loop


def test_memory_is_bounded() -> None:
    """A text is forgotten after a MiB of others; one of more than 8 KiB is not remembered."""
    known = SubsectionCache()
    texts = [f"    Label {number}".encode().ljust(8192) for number in range(129)]
    for text in texts[:128]:
        known.add(text, Subsection())
    assert known.get(texts[0]) is not None
    known.add(texts[128], Subsection())
    known.add(b" " * 8193, Subsection())
    assert [known.get(text) is not None for text in (texts[0], texts[128], b" " * 8193)] == [False, True, False]


@pytest.mark.parametrize(("second", "flaw"), [("1 W", ""), ("2 W", TORN)])
def test_a_value_said_twice(second: str, flaw: str) -> None:
    """Two passages may say the same; where they do not, neither is believed."""
    one, other = Subsection(), Subsection()
    one.take("power/draw", "1 W")
    other.take("power/draw", second)
    assert join_subsections([one, other]).flaw == flaw


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("9999", 9999), ("10000", None), ("-1", None), ("²", None)])
def test_small_numbers(text: str, number: int | None) -> None:
    """A number of up to four digits is one."""
    assert parse_small_integer(text) == number


def _read(text: str, lines: int) -> tuple[dict[str, list[object]], int, int]:
    """Return what a log says that comes in pieces of so many lines: values by column, lines, and those that go on."""
    whole = text.encode().splitlines(keepends=True)
    starts = range(0, len(whole), lines)
    pieces = [Piece(b"".join(whole[at : at + lines]), at + 1, at + lines >= len(whole), lines) for at in starts]
    chunks = list(QueryText().chunks(pieces))
    found: dict[str, list[object]] = {}
    for name, values in ((name, values) for chunk in chunks for name, values in chunk.data.items()):
        cells = values.data.tolist() if values.texts is None else [values.texts[code] for code in values.data]
        found.setdefault(name, []).extend(cell for cell, there in zip(cells, values.valid, strict=True) if there)
    return found, sum(chunk.lines for chunk in chunks), sum(chunk.continued for chunk in chunks)


@pytest.mark.parametrize("lines", [1, 2, 7, 50])
def test_pieces_may_end_within_a_passage(lines: int) -> None:
    """The lines of a passage that come with the next piece belong to what its first line says."""
    text = query_loop(3)
    assert len(_read(text, lines)[0]["gpu_power_watts"]) == 6
    assert _read(text, lines) == _read(text, 10_000)


def test_a_line_left_of_the_margin_holds_those_below_it() -> None:
    """Indentation says what belongs to what: below such a line, no value is one of the GPU's."""
    text = query_loop(2)
    second = text.index("    Fan Speed", text.index("    Fan Speed") + 1)
    found, *_ = _read(text[:second] + "  Board\n" + text[second:], 10_000)
    assert len(found["gpu_fan_ratio"]) == len(found["gpu_power_watts"]) == 3
    assert len(found["pcie_link_width"]) == 4


@pytest.mark.parametrize("end", ["\n\n", "\n    \n", "\n \t\n"])
@pytest.mark.parametrize("lines", [1, 7, 10_000])
def test_blank_lines_within_a_section(end: str, lines: int) -> None:
    """What stands below a label is found again below one that was met before, whatever parts the two."""
    text = query_loop(3)
    assert _read(text.replace("\n", end), lines) == _read(text, 10_000)
