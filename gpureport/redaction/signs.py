"""Defines the signs of a secret: names, the user's own names and patterns, and token formats.

On a command line, possible secrets are hidden, since hiding a value costs less than showing a password. In params, tags
and text, machine learning terms such as `pad_token` and `key_padding` are settings. Patterns run in linear time.
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
"""Signs of a secret in a name. `ANYWHERE` may span separators, `ENDINGS` end a part, as in `apiToken`, and `WORDS` are
whole parts. `OTHER_ENDINGS` are ordinary words with these endings."""
MODEL_WORDS = (
    "attention batch bos bucket cls count dim dropout embedding eos feature group head heads image input label length "
    "mask max metric min mix mixing monitor num output pad padding per query sep size sort special stop target text "
    "train type unk value vocab"
)
"""Words next to `token` or `key` that indicate a model setting rather than a secret."""
CHECKSUM_WORDS = "checksum commit digest fingerprint hash id md5 ref revision sha uuid"
"""Parts of names whose values may look random but are not secret."""
_ANYWHERE = re.compile(ANYWHERE.replace(" ", "|"))
_ENDINGS = tuple(ENDINGS.split())
_OTHER, _WORDS = frozenset(OTHER_ENDINGS.split()), frozenset(WORDS.split())
_MODEL = frozenset(MODEL_WORDS.split())
_CHECKSUM = frozenset(CHECKSUM_WORDS.split())
PLAIN, _LIKELY, _POSSIBLE, _NONE = 3, 2, 1, 0
"""How strongly a name indicates a secret. With `_POSSIBLE`, a value that looks like a setting is not secret."""
_SETTING = re.compile(r"[-+]?\d{0,9}\.?\d{0,9}(?:e[-+]?\d{1,2})?|true|false", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LONGEST = 200
"""Number of characters examined at the end of a name."""
_SEPARATORS = str.maketrans("-. :/", "_____")
_LETTER = r"[^\s\"'<>,;&()|]"
"""The characters that `*` in a pattern matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """Case-insensitive names of secret values, and prefixes of secrets. `*` matches any characters.

    These are not regular expressions, which may take exponential time.
    """

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


_in_use, version = OwnSecrets(), 0
"""The user's own secrets, and how many times they changed, which invalidates cached results."""


def use_own_secrets(own: OwnSecrets) -> None:
    global _in_use, version
    _in_use, version = own, version + (own != _in_use)


def get_own_secrets() -> OwnSecrets:
    return _in_use


def hide_own(text: str) -> str:
    for pattern in _in_use.patterns:
        if all(piece in text for piece in pattern.split(STAR)):
            text = _compile(pattern).sub(lambda found: found[0] if found[1] is None else HIDDEN, text)
    return text


@lru_cache(256)
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches words with the first piece, and sets a group if all pieces match.

    If the other pieces do not follow the first occurrence of the first piece, they follow no later occurrence.
    """
    first, *rest = map(re.escape, pattern.split(STAR))
    start = rf"(?<![^\W_]){first}" if first else f"(?<!{_LETTER})(?={_LETTER})"
    pieces = "".join(f"(?>{_LETTER}*?{piece})" for piece in rest)
    return re.compile(f"{start}(?:{pieces}{_LETTER}*()|{_LETTER}*)")


def may_be_secret(name: str, value: str) -> bool:
    # gpureport's own messages and help contain KEY=VALUE
    return value not in {"", "VALUE"} and read_name(name)[0] > (_POSSIBLE if _SETTING.fullmatch(value) else _NONE)


def is_secret(name: str, value: str) -> bool:
    """Return whether a param's name marks a secret and is not a machine learning term."""
    return not read_name(name)[1] and may_be_secret(name, value)


def read_name(name: str) -> tuple[int, bool, bool]:
    """Return a name's sign, whether other words suggest a model setting, and whether it names a checksum."""
    return _read_name(name[-_LONGEST:], version)


@lru_cache(maxsize=8192)
def _read_name(name: str, _version: int) -> tuple[int, bool, bool]:
    # the user's names match a whole name or its last part; `-` and `_` are equivalent
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


