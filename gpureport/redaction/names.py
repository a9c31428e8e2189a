"""Names that say that their value is a secret.

On a command line, what only might be a secret is one: a hidden value costs a reader less than a shown password. In
params, tags and texts, words of machine learning (`pad_token`, `key_padding`) name settings.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from gpureport.redaction.own_secrets import clear_on_change, get_own_secrets

ANYWHERE = (
    *(
        "passw",
        "passphrase",
        "secret",
        "credential",
        "apikey",
        "accesskey",
        "privatekey",
        "authoriz",
        "connectionstring",
    ),
)
"""Letters that tell a secret anywhere in a name, its separators left out."""
ENDINGS = ("token", "key", "pwd", "auth")
"""Ends of a part of a name that tell a secret, as in `hf_token`, `apiToken` and `MYSQL_PWD`."""
OTHER_ENDINGS = frozenset(("donkey", "hockey", "jockey", "lackey", "mickey", "monkey", "turkey", "turnkey", "whiskey"))
"""Parts that merely end so."""
WORDS = frozenset(
    ("pass", "cred", "creds", "cookie", "signature", "sig", "sas", "dsn", "jwt", "bearer", "otp", "pat", "webhook")
)
"""Parts of a name that tell a secret."""
MODEL_WORDS = frozenset(
    (
        *("attention", "batch", "bos", "bucket", "cls", "count", "dim", "dropout", "embedding", "eos", "feature"),
        *("group", "head", "heads", "image", "input", "label", "length", "mask", "max", "metric", "min", "mix"),
        *("mixing", "monitor", "num", "output", "pad", "padding", "per", "query", "sep", "size", "sort", "special"),
        *("stop", "target", "text", "train", "type", "unk", "value", "vocab"),
    )
)
"""Words beside `token` or `key` that make a param a setting of a model, not a secret."""
CHECKSUM_WORDS = frozenset(
    ("commit", "revision", "sha", "hash", "checksum", "ref", "id", "uuid", "digest", "md5", "fingerprint")
)
"""Parts of a name whose value may look random without being a secret."""
_PLACEHOLDER = "VALUE"
"""What `KEY=VALUE` of our own messages and help stands for."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ANYWHERE = re.compile("|".join(ANYWHERE), re.IGNORECASE)
_SETTING = re.compile(r"[-+]?\d{0,9}\.?\d{0,9}(?:e[-+]?\d{1,2})?|true|false", re.IGNORECASE)
_LONGEST = 200
"""Letters of a name that are looked at, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """What a name says of its value.

    Attributes:
        is_plain: whether it is a secret without doubt, as after `password`.
        is_likely: whether it is one whatever it looks like, as after `token`.
        is_possible: whether it is one unless it looks like a setting, as after `tokens`.
        is_of_model: whether words beside say that it is a setting of a model.
        is_checksum: whether it may look random without being one.
    """

    is_plain: bool
    is_likely: bool
    is_possible: bool
    is_of_model: bool
    is_checksum: bool


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a name says that its value is a secret; `max_tokens=2048` and `key_dim=64` are settings."""
    if value in {"", _PLACEHOLDER}:
        return False
    signs = _read_signs(name[-_LONGEST:])
    return signs.is_plain or signs.is_likely or (signs.is_possible and not is_setting(value))


def is_setting(value: str) -> bool:
    """Return whether a value is a number, `true` or `false`."""
    return _SETTING.fullmatch(value) is not None


def is_secret(name: str, value: str) -> bool:
    """Return whether a param is a secret by its name, words of machine learning aside."""
    return not _read_signs(name[-_LONGEST:]).is_of_model and may_be_secret(name, value)


def is_plainly_secret(name: str) -> bool:
    """Return whether a name alone leaves no doubt, as `password` and `api_key`, and unlike `token` and `key`."""
    return _read_signs(name[-_LONGEST:]).is_plain


def may_look_random(name: str) -> bool:
    """Return whether the value of a name is a checksum or an id."""
    return _read_signs(name[-_LONGEST:]).is_checksum


@lru_cache(maxsize=8192)
def _read_signs(name: str) -> _Signs:
    parts = [part.lower() for part in _PARTS.findall(name)]
    words = set(parts)
    telling = [place for place, part in enumerate(parts) if part in WORDS or _ends_as_secret(part.rstrip("s"))]
    is_plain = get_own_secrets().names_secret(name) or _ANYWHERE.search("".join(parts)) is not None
    return _Signs(
        is_plain=is_plain,
        is_likely=bool(telling) and telling[-1] == len(parts) - 1 and not parts[-1].endswith("s"),
        is_possible=bool(telling),
        is_of_model=not (is_plain or WORDS & words) and bool(MODEL_WORDS & words),
        is_checksum=bool(CHECKSUM_WORDS & words),
    )


def _ends_as_secret(part: str) -> bool:
    return part.endswith(ENDINGS) and part not in OTHER_ENDINGS


clear_on_change(_read_signs.cache_clear)
