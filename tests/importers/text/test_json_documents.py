"""JSON documents one below the other are told apart by their brackets, in little memory."""

import pytest

from gpureport.importers.text.json_documents import iterate_documents
from gpureport.importers.text.numbered_lines import TextLine
from tests.importers.peak import peak_bytes


@pytest.mark.parametrize("end", ['"}', "", '"', '\\"}'])
def test_a_long_string_takes_little_memory(end: str) -> None:
    """Whether it is closed or not, it takes some times its size; each letter of it took a hundred bytes."""
    line = TextLine(1, '{"a": "' + "b" * 500_000 + end)
    found = list(iterate_documents([line], 2**24))
    assert [bool(each.contents) for each in found] == [end == '"}']
    assert peak_bytes(lambda: list(iterate_documents([line], 2**24))) < 10 * 500_000


@pytest.mark.parametrize(
    ("text", "whole"),
    [(r'{"a": "}"}', True), (r'{"a": "\"}"}', True), (r'{"a": "\\"}', True), (r'{"a": "\\\"}', False)],
)
def test_brackets_in_strings_are_none(text: str, whole: bool) -> None:  # noqa: FBT001 - what is expected
    """Quotes that a backslash stands before end no string."""
    (found,) = iterate_documents([TextLine(1, text)], 100)
    assert bool(found.contents) is whole
