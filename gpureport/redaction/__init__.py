"""Replaces secrets with `***` in command lines, params, tags, columns, and any other text before it is written.

`signs` lists the signs of a secret. Add new forms to `FORMS`, and new words to the tables above it;
`docs/reference/secrets.md` is generated from both. In text, values follow names: `token=…`, `"token": …`, `--token …`,
`token: …`. Every pattern matches in linear time.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any

from gpureport.redaction import signs
from gpureport.redaction.signs import (
    HIDDEN,
    OwnSecrets,
    get_own_secrets,
    hide_forms,
    hide_random,
    hide_users,
    is_secret,
    may_be_secret,
    use_own_secrets,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HIDDEN", "OwnSecrets", "get_own_secrets", "hide_secret_value", "hide_secrets", "redact_column"]
__all__ += ["redact_extra_columns", "redact_pairs", "redact_start", "redact_text", "redact_value", "use_own_secrets"]

_ASSIGNED = re.compile(r"(?<![\w.\-])([\w.\-]++)[\\\"'\])]{0,4}[ \t]{0,4}=[ \t]{0,4}(?![=>])")
_KEYED = re.compile(r"(?<![\w.\-])([\w.\-]++)\\{0,4}[\"']\s*+:\s*+")
_OPENS = (
    "access|account|admin|api|auth|aws|client|comet|deploy|encryption|hf|hugging ?face|licen[cs]e|mlflow|neptune|openai"
    "|private|product|secret|service|session|signing|ssh|storage|subscription|wandb|webhook"
)
_COUNTS = "per|total|seen|max|num|processed"
"""Words before `key` that mark a secret, and words before `token` that mark a count."""
_HEADED = re.compile(
    rf"(?<![\w.\-])((?:(?i:{_OPENS}|{_COUNTS})[ \t]{{1,4}}|[A-Za-z]{{1,20}}/)?[A-Za-z][\w.\-]*+)"
    r"[ \t]{0,4}:[ \t]{0,4}(?![:/])"
)
_RATE = re.compile(rf"(?:{_COUNTS})[ \t]|[A-Za-z]+/", re.IGNORECASE)
"""Matches words that turn a name into a count or rate, as in `seen token`, `FLOPs per token` or `ms/token`."""
_SCHEMED = re.compile(r"\b(Bearer|Basic)\s+", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_OPTIONED = re.compile(r"(?<![\w.\-])--([A-Za-z][\w.\-]*+)[ \t]{1,4}(?!-)")
_QUOTED = r"\"(?:[^\"\\]|\\.?)*+(?:\"|$)|'(?:[^'\\]|\\.?)*+(?:'|$)|\\{1,4}\"[^\"]*(?:\"|$)|\\{1,4}'[^']*(?:'|$)"
_VALUE = re.compile(rf"{_QUOTED}|[^\s,;&\"']+", re.DOTALL)
_SCALAR = re.compile(rf"{_QUOTED}|[^\s,{{}}\[\]\"']+", re.DOTALL)
_ANY = re.compile(rf"\{{(?:{_QUOTED}|[^{{}}\"'])*+\}}|\[(?:{_QUOTED}|[^\[\]\"'])*+\]|{_VALUE.pattern}", re.DOTALL)
"""Match values in text, in JSON, and in JSON including lists and objects."""
_LINE = re.compile(rf"{_QUOTED}|[^\r\n\"']+", re.DOTALL)
_OPENING = re.compile(r"\\*[\"']|(?=[{\[])")
_AFTER_VALUE = ":.)]}`"
"""Characters that may follow an unquoted value in a sentence."""
_WHOLE_LINE = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie"))
"""Headers whose value may contain spaces."""
_SHORTEST, _LONGEST_WORD = 8, 64
_COUNT = re.compile(r"[-+]?\d{0,9}(?:\.\d{0,9})?(?:e[-+]?\d{1,2})?|true|false", re.IGNORECASE)
_FIGURE = re.compile(r"[-+]?[\d_]{0,18}(?:\.\d*)?(?:e[-+]?\d+)?|inf|nan", re.IGNORECASE)
"""After names like `token:`, a value is harmless if it has fewer than `_SHORTEST` characters, or up to `_LONGEST_WORD`
and no digit. `_COUNT` matches counts and indices, and `_FIGURE` numbers after `per token:`."""
_TELLING_VALUE = "aA0" * 11
"""A value that is treated as secret after any name that may precede a secret."""
_OPTION = re.compile(r"--?[A-Za-z][\w.\-]*|-")
_ASSIGNMENT = re.compile(r"([-+~]*[A-Za-z_][\w.\-/]*)(=|:[ \t]*(?!//))(.*)", re.DOTALL)
_SHELL_WORD = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|[^\s\"'\\;&|()<>]++)++|[\"'\\]", re.DOTALL)
_USER_OPTIONS = {"-u", "--user"}
_NUMBER = re.compile(r"[-+\d.eE %]{1,31}")
_SHOWN, _LOOKED_BEYOND = 200, 2000
"""Maximum length of quoted text in an error, and how many more characters are searched for a password."""
_LONGEST_KEPT = 1000
"""Maximum length of a cached text. Most texts recur, but a log line may have a million characters."""
EXTRA = "extra_"
"""Prefix of columns that contain a log's other fields as text."""


