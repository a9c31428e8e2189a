"""Tables beside tests: a row a line, cells between tabs; a line that begins with # is a comment."""

import re
import shlex
from pathlib import Path

from tests.support.program import Program


def read_table(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def read_blocks(path: Path) -> list[tuple[str, str]]:
    """Return the blocks of a file, each with the line `## ...` that stands before it."""
    _, *parts = re.split(r"^## (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return list(zip(parts[::2], parts[1::2], strict=True))


def words_of(command: str, **given: str) -> tuple[str, ...]:
    """Return the words of a command as a shell divides it, with what is given in the place of `{name}`."""
    return tuple(word.format(**given) if given else word for word in shlex.split(command))


def play(gpureport: Program, path: Path) -> None:
    """Run the commands of a table in order: each row has the exit code, the command, and texts that it prints."""
    for code, command, *texts in read_table(path):
        done = gpureport(*words_of(command))
        printed = " ".join(f"{done.out} {done.err}".split())
        assert (str(done.code), [text for text in texts if text not in printed]) == (code, []), (command, done)
