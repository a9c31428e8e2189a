"""Names and patterns that a person adds to the list of secrets: literal letters, with `*` for any others.

They hold for the whole process, as secrets are replaced wherever a value that holds text is made. They are no regular
expressions, whose time may grow without bounds.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

STAR = "*"
_WORD = re.compile(r"[^\s\"'<>,;&()|]+")
"""Letters that `*` of a pattern stands for."""
_SEPARATORS = str.maketrans("-. :/", "_____")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """What a person adds.

    Attributes:
        names: names whose values are secrets, whatever their case; `*` stands for any letters.
        patterns: beginnings of secrets, with their case; `*` stands for any letters but blanks, quotes and
            `,;&()<>|`. The rest of the word is part of the secret.
    """

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def names_secret(self, name: str) -> bool:
        """Return whether a name, or its last part after a dot, slash or colon, is one of these; `-` is `_`."""
        if not self.names:
            return False
        bare = name.strip("-+~").lower()
        parts = {bare.translate(_SEPARATORS), re.split(r"[./:]", bare)[-1].translate(_SEPARATORS)}
        return any(_matches(each.lower().translate(_SEPARATORS), part) for each in self.names for part in parts)

    def hide_in(self, text: str, hidden: str) -> str:
        """Return a text without the words that the patterns find."""
        for pattern in self.patterns:
            pieces = pattern.split(STAR)
            if all(piece in text for piece in pieces):
                words = _WORD.finditer(text)
                text = _replace_words(text, [(word, _find_secret(word.group(), pieces)) for word in words], hidden)
        return text


def _matches(glob: str, text: str) -> bool:
    """Return whether a text as a whole is letters with `*` for any others."""
    first, *rest = glob.split(STAR)
    if not rest:
        return text == first
    *middle, last = rest
    is_bounded = text.startswith(first) and text.endswith(last)
    return is_bounded and _find_end(text, middle, len(first)) <= len(text) - len(last)


def _find_end(text: str, pieces: list[str], start: int) -> int:
    """Return where the last of some pieces ends that follow one another; beyond the text where one is missing."""
    for piece in pieces:
        place = text.find(piece, start)
        if place < 0:
            return len(text) + 1
        start = place + len(piece)
    return start


def _find_secret(word: str, pieces: list[str]) -> int:
    """Return where a pattern begins in a word; -1 where it does not.

    Where its pieces do not follow the first place of the first, they follow no later one either.
    """
    first, *rest = pieces
    start = word.find(first)
    while start > 0 and first and word[start - 1].isalnum():
        start = word.find(first, start + 1)
    return start if start >= 0 and _find_end(word, rest, start + len(first)) <= len(word) else -1


def _replace_words(text: str, found: list[tuple[re.Match[str], int]], hidden: str) -> str:
    """Return a text with each word replaced from where a secret begins in it."""
    parts, end = [], 0
    for word, start in found:
        if start >= 0:
            parts += [text[end : word.start() + start], hidden]
            end = word.end()
    return "".join([*parts, text[end:]])


_in_use = OwnSecrets()
_caches: list[Callable[[], None]] = []


def use_own_secrets(own: OwnSecrets) -> None:
    """Replace these secrets too, in this process, from now on; those that were in use before no longer."""
    global _in_use  # noqa: PLW0603 - texts are made everywhere, and each is to be without these
    if own != _in_use:
        _in_use = own
        for clear in _caches:
            clear()


def get_own_secrets() -> OwnSecrets:
    """Return the secrets that a person added."""
    return _in_use


def clear_on_change(clear: Callable[[], None]) -> None:
    """Have a cache cleared whenever other secrets come into use."""
    _caches.append(clear)
