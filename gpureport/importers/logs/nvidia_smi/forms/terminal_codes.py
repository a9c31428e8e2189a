"""Removes terminal control codes, as `watch` and coloured prompts leave them in a log."""

import re

_CONTROL = re.compile(
    rb"\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[()][A-Z0-9]|[=>78cDEM])|[\x0e\x0f]"
)
_MOST_BLANKS = 500


def remove_terminal_codes(data: bytes) -> bytes:
    """Return text without control sequences; where the cursor was put on another line, a line begins."""
    return _CONTROL.sub(_written, data)


def _written(match: re.Match[bytes]) -> bytes:
    """Return what a control sequence looks like: blanks for a cursor that moves on, a line for one that moves away."""
    values, final = match[1] or b"", match[2] or b""
    first, _, second = values.partition(b";")
    if final == b"C":
        return b" " * _count(first, 1)
    if final == b"d":
        return b"\n"
    return b"\n" + b" " * (_count(second, 1) - 1) if final in {b"H", b"f"} and final else b""


def _count(digits: bytes, otherwise: int) -> int:
    """Return the number a control sequence names, no more than a screen is wide."""
    return min(int(digits), _MOST_BLANKS) if digits.isdigit() and len(digits) <= 4 else otherwise  # noqa: PLR2004 - screens are smaller
