"""Processes that append to one log, each holding back what it writes until a block is full, as C's stdio does."""

from collections.abc import Sequence

BLOCK = 4096
"""Bytes glibc holds back for a file that is no terminal."""

Line = tuple[float, str]
"""When a line is written, and its text."""


def _in_time(logs: Sequence[Sequence[Line]]) -> list[tuple[int, str]]:
    """Return all lines in the order they are written, with their writers."""
    lines = [(second, writer, text) for writer, log in enumerate(logs) for second, text in log]
    return [(writer, text) for _, writer, text in sorted(lines, key=lambda line: line[0])]


def interleaved(logs: Sequence[Sequence[Line]], block: int = BLOCK) -> bytes:
    """Return what a file holds to which several processes append at once; each flushes the rest when it ends."""
    held = [b""] * len(logs)
    written: list[bytes] = []
    left = [len(log) for log in logs]
    for writer, text in _in_time(logs):
        held[writer] += text.encode() + b"\n"
        left[writer] -= 1
        while len(held[writer]) >= block:
            written.append(held[writer][:block])
            held[writer] = held[writer][block:]
        if left[writer] == 0:
            written.append(held[writer])
            held[writer] = b""
    return b"".join(written)


def raced(logs: Sequence[Sequence[Line]], lost: int, block: int = BLOCK) -> bytes:
    """Return what is left on a network drive: each block begins some bytes before the end of the one before it."""
    held = [b""] * len(logs)
    file = b""
    for writer, text in _in_time(logs):
        held[writer] += text.encode() + b"\n"
        if len(held[writer]) >= block:
            file = file[:-lost] + held[writer][:block]
            held[writer] = held[writer][block:]
    return file
