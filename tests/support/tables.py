"""Tables beside tests: a row a line, cells between tabs; a line that begins with # is a comment."""

import shlex
from pathlib import Path


def read_table(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def words_of(command: str, **given: str) -> tuple[str, ...]:
    """Return the words of a command as a shell divides it, with what is given in the place of `{name}`."""
    return tuple(word.format(**given) if given else word for word in shlex.split(command))
