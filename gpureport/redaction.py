"""Secrets, replaced by `***`: on command lines, in params and tags, and in any text before it is written down.

On a command line, what only might be a secret is replaced too: a hidden value costs a reader less than a shown
password. In params and tags, words of machine learning (`pad_token`, `key_padding`) name settings.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import lru_cache

HIDDEN = "***"

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ANYWHERE = re.compile(r"passw|passphrase|secret|credential|apikey|accesskey|privatekey|authoriz", re.IGNORECASE)
_ENDINGS = ("token", "key", "pwd", "auth")
_WORDS = {"pass", "cred", "creds", "cookie", "signature", "sig", "sas", "dsn", "jwt", "bearer", "otp", "pat"}
_SHORTEST_CREDENTIAL = 16
"""Letters from which a word after `Bearer` or `Basic` is no word of a sentence."""
_PLACEHOLDER = "VALUE"
"""What `KEY=VALUE` of our own messages and help stands for."""
_SETTING = re.compile(r"[-+]?\d{0,9}\.?\d{0,9}(?:e[-+]?\d{1,2})?|true|false", re.IGNORECASE)
_CHECKSUM_WORDS = {"commit", "revision", "sha", "hash", "checksum", "ref", "id", "uuid", "digest", "md5", "fingerprint"}
_MODEL_WORDS = {
    *("attention", "batch", "bos", "bucket", "cls", "count", "dim", "dropout", "embedding", "eos", "feature", "group"),
    *("head", "heads", "image", "input", "label", "length", "mask", "max", "metric", "min", "mix", "mixing", "monitor"),
    *("num", "output", "pad", "padding", "per", "query", "sep", "size", "sort", "special", "stop", "target", "text"),
    *("train", "type", "unk", "value", "vocab"),
}
"""Words beside `token` or `key` that make a param a setting of a model, not a secret."""

_OPTION = re.compile(r"--?[A-Za-z][\w.\-]*|-")
_ASSIGNMENT = re.compile(r"([-+~]*[A-Za-z_][\w.\-/]*)(=|:[ \t]*(?!//))(.*)", re.DOTALL)
_INNER = re.compile(r"([A-Za-z_][\w.\-]{0,100})(=)(\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)")
_JSON_NAME = r"(?P<quote>[\"'])(?P<name>[\w.\- ]{1,100})(?P=quote)\s*:\s*"
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_JSON = re.compile(rf"{_JSON_NAME}(?P<value>{_STRING}|[^\s,{{}}\[\]\"']+)")
_JSON_CONTAINER = re.compile(rf"{_JSON_NAME}(?P<value>\{{(?:{_STRING}|[^{{}}\"'])*\}}|\[(?:{_STRING}|[^\[\]\"'])*\])")
_SHELL_WORD = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|[^\s\"'\\;&|()<>])+|[\"'\\]", re.DOTALL)
_URL_USER = re.compile(r"://(?:[^\s/:]{1,200}:\S{0,1000}|[^\s/]{0,1000})@")
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)\S+", re.IGNORECASE)
_FORMS = re.compile(
    r"hf_[A-Za-z0-9]{8,}|sk-[\w\-]{8,}|gh[opsur]_[A-Za-z0-9]{8,}|github_pat_\w+|glpat-[\w\-]+|xox[abprs]-[\w\-]+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w\-]{20,}|eyJ[\w+/=.\-]{16,}|npm_\w{16,}|pypi-[\w\-]{16,}"
    r"|sig=[\w%+/=\-]{16,}|AccountKey=[\w+/=]{16,}|-----BEGIN[^-]*PRIVATE KEY-----.*",
    re.DOTALL,
)
"""How tokens begin: Hugging Face, OpenAI, GitHub, GitLab, Slack, AWS, Google, JSON web tokens and Neptune's, npm, PyPI,
signatures and keys of Azure, PEM.
"""
_RANDOM = re.compile(r"(?<![\w/.+\-])(?:[0-9a-fA-F]{32,}|[A-Za-z0-9+]{32,}={0,2})(?![\w/.+\-])")


def hide_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with `***` for what is a secret, or may be one, by its name or its form."""
    shown: list[str] = []
    option = ""
    for word in command:
        # a secret may begin with a hyphen, as an option of one letter does
        looks_secret = len(word) > len("-x") and not word.startswith("--") and _is_secret(option, word)
        is_value = bool(option) and (looks_secret or not _OPTION.fullmatch(word))
        if (is_value and _is_secret(option, word)) or (is_value and option in {"-u", "--user"} and ":" in word):
            shown.append(HIDDEN)
        else:
            shown.append(_hide_in_word(word, option if is_value else ""))
        option = word if _OPTION.fullmatch(word) else ""
    return tuple(shown)


def hide_secret_value(name: str, value: str) -> str:
    """Return the value of a setting, `***` where it is a secret, or may be one."""
    return HIDDEN if _is_secret(name, value) else _hide_in_word(value, name)


