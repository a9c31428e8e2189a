"""Sentences from `words.toml`, and lists of run names."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from gpureport.analysis.phrases import fill_template
from gpureport.report.wording import display

_GROUPS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
WORDS: dict[str, str] = {f"{group}.{key}": text for group, said in _GROUPS.items() for key, text in said.items()}
_MOST_WORDS = 16


def say(key: str, /, **fields: object) -> str:
    """Return a sentence with its fields filled in. Empty values and 0 count as unknown."""

    def fill(name: str, noun: str) -> str:
        return display.plural(int(str(fields[name])), noun) if noun else str(fields[name])

    return fill_template(WORDS[key], lambda name, _: fields.get(name), fill)


def name_some(names: list[str], most: int, rest: str = "more") -> str:
    more = len(names) - most
    return display.join_words([*names[:most], f"{more} {rest}"] if more > 1 else names)


def choose_headline(candidates: Sequence[str]) -> str:
    return next((text for text in candidates if len(text.split()) <= _MOST_WORDS), candidates[-1])


_ENDING = re.compile(r"/?\d{1,9}$")
_NUMBERED = re.compile(r"(.+\D)(\d{1,9})", re.DOTALL)
_LONGEST = 48  # maximum length of a name in a sentence


def clean_name(name: str) -> str:
    return display.shorten_middle(display.clean(name), _LONGEST)


def list_labels(labels: Sequence[str]) -> str:
    """Return names as a list in words. Consecutive numbers become a range: `a/1 to /3 and b`."""
    ranges: list[list[str]] = []
    for label in labels:
        one, other = _NUMBERED.fullmatch(ranges[-1][-1] if ranges else ""), _NUMBERED.fullmatch(label)
        if one and other and one[1] == other[1] and int(other[2]) == int(one[2]) + 1:
            ranges[-1].append(label)
        else:
            ranges.append([label])
    texts = [first if not rest else f"{first} to {_ENDING.findall(rest[-1])[-1]}" for first, *rest in ranges]
    return display.join_words(texts)
