"""Style sheet and script as a page holds them: without what only their writers need."""

import re

_LOOSE = re.compile(r"\s*([{};,])\s*|(?<=:) ")
"""White space of a style sheet that means nothing."""

_LITERAL = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?<=[=(,:?!&|]) ?/(?:\\.|[^/\\])+/)""")
"""Strings and patterns of a script, in which a space is one."""

_SPACE = re.compile(r"(?<![\w$]) +(?![+-])|(?<![+-]) +(?![\w$])")
"""A space of a script that parts nothing: beside a sign, unless it keeps two of them from being another."""

_BREAK = re.compile(r"(?<=[{;,])\n")
"""A line break of a script where none is needed to end a statement."""


def style(text: str) -> str:
    """Return a style sheet without white space that means nothing."""
    lines = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    return _LOOSE.sub(r"\1", lines)


def script(text: str) -> str:
    """Return a script without lines of comment and without spaces and line breaks that mean nothing."""
    lines = (line.strip() for line in text.splitlines())
    return _BREAK.sub("", "\n".join(_tight(line) for line in lines if line and not line.startswith("//")))


def _tight(line: str) -> str:
    parts = _LITERAL.split(line)
    parts[::2] = [_SPACE.sub("", part) for part in parts[::2]]
    return "".join(parts)
