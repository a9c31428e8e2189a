"""Markdown that shows text from logs literally, never as markup."""

import re
from collections.abc import Iterable, Iterator

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_ADDRESS = re.compile(r":(?=//)|(?<=\bwww)\.")
_LIST = re.compile(r"^(?:\d+(?=[.)](?:\s|$))|(?=[-+=]))")


def escape(text: str) -> str:
    """Return text that Markdown shows literally, without links or mentions."""
    escaped = _ADDRESS.sub(lambda match: f"\\{match.group()}", _SPECIAL.sub(r"\\\1", text))
    # a backslash does not keep servers from reading a name after @; a space without width does
    return escaped.replace("@", "@&#8203;")


def escape_line_start(text: str) -> str:
    """Return text for the beginning of a line, where it must not start a list."""
    return _LIST.sub(r"\g<0>\\", escape(text))


def inline_code(text: str) -> str:
    """Return text as code; a backtick inside would end it."""
    plain = text.replace("`", "'")
    return f"`{plain}`"


def table_lines(columns: Iterable[str], cells: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table: its head, then a line a row; lines of a cell stay lines of it."""
    titles = list(columns)
    yield f"| {' | '.join(map(escape, titles))} |"
    yield f"|{'---|' * len(titles)}"
    for row in cells:
        yield f"| {' | '.join('<br>'.join(map(escape, text.splitlines())) for text in row)} |"
