"""Damages texts and files at random: what is cut, flipped, doubled, swapped, coded, or holds another value."""

import bz2
import gzip
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

LARGEST = 110_000
"""Bytes of a damaged text at most."""
_VALUE = re.compile(rb'"[^"\n]*"|-?\d[\d.eE+-]*|true|false|null')
_ODD_VALUES = (
    *rb'null true -1 0 0.5 1e400 NaN "" "x" "\ud800" "\u0000" [] {} [[ [1,"a"] 2026-03-14'.split(),
    *(b"9" * 30, b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b'"' + b"x" * 300 + b'"'),
)
"""What JSON, TOML or a table may hold in place of a value."""
_SHORT: list[str] = json.loads(Path(__file__).with_name("seeds").joinpath("tokens.json").read_text(encoding="utf-8"))
_TOKENS = (*(text.encode("latin-1") for text in _SHORT), b"9" * 5000, b"[" * 3000)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _flip(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def _remove(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + data[place + chance.choice([1, 3, 50, 4096]) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(_TOKENS) * chance.choice([1, 1, 1, 2, 500]) + data[place:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:]


def _swap(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = (chance.randrange(len(lines)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _shuffle_cells(data: bytes, chance: random.Random) -> bytes:
    lines, mark = data.split(b"\n"), chance.choice([b",", b" "])
    place = chance.randrange(len(lines))
    cells = lines[place].split(mark)
    chance.shuffle(cells)
    lines[place] = mark.join(cells)
    return b"\n".join(lines)


def _encode(data: bytes, chance: random.Random) -> bytes:
    return data.decode(errors="replace").encode(
        chance.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
    )


def _compress(data: bytes, chance: random.Random) -> bytes:
    return gzip.compress(data) if chance.random() < 0.5 else bz2.compress(data)


def _change_value(data: bytes, chance: random.Random) -> bytes:
    found = chance.choice([*_VALUE.finditer(data)] or [None])
    return data if found is None else data[: found.start()] + chance.choice(_ODD_VALUES) + data[found.end() :]


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_cut, _remove, _repeat, _swap, _shuffle_cells, _encode, _compress),
    *(_flip, _insert) * 3,
    *(_change_value,) * 8,
)


def damage(seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """Return one of some texts, damaged one to six times, or spliced with another."""
    data = chance.choice(seeds)
    for _ in range(chance.randint(1, 6)):
        if chance.random() < 0.1:
            other = chance.choice(seeds)
            data = data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]
        else:
            data = chance.choice(_WAYS)(data or b"\n", chance)
    return data[:LARGEST]
