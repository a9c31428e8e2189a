"""Every text of a report's content, and which of them a format does not show."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.gain_table import GainRow
from gpureport.report.model.report_content import GpuTable
from gpureport.report.model.shapes import Table

_SPACE = re.compile(r"[\s\u00ad\u200b]+")
_SENTENCE = re.compile(r"(?<=\.) ")
_REACH = 4000
"""Characters after the heading of a row within which its cells must stand."""

_REPEATED = ("id", "severity", "lost", "run", "where")
"""What formats show of a finding that another run has too."""


@dataclass(frozen=True)
class Leaf:
    """A text of the content.

    Attributes:
        path: names of the fields that lead to it, with dots between; of a cell with `cells` at the end.
        text: the text.
        head: of a cell the heading of its row, beside which it must stand; else empty.
    """

    path: str
    text: str
    head: str = ""


def leaves(content: object, path: str = "") -> Iterator[Leaf]:
    """Yield every text of a part of the content that is not empty, in order."""
    if isinstance(content, str):
        yield from [Leaf(path, content)] if content else []
    elif isinstance(content, tuple):
        for entry in content:
            yield from leaves(entry, path)
    elif isinstance(content, Table):
        yield from _table_leaves(content, path)
    elif is_dataclass(content) and not isinstance(content, type):
        names = [field.name for field in fields(content) if field.compare]
        if isinstance(content, FindingCard) and content.repeats:
            names = list(_REPEATED)
        if isinstance(content, GpuTable) and content.outliers:
            names.remove("same")
        for name in names:
            found = leaves(getattr(content, name), f"{path}.{name}".lstrip("."))
            head = content.head.text if isinstance(content, GainRow) and name == "cells" else ""
            yield from (replace(leaf, head=leaf.head or head) for leaf in found)


def _table_leaves(table: Table, path: str) -> Iterator[Leaf]:
    yield from (Leaf(f"{path}.columns", name) for name in table.columns if name)
    for row in table.rows:
        yield from (Leaf(f"{path}.cells", text) for text in (row.head.text, row.head.small) if text)
        texts = (text for cell in row.cells for text in (cell.text, cell.small) if text)
        yield from (Leaf(f"{path}.cells", text, row.head.text) for text in texts)
    yield from (Leaf(f"{path}.notes", note) for note in table.notes)


def missing(content: object, shown: str, allowed: Mapping[str, str]) -> list[Leaf]:
    """Return the texts of a content that a format does not show, each once.

    Neither space nor case counts, so that wrapping does not.

    Args:
        content: the content.
        shown: the words of the format.
        allowed: why a format leaves out what lies under a path; `*` stands for one name of a field.
    """
    words = _squeeze(shown)
    patterns = [re.compile(path.replace(".", r"\.").replace("*", r"\w+") + r"(\..*)?") for path in allowed]
    wanted = (
        leaf for leaf in dict.fromkeys(leaves(content)) if not any(each.fullmatch(leaf.path) for each in patterns)
    )
    return [leaf for leaf in wanted if not _stands(leaf, words)]


def _squeeze(text: str) -> str:
    return _SPACE.sub("", text).replace("\N{NON-BREAKING HYPHEN}", "-").casefold()


def _stands(leaf: Leaf, words: str) -> bool:
    """Return whether a text stands among words, that of a cell after the heading of its row."""
    text, head = _squeeze(leaf.text), _squeeze(leaf.head)
    if leaf.path.endswith(".columns"):
        # a terminal stacks titles over two lines
        return all(_squeeze(word.strip(",")) in words for word in leaf.text.split())
    if not head:
        # a headline is parted from the sentences after it
        return text in words or all(_squeeze(part) in words for part in _SENTENCE.split(leaf.text))
    # gains are wrapped within their columns, where other cells come between their words, and set before their heading
    gain = re.search(r"\bgains\.rows\.cells\.", leaf.path)
    wanted, before = ([_squeeze(word) for word in leaf.text.split(" ")], 300) if gain else ([text], 0)
    at = words.find(head)
    while at >= 0:
        near = words[max(at - before, 0) : at + _REACH]
        if all(word in near for word in wanted):
            return True
        at = words.find(head, at + 1)
    return False
