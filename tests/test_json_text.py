"""JSON that others wrote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.json_text import parse_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"a\ud800b"', "a�b"),
        (r'"\uDFFF\ud83d\ude00\ud83d"', "�😀�"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\�"),
        ('"é"'.encode("utf-16"), "é"),
    ],
)
def test_half_a_character_is_none(text: str | bytes, expected: str) -> None:
    """Python reads it, and cannot write it anywhere."""
    assert parse_json(text) == expected


def test_bytes_that_are_no_text_are_no_json() -> None:
    """Half a character in UTF-8 as well."""
    with pytest.raises(ValueError, match="can't decode"):
        parse_json(b'"\xed\xa0\x80"')


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_stands_in_a_text_can_be_written(text: str) -> None:
    """Whole characters stay as they are."""
    read = parse_json(json.dumps(text))
    assert isinstance(read, str)
    read.encode()
    assert read == text or any("\ud800" <= each <= "\udfff" for each in text)
