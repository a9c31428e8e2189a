"""Sentences on steps, worded in `words.toml`."""

import re
import tomllib
from pathlib import Path

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
    """Return names as a list in a sentence, of many the first few and how many more there are."""
    more = len(names) - most
    return display.join_words([*names[:most], f"{more} {rest}"] if more > 1 else names)