@lru_cache(maxsize=8192)
def redact_text(text: str) -> str:
    """Return any text without users of URLs, values of secret keys, and tokens that show what they are.

    Checksums and ids, which only look random, stay.
    """
    text = _URL_USER.sub(f"://{HIDDEN}@", _SCHEME.sub(_hide_scheme, text))
    text = _JSON.sub(_hide_json_value, text)
    return _FORMS.sub(HIDDEN, _INNER.sub(lambda match: _hide_labelled(*match.groups()), text))


def redact_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags without the values that are secrets by their name or their form."""
    return tuple((redact_text(name), _redact_label(name, value)) for name, value in pairs)


@lru_cache(maxsize=8192)
def _redact_label(name: str, value: str) -> str:
    if _names_secret(name, value):
        return HIDDEN
    text = redact_text(value)
    return text if _CHECKSUM_WORDS & set(_name_parts(name)) else _RANDOM.sub(_hide_random, text)


def _names_secret(name: str, value: str) -> bool:
    """Return whether a param is a secret by its name, words of machine learning aside."""
    parts = _name_parts(name)
    is_plain = _ANYWHERE.search("".join(parts)) is None and not _WORDS & set(parts)
    return not (is_plain and _MODEL_WORDS & set(parts)) and _is_secret(name, value)


def _hide_labelled(name: str, sign: str, value: str) -> str:
    return f"{name}{sign}{HIDDEN if _names_secret(name, value) else value}"


def _hide_scheme(match: re.Match[str]) -> str:
    """Return a header without its credential; `basic training` stays."""
    credential = match.group().split()[-1]
    is_word = credential.isalpha() and len(credential) < _SHORTEST_CREDENTIAL
    return match.group() if is_word else f"{match[1]}{match[2]}{HIDDEN}"


def _name_parts(name: str) -> list[str]:
    return [part.lower() for part in _PARTS.findall(name)]


def _is_secret(name: str, value: str) -> bool:
    """Return whether a name says that its value is a secret; `max_tokens=2048` and `key_dim=64` are settings."""
    parts = _name_parts(name)
    if not parts or value in {"", _PLACEHOLDER}:
        return False
    if _ANYWHERE.search("".join(parts)):
        return True
    telling = [place for place, part in enumerate(parts) if part in _WORDS or part.rstrip("s").endswith(_ENDINGS)]
    if not telling:
        return False
    is_last = telling[-1] == len(parts) - 1 and not parts[-1].endswith("s")
    return is_last or _SETTING.fullmatch(value) is None


def _hide_in_word(word: str, name: str = "") -> str:
    """Return a word of a command line, which may be a whole script, without its secrets."""
    assigned = _ASSIGNMENT.fullmatch(word)
    if assigned:
        own, sign, value = assigned.groups()
        if _is_secret(own, value):
            return f"{own}{sign}{HIDDEN}"
        name = own
    word = _SCHEME.sub(rf"\1\2{HIDDEN}", word)
    word = _URL_USER.sub(f"://{HIDDEN}@", word)
    word = _JSON_CONTAINER.sub(_hide_json_value, _JSON.sub(_hide_json_value, word))
    if re.search(r"\s", word):
        word = _hide_in_script(word)
    word = _INNER.sub(lambda found: _hide_assigned(*found.groups()), word)
    word = _FORMS.sub(HIDDEN, word)
    return word if _CHECKSUM_WORDS & set(_name_parts(name)) else _RANDOM.sub(_hide_random, word)


def _hide_in_script(script: str) -> str:
    """Return a script without the secrets of the commands in it; its blanks stay."""
    pieces = list(_SHELL_WORD.finditer(script))
    shown = hide_secrets([_unquote(piece.group()) for piece in pieces])
    text, end = "", 0
    for piece, new in zip(pieces, shown, strict=True):
        old = piece.group()
        text += script[end : piece.start()] + (old if new == _unquote(old) else new)
        end = piece.end()
    return text + script[end:]


def _unquote(piece: str) -> str:
    """Return a word as the shell understands it; as it is where its quotes do not match."""
    try:
        return "".join(shlex.split(piece))
    except ValueError:
        return piece


def _hide_assigned(name: str, sign: str, value: str) -> str:
    return f"{name}{sign}{HIDDEN if _is_secret(name, value) else value}"


def _hide_json_value(found: re.Match[str]) -> str:
    value = found["value"]
    before = found.group()[: -len(value)]
    if not _is_secret(found["name"], value.strip("\"'")):
        return before + (_JSON_CONTAINER.sub(_hide_json_value, value) if value[0] in "{[" else value)
    return f'{before}"{HIDDEN}"'


def _hide_random(found: re.Match[str]) -> str:
    """Return `***` for hexadecimal digits or a mixture of letters and digits as a generator writes them."""
    text = found.group()
    kinds = (str.isupper, str.islower, str.isdigit)
    is_hex = re.fullmatch(r"[0-9a-fA-F]+", text) is not None and not text.isdigit()
    return HIDDEN if is_hex or all(any(map(kind, text)) for kind in kinds) else text