def redact_text(text: str) -> str:
    """Hide users in URLs, values of secret keys, and recognisable tokens in text.

    Checksums and ids, which only look random, are kept.
    """
    redact = _redact if len(text) <= _LONGEST_KEPT else _redact.__wrapped__
    return redact(text, signs.version)


@lru_cache(maxsize=8192)
def _redact(text: str, _version: int) -> str:
    text = hide_users(_hide_after(_SCHEMED, text, _is_credential, _WORD))
    if ":" in text:
        text = _hide_after(_KEYED, _hide_after(_KEYED, text, may_be_secret, _SCALAR), is_secret, _ANY)
    text = _hide_after(_ASSIGNED, text, is_secret) if "=" in text else text
    text = _hide_after(_HEADED, text, _is_headed_secret) if ":" in text else text
    return hide_forms(_hide_after(_OPTIONED, text, is_secret) if "--" in text else text)


def redact_start(text: str, longest: int = _SHOWN) -> str:
    """Return the start of a text, redacted before the cut, since half a secret would go unrecognised."""
    return redact_text(text[: longest + _LOOKED_BEYOND])[:longest]


def redact_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((redact_text(name), redact_value(name, value)) for name, value in pairs)


def redact_value(name: str, value: str) -> str:
    """Return a param's or tag's value without secrets, or `***` if its name implies one."""
    if is_secret(name, value):
        return HIDDEN
    if _NUMBER.fullmatch(value):
        return signs.hide_own(value)
    text = redact_text(value)
    return text if signs.read_name(name)[2] else hide_random(text)


def _hide_after(
    label: re.Pattern[str], text: str, judge: Callable[[str, str], bool], values: re.Pattern[str] = _VALUE
) -> str:
    """Hide secrets after labels in a text. If a label's value is harmless, continue at that value.

    A value is examined only after a name that may precede a secret, so the time is linear in the length of the text.
    """
    parts, end, found = [], 0, label.search(text)
    while found:
        place = found.end()
        pattern = _LINE if label is not _KEYED and found[1].lower() in _WHOLE_LINE else values
        if judge(found[1], _TELLING_VALUE) and (value := pattern.match(text, place)):
            opening = _OPENING.match(value[0])
            quote = opening[0] if opening else ""
            secret = value[0][len(quote) :].rstrip("\\\"'" if opening else _AFTER_VALUE)
            if not secret.startswith(HIDDEN) and judge(found[1], secret):
                shown = quote or ('"' if label is _KEYED else "")
                parts += [text[end:place], shown, HIDDEN, shown]
                place = end = value.end() if opening else place + len(secret)
        found = label.search(text, place)
    return "".join([*parts, text[end:]]) if parts else text


def _is_credential(_: str, word: str) -> bool:
    return len(word) >= len("0123456789abcdef") or not word.isalpha()


