"""Any text, and params and tags, without their secrets."""

import re
from collections.abc import Iterable
from functools import lru_cache

from gpureport.redaction import own_secrets
from gpureport.redaction.forms import HIDDEN, hide_forms, hide_random, hide_schemes, hide_users
from gpureport.redaction.labelled_values import hide_assigned, hide_headed, hide_json
from gpureport.redaction.names import is_secret, may_look_random

_NUMBER = re.compile(r"[-+\d.eE %]{1,31}")
QUOTED = 200
"""Letters of a text of others that an error shows."""
_LOOKED_BEYOND = 2000
"""Letters behind those that are shown: as many as a user with a password has."""
_LONGEST_KEPT = 1000
"""Letters of a text whose result is kept, as most texts come again and again; a line of a log may have a million."""


def redact_text(text: str) -> str:
    """Return any text without users of URLs, values of secret keys, and tokens that show what they are.

    Checksums and ids, which only look random, stay.
    """
    return _redact_short_text(text) if len(text) <= _LONGEST_KEPT else _redact(text)


@lru_cache(maxsize=8192)
def _redact_short_text(text: str) -> str:
    return _redact(text)


def _redact(text: str) -> str:
    text = hide_users(hide_schemes(text, keep_words=True))
    return hide_forms(hide_headed(hide_assigned(hide_json(text))))


def redact_start(text: str, longest: int = QUOTED) -> str:
    """Return the beginning of a text, of so many letters at most, as `redact_text` does.

    A secret that is cut shows no longer what it is, so that it is replaced before.
    """
    return redact_text(text[: longest + _LOOKED_BEYOND])[:longest]


def redact_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags without the values that are secrets by their name or their form."""
    return tuple((redact_text(name), redact_value(name, value)) for name, value in pairs)


def redact_value(name: str, value: str) -> str:
    """Return the value of a param or tag, `***` where its name tells a secret, and without those it holds."""
    if _NUMBER.fullmatch(value):
        return HIDDEN if is_secret(name, value) else own_secrets.get_own_secrets().hide_in(value, HIDDEN)
    if is_secret(name, value):
        return HIDDEN
    text = redact_text(value)
    return text if may_look_random(name) else hide_random(text)


own_secrets.clear_on_change(_redact_short_text.cache_clear)