FORMS = (
    ("Hugging Face", "hf_…", r"hf_[A-Za-z0-9]{8,}"),
    ("OpenAI, Anthropic and others", "sk-…", r"sk-[\w\-]{8,}"),
    ("Stripe", "sk_live_…, rk_live_…", r"[rs]k_(?:live|test)_\w{8,}"),
    ("GitHub", "ghp_…, gho_…, ghs_…, ghu_…, ghr_…", r"gh[opsur]_[A-Za-z0-9]{8,}"),
    ("GitHub", "github_pat_…", r"github_pat_\w+"),
    ("GitLab", "glpat-…, gldt-…, glrt-…", r"gl(?:pat|dt|rt)-[\w\-]+"),
    ("Slack", "xoxb-…, xoxp-…, xapp-…", r"xox[abeprs]-[\w\-]+|xapp-[\w\-]{8,}"),
    ("AWS", "AKIA…, ASIA…", r"(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    ("Google", "AIza…, ya29.…", r"AIza[\w\-]{20,}|ya29\.[\w\-]{8,}"),
    ("NVIDIA", "nvapi-…", r"nvapi-[\w\-]{8,}"),
    ("Databricks", "dapi…", r"dapi[0-9a-f]{32}"),
    ("Vault", "hvs.…, hvb.…", r"hv[sb]\.[\w\-]{8,}"),
    ("Docker", "dckr_pat_…", r"dckr_pat_[\w\-]{8,}"),
    ("npm", "npm_…", r"npm_\w{16,}"),
    ("PyPI", "pypi-…", r"pypi-[\w\-]{16,}"),
    ("JSON web tokens, and Neptune", "eyJ…", r"eyJ[\w+/=.\-]{16,}"),
    ("Azure", "sig=…, AccountKey=…", r"sig=[\w%+/=\-]{16,}|AccountKey=[\w+/=]{16,}"),
    ("private keys", "-----BEGIN … PRIVATE KEY-----, and everything after it", r"-----BEGIN[^-]*PRIVATE KEY-----.*"),
)
"""Token formats: issuer, example and regular expression. No letter or digit may precede a token."""
_FORMS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(pattern for *_, pattern in FORMS)})", re.DOTALL)
_LONGEST_USER = 1200
_USER_OF_URL = re.compile(rf"://(?:[^\s/:]{{0,{_LONGEST_USER}}}+:\S{{0,{_LONGEST_USER}}}|[^\s/]{{0,{_LONGEST_USER}}})@")
"""A password may contain slashes and `@`, which people forget to escape. `_LONGEST_USER` limits both parts."""
_NAMED_HOST = re.compile(r"(?<![^\s\"',;(/])[^\s\"',;(/@]*+@[^\s\"',;(/]*+")
_HOST = re.compile(r"(?!sha\d+:)(?:\d*[\-_]?[A-Za-z\[]|\d+\.\d+\.)")
_LISTED = re.compile(rf"(?<![^\s\"'/=])[A-Za-z_][\w.\-]*+:[^\s\"'/@:]++(?<!\*\*\*)@(?={_HOST.pattern})")
"""Match the start of a host (not in `recall:mean@10` or `image:tag@sha256:…`), and users as in `root:p,ss@db`."""
SHORTEST_RANDOM = 32
"""Minimum length of a hexadecimal number, or of mixed letters and digits, to look generated."""
_RANDOM = re.compile(
    rf"(?<![\w/.+\-])(?:([0-9a-fA-F]{{{SHORTEST_RANDOM},}})|[A-Za-z0-9+]{{{SHORTEST_RANDOM},}}={{0,2}})(?![\w/.+\-])"
)


def hide_forms(text: str) -> str:
    return hide_own(_FORMS.sub(HIDDEN, text))


def hide_random(text: str) -> str:
    def hide(found: re.Match[str]) -> str:
        is_mixed = all(any(map(kind, found[0])) for kind in (str.isupper, str.islower, str.isdigit))
        return HIDDEN if is_mixed or (found[1] and not found[1].isdigit()) else found[0]

    return _RANDOM.sub(hide, text)


def hide_users(text: str) -> str:
    if "@" not in text:
        return text
    return _LISTED.sub(f"{HIDDEN}@", _NAMED_HOST.sub(_hide_named_user, _USER_OF_URL.sub(f"://{HIDDEN}@", text)))


def _hide_named_user(found: re.Match[str]) -> str:
    named, _, host = found[0].rpartition("@")
    user, colon, password = named.partition(":")
    before, sign, user = user.rpartition("=")
    is_user = colon and password and user.lstrip("-_<[{`")[:1].isalpha() and _HOST.match(host)
    return f"{before}{sign}{HIDDEN}@{host}" if is_user else found[0]
