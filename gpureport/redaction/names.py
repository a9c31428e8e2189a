"""Names that say that their value is a secret, and the names and beginnings that a person adds.

On a command line, what only might be a secret is one: a hidden value costs a reader less than a shown password. In
params, tags and texts, words of machine learning (`pad_token`, `key_padding`) name settings.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

HIDDEN, STAR = "***", "*"
ANYWHERE = "passw passphrase secret credential apikey accesskey privatekey authoriz connectionstring"
ENDINGS = "token key pwd auth"
OTHER_ENDINGS = "donkey hockey jockey lackey mickey monkey turkey turnkey whiskey"
WORDS = "bearer cookie cred creds dsn jwt otp pass pat sas sig signature webhook"
"""What shows a secret: letters anywhere in a name, its separators left out; ends of a part, as in `apiToken`, and parts
that merely end so; whole parts."""
MODEL_WORDS = (
    "attention batch bos bucket cls count dim dropout embedding eos feature group head heads image input label length "
    "mask max metric min mix mixing monitor num output pad padding per query sep size sort special stop target text "
    "train type unk value vocab"
)
"""Words beside `token` or `key` that make a param a setting of a model, not a secret."""
CHECKSUM_WORDS = "checksum commit digest fingerprint hash id md5 ref revision sha uuid"
"""Parts of a name whose value may look random without being a secret."""
_ANYWHERE, _ENDINGS = re.compile(ANYWHERE.replace(" ", "|")), tuple(ENDINGS.split())
_OTHER, _WORDS, _MODEL, _CHECKSUM = (
    frozenset(words.split()) for words in (OTHER_ENDINGS, WORDS, MODEL_WORDS, CHECKSUM_WORDS)
)
PLAIN, _LIKELY, _POSSIBLE, _NONE = 3, 2, 1, 0
"""Signs of a name: its value is a secret without doubt, whatever it looks like, unless it looks like a setting."""
_SETTING = re.compile(r"[-+]?\d{0,9}\.?\d{0,9}(?:e[-+]?\d{1,2})?|true|false", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LONGEST = 200
"""Letters of a name that are looked at, the last ones."""
_SEPARATORS = str.maketrans("-. :/", "_____")
_LETTER = r"[^\s\"'<>,;&()|]"
"""What `*` of a pattern stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """What a person adds; no regular expressions, whose time may grow without bounds.

    Attributes:
        names: names whose values are secrets, whatever their case; `*` stands for any letters.
        patterns: beginnings of secrets, with their case; `*` stands for any letters but blanks, quotes and
            `,;&()<>|`. The rest of the word is part of the secret.
    """

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


_in_use, version = OwnSecrets(), 0
"""What a person added, and how often that changed: what is kept of other secrets holds no longer."""


def use_own_secrets(own: OwnSecrets) -> None:
    """Replace these secrets too, in this process, from now on; those that were in use before no longer."""
    global _in_use, version
    _in_use, version = own, version + (own != _in_use)


def get_own_secrets() -> OwnSecrets:
    """Return the secrets that a person added."""
    return _in_use


def hide_own(text: str) -> str:
    """Return a text without the words that the patterns of a person find."""
    for pattern in _in_use.patterns:
        if all(piece in text for piece in pattern.split(STAR)):
            text = _compile(pattern).sub(lambda found: found[0] if found[1] is None else HIDDEN, text)
    return text


@lru_cache(256)
def _compile(pattern: str) -> re.Pattern[str]:
    """Return an expression that finds the rest of a word from where a pattern may begin; with a group where it does.

    Where the pieces of a pattern do not follow the first place of the first, they follow no later one of the word.
    """
    first, *rest = map(re.escape, pattern.split(STAR))
    start = rf"(?<![^\W_]){first}" if first else f"(?<!{_LETTER})(?={_LETTER})"
    pieces = "".join(f"(?>{_LETTER}*?{piece})" for piece in rest)
    return re.compile(f"{start}(?:{pieces}{_LETTER}*()|{_LETTER}*)")


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a name says that its value is a secret; `max_tokens=2048` and `key_dim=64` are settings."""
    # our own messages and help say KEY=VALUE
    return value not in {"", "VALUE"} and read_name(name)[0] > (_POSSIBLE if _SETTING.fullmatch(value) else _NONE)


def is_secret(name: str, value: str) -> bool:
    """Return whether a param is a secret by its name, words of machine learning aside."""
    return not read_name(name)[1] and may_be_secret(name, value)


def read_name(name: str) -> tuple[int, bool, bool]:
    """Return the sign of a name, whether words beside make it a setting of a model, and whether it is a checksum."""
    return _read_name(name[-_LONGEST:], version)


@lru_cache(maxsize=8192)
def _read_name(name: str, _version: int) -> tuple[int, bool, bool]:
    # own names are meant as a whole or as the last part; `-` is `_`
    bare = name.strip("-+~").lower()
    forms = {part.translate(_SEPARATORS) for part in (bare, re.split(r"[./:]", bare)[-1])} if _in_use.names else ()
    is_own = any(fnmatchcase(form, own.lower().translate(_SEPARATORS)) for own in _in_use.names for form in forms)
    parts = [part.lower() for part in _PARTS.findall(name)]
    ends = [part.rstrip("s") for part in parts]
    telling = [
        part in _WORDS or (end.endswith(_ENDINGS) and end not in _OTHER) for part, end in zip(parts, ends, strict=True)
    ]
    sign = _LIKELY if any(telling[-1:]) and not parts[-1].endswith("s") else _POSSIBLE if any(telling) else _NONE
    if is_own or _ANYWHERE.search("".join(parts)):
        sign = PLAIN
    is_of_model = sign != PLAIN and _WORDS.isdisjoint(parts) and not _MODEL.isdisjoint(parts)
    return sign, is_of_model, not _CHECKSUM.isdisjoint(parts)
