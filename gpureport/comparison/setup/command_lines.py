"""What command lines say of a change: which params stand on them, and whether they differ in anything else."""

import shlex
from collections.abc import Collection, Iterable, Iterator

COMMAND = "command"
"""The tag that holds the command line of a recording."""


def list_options(commands: Iterable[str]) -> frozenset[str]:
    """Return the names of options and assignments on command lines, as params are called: `batch_size`."""
    return frozenset(
        name
        for command in commands
        for word in _split(command)
        if word[:1] == "-" or "=" in word
        if (name := _name(word))
    )


def differ_beside(commands: Iterable[str], names: Collection[str]) -> bool:
    """Return whether command lines differ in more than the values of some params."""
    return len({tuple(_drop_options(_split(command), names)) for command in commands}) > 1


def normalize_name(name: str) -> str:
    """Return the name of a param as that of an option is written here."""
    return name.lstrip("-").replace("-", "_").lower()


def _name(word: str) -> str:
    return normalize_name(word.partition("=")[0])


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        # a quote without its partner
        return command.split()


def _drop_options(words: Iterable[str], names: Collection[str]) -> Iterator[str]:
    is_value = False
    for word in words:
        if is_value and word[:1] != "-":
            is_value = False
            continue
        is_named = (word[:1] == "-" or "=" in word) and _name(word) in names
        is_value = is_named and "=" not in word
        if not is_named:
            yield word
