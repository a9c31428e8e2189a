"""JSON that others wrote: what it holds can be written again, which Python's reader does not ensure."""

import json
import re
from collections.abc import Callable
from typing import Any

_ESCAPES = re.compile(
    r"\\\\"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""A backslash, two halves of a character, or half a one."""


def replace_half_characters(text: str) -> str:
    r"""Return JSON in which no escape names half a character, such as `\ud800` alone; its length stays."""
    if r"\ud" not in text and r"\uD" not in text:
        return text
    return _ESCAPES.sub(lambda found: r"\ufffd" if found[1] else found[0], text)


def parse_json(text: str | bytes, parse_number: Callable[[str], Any] | None = None) -> Any:
    """Return what JSON holds.

    Args:
        text: the JSON; of bytes the encoding is found out, as JSON allows.
        parse_number: makes a value of a number as it is written; Python's numbers when None.

    Raises:
        ValueError: when it is none. `RecursionError` when it is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    return json.loads(replace_half_characters(text), parse_float=parse_number, parse_int=parse_number)