def _is_headed_secret(name: str, value: str) -> bool:
    """Return whether the value after `name:` is a secret.

    Sentences may contain `token: word` or `per token: 0.01`, so a value after an ambiguous name is a secret only if it
    has a digit and is not a count. The word before `key` must name the kind of key, as in `API key`, or the value must
    look generated.
    """
    last = re.split(r"[ \t/]", name)[-1]
    before = name.removesuffix(last)
    if not is_secret(last, value):
        return False
    if signs.read_name(last)[0] == signs.PLAIN or last.lower() in _WHOLE_LINE:
        return True
    has_digit, is_rate = any(map(str.isdigit, value)), _RATE.match(before)
    if last.lower() == "key":
        # sentences and messages use `key` for any lookup, as in `missing key: gpu_0`
        is_long = len(value) >= _SHORTEST or signs.read_name(name)[0] == signs.PLAIN
        opens = bool(before) and not is_rate and is_long
        return hide_random(value) != value or (opens and has_digit and not _COUNT.fullmatch(value))
    is_word = len(value) <= _LONGEST_WORD and not has_digit
    return len(value) >= _SHORTEST and not is_word and not (_FIGURE if is_rate else _COUNT).fullmatch(value)


def hide_secrets(command: Sequence[str]) -> tuple[str, ...]:
    shown: list[str] = []
    option = ""
    for word in command:
        is_secret_word = may_be_secret(option, word)
        # a secret, like a one-letter option, may begin with a hyphen
        is_hyphened = is_secret_word and len(word) > len("-x") and not word.startswith("--")
        is_value = bool(option) and (is_hyphened or not _OPTION.fullmatch(word))
        if is_value and (is_secret_word or (option in _USER_OPTIONS and ":" in word)):
            shown.append(HIDDEN)
        else:
            shown.append(_hide_in_word(word, option if is_value else ""))
        option = word if _OPTION.fullmatch(word) else ""
    return tuple(shown)


def hide_secret_value(name: str, value: str) -> str:
    return HIDDEN if may_be_secret(name, value) else _hide_in_word(value, name)


def _hide_in_word(word: str, name: str = "") -> str:
    if assigned := _ASSIGNMENT.fullmatch(word):
        name, sign, value = assigned.groups()
        if may_be_secret(name, value):
            return f"{name}{sign}{HIDDEN}"
    word = hide_users(_hide_after(_SCHEMED, word, lambda _, value: bool(value), _WORD))
    word = _hide_after(_KEYED, word, may_be_secret, _ANY)
    if re.search(r"\s", word):
        # a script; its white space is kept
        pieces = list(_SHELL_WORD.finditer(word))
        words = [_unquote(piece[0]) for piece in pieces]
        parts, end = [], 0
        for piece, old, new in zip(pieces, words, hide_secrets(words), strict=True):
            parts += [word[end : piece.start()], piece[0] if new == old else new]
            end = piece.end()
        word = "".join([*parts, word[end:]])
    word = hide_forms(_hide_after(_ASSIGNED, word, may_be_secret))
    return word if signs.read_name(name)[2] else hide_random(word)


def _unquote(piece: str) -> str:
    try:
        return "".join(shlex.split(piece)) if re.search(r"[\"'\\]", piece) else piece
    except ValueError:
        return piece


def redact_extra_columns(table: "pa.Table") -> "pa.Table":
    for name in table.column_names:
        if name.startswith(EXTRA):
            table = _redact_texts(table, name, partial(redact_value, name.removeprefix(EXTRA)))
    return table


def redact_column(table: "pa.Table", name: str) -> "pa.Table":
    """Return a table without secrets in one column. Appended numbers keep different texts distinct."""
    return _redact_texts(table, name, redact_text, distinct=True)


def _redact_texts(table: "pa.Table", name: str, redact: Callable[[str], str], *, distinct: bool = False) -> "pa.Table":
    import pyarrow as pa

    place = table.schema.get_field_index(name)
    field, column = table.schema.field(place), table.column(place)
    if not (pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)):
        return table
    unique: list[Any] = column.unique().to_pylist()
    shown = {text: redact(text) for text in unique if text is not None}
    taken = {text for text in shown if shown[text] == text}
    if len(taken) == len(shown):
        return table
    for text in sorted(shown.keys() - taken) if distinct else ():
        numbered = (f"{shown[text]} ({number})" if number > 1 else shown[text] for number in count(1))
        shown[text] = next(each for each in numbered if each not in taken)
        taken.add(shown[text])
    replaced = pa.array([shown.get(text, text) for text in column.to_pylist()], pa.string())
    is_dictionary = pa.types.is_dictionary(field.type)
    return table.set_column(place, field, replaced.dictionary_encode() if is_dictionary else replaced)
