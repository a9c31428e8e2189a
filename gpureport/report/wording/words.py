"""Sentences on steps, worded in `words.toml`, and the names of runs in a sentence."""

import re
import tomllib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from gpureport.report.wording import display

_GROUPS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
WORDS: dict[str, str] = {f"{group}.{key}": text for group, said in _GROUPS.items() for key, text in said.items()}
_NAME = re.compile(r"{(\w+)(?::([^{}]*))?}")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def say(key: str, /, **fields: object) -> str:
    """Return a sentence filled with fields.

    Of the choices in brackets the first is said whose fields are all known, that is neither empty nor 0; where none is,
    nothing. `{n:run}` counts runs, `{flag:?}` is known or not but says nothing.
    """

    def is_known(text: str) -> bool:
        return all(fields.get(name) for name, _ in _NAME.findall(text))

    def fill(place: re.Match[str]) -> str:
        value, noun = fields[place[1]], place[2]
        return "" if noun == "?" else display.plural(int(str(value)), noun) if noun else str(value)

    text = WORDS[key]
    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda choice: next(filter(is_known, choice[1].split("|")), ""), text)
    return _NAME.sub(fill, text)


def name_some(names: list[str], most: int, rest: str = "more") -> str:
    more = len(names) - most
    return display.join_words([*names[:most], f"{more} {rest}"] if more > 1 else names)


Key = TypeVar("Key", bound=Hashable)
Holder = TypeVar("Holder")
_ENDING = re.compile(r"/?\d{1,9}$")
_NUMBERED = re.compile(r"(.+\D)(\d{1,9})", re.DOTALL)
_LONGEST = 48  # most characters of a name in a sentence that must not be cut


def group_holders(pairs: Iterable[tuple[Key, Holder]]) -> dict[Key, list[Holder]]:
    groups: dict[Key, list[Holder]] = {}
    for key, holder in pairs:
        groups.setdefault(key, []).append(holder)
    return groups


def clean_name(name: str) -> str:
    """Return a name for a sentence that must not be cut, shortened in its middle where it is endless."""
    return display.shorten_middle(display.clean(name), _LONGEST)


def list_labels(labels: Sequence[str]) -> str:
    """Return names as a list in a sentence, those numbered one after the other as a range: `a/1 to /3 and b`."""
    ranges: list[list[str]] = []
    for label in labels:
        if ranges and _follows(ranges[-1][-1], label):
            ranges[-1].append(label)
        else:
            ranges.append([label])
    texts = [first if not rest else f"{first} to {_ENDING.findall(rest[-1])[-1]}" for first, *rest in ranges]
    return display.join_words(texts)


def _follows(before: str, after: str) -> bool:
    one, other = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    return bool(one and other and one[1] == other[1] and int(other[2]) == int(one[2]) + 1)
