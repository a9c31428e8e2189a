"""Damages texts and files at random: what is cut, flipped, doubled, swapped, coded, or holds another value."""

import bz2
import gzip
import random
import re
from collections.abc import Callable, Sequence

LARGEST = 110_000
"""Bytes of a damaged text at most."""
_VALUE = re.compile(rb'"[^"\n]*"|-?\d[\d.eE+-]*|true|false|null')
_ODD_VALUES = (
    *rb'null true -1 0 0.5 1e400 NaN "" "x" "\ud800" "\u0000" [] {} [[ [1,"a"] 2026-03-14'.split(),
    *(b"9" * 30, b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b'"' + b"x" * 300 + b'"'),
)
"""What JSON, TOML or a table may hold in place of a value."""
_TOKENS = (
    *(b"\0", b"\n", b"\r", b"\r\n", b",", b";", b"\t", b'"', b'\\"', b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[4m", b"&"),
    *(b"[N/A]", b"[GPU is lost]", b"[", b"]", b"{", b"}", b"null", b"NaN", b"Infinity", b"-1 %", b"1e400 W", b"0x"),
    *(b"2026/03/14 09:00:00.000", b"0000/00/00 00:00:00.000", b"9999/12/31 23:59:60.999999", b"\xd9\xa3 %", b"1,024"),
    *(b"9" * 22, b"9" * 5000, b"[" * 3000, b"9223372036854775794", b"20260314 09:00:00", b"16:59:60", b"12:00:00 AM"),
    *(b"timestamp, index, utilization.gpu [%]\n", b"\nindex, timestamp\n", b"\ngpu_uuid, pid, timestamp\n", b": "),
    *(b"No devices were found\n", b"\n# gpu    sm    fb\n# Idx     %    MB\n", b"\n$ nvidia-smi\n", b"#Entity "),
    *(b"|", b"||", b"+---+", b" : ", b"        ", b"<", b">", b"</gpu>", b"<gpu id=", b"<?xml version=", b"]]>", b"%"),
    *(b"<!ENTITY a 'b'>", b"<![CDATA[", b"| NVIDIA-SMI 999 |\n", b"\n=======NVSMI LOG=======\n", b"ERR!", b"<!--"),
    *(b"all", b"%idle", b"CPU", b"RESTART", b"Average:", b"Linux 6.1 (x) \t02/30/26 \t_x86_64_\t(2 CPU)\n", b"/mean"),
)


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
