"""Values that stand in a text after their name: `token=…`, `"token": …`, `--token …`, `token: …`."""

import re
from collections.abc import Callable

from gpureport.redaction.forms import HIDDEN, hide_random
from gpureport.redaction.names import is_plainly_secret, is_secret, is_setting, may_be_secret

Judge = Callable[[str, str], bool]
"""Whether a name and its value are a secret."""

_ASSIGNED = re.compile(r"(?<![\w.\-])([\w.\-]++)[\\\"'\])]{0,4}[ \t]{0,4}=[ \t]{0,4}(?![=>])")
_KEYED = re.compile(r"(?<![\w.\-])([\w.\-]++)\\{0,4}[\"'][ \t]{0,4}:[ \t]{0,4}")
_KEY_WORDS = (
    r"access|account|admin|api|auth|aws|client|comet|deploy|encryption|hf|hugging ?face|licen[cs]e|mlflow|neptune"
    r"|openai|private|product|secret|service|session|signing|ssh|storage|subscription|wandb|webhook"
)
"""Words before `key` that make a secret of it, unlike `primary key` and `missing key`."""
_COUNTING_WORDS = r"per|total|seen|max|num|processed"
"""Words before `token` that say that tokens are counted: `cost per token`, `total token`."""
_HEADED = re.compile(
    rf"(?<![\w.\-])((?:(?i:{_KEY_WORDS}|{_COUNTING_WORDS})[ \t]{{1,4}}|[A-Za-z]{{1,20}}/)?[A-Za-z][\w.\-]*+)"
    r"[ \t]{0,4}:[ \t]{0,4}(?![:/])"
)
_RATE = re.compile(rf"(?:{_COUNTING_WORDS})[ \t]|[A-Za-z]+/", re.IGNORECASE)
"""What before a name says that it is counted, or something by it: `seen token`, `FLOPs per token`, `ms/token`."""
_OPTION = re.compile(r"(?<![\w.\-])--([A-Za-z][\w.\-]*+)[ \t]{1,4}(?!-)")
_VALUE = re.compile(r"\\{0,4}\"[^\"]*(?:\"|$)|\\{0,4}'[^']*(?:'|$)|[^\s,;&\"']+")
_AFTER_VALUE = ":.)]}`"
"""What may follow a value without quotes in a sentence."""
_BEFORE_LAST_WORD = re.compile(r"[ \t/]")
_LINE = re.compile(r"[^\r\n\"']+")
_OPENING = re.compile(r"\\*[\"']")
_WHOLE_LINE = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie"))
"""Headers whose value goes on after a blank."""
_SHORTEST = 8
"""Letters from which a value with a digit after `token:` is no word of a sentence."""
_LONGEST_WORD = 64
_LONGEST_COUNT = 9
"""Digits of a whole number after `token:` up to which it counts or numbers one."""
_LONGEST_TOTAL = 18
"""Digits of a whole number up to which it is one of tokens or of operations on one: all of training, and more."""
_BARE = "key"
"""A name that sentences and messages use of anything that is looked up: `missing key: gpu_0`."""
_TELLING_VALUE = "aA0" * 11
"""A value that is a secret after every name that allows one."""

_JSON_NAME = r"(?P<quote>[\"'])(?P<name>[\w.\-/ ]{1,100})(?P=quote)\s*:\s*"
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_JSON = re.compile(rf"{_JSON_NAME}(?P<value>{_STRING}|[^\s,{{}}\[\]\"']+)")
_CONTAINER = re.compile(rf"{_JSON_NAME}(?P<value>\{{(?:{_STRING}|[^{{}}\"'])*\}}|\[(?:{_STRING}|[^\[\]\"'])*\])")


def hide_assigned(text: str, judge: Judge = is_secret) -> str:
    """Return a text without the values of `name=value` that are secrets."""
    return _hide_after(_ASSIGNED, text, judge) if "=" in text else text


def hide_headed(text: str) -> str:
    """Return a text without the values of `name: value` and `--name value` that are secrets.

    A sentence may say `token: word` and `per token: 0.01`: a value after a name that leaves a doubt looks like one only
    with a digit in it, and where it is no number that counts something; after `key` only where the word before tells
    what it opens, as in `API key`, or where it is as a generator writes it.
    """
    if ":" in text:
        text = _hide_after(_HEADED, _hide_after(_KEYED, text, is_secret), _is_headed_secret)
    return _hide_after(_OPTION, text, is_secret) if "--" in text else text


def hide_json(text: str, *, containers: bool = False) -> str:
    """Return JSON, and what looks like it, without the values that may be secrets; lists and objects on request."""
    if ":" not in text:
        return text
    text = _JSON.sub(_hide_json_value, text)
    return _CONTAINER.sub(_hide_json_value, text) if containers else text


def _hide_after(label: re.Pattern[str], text: str, judge: Judge) -> str:
    """Return a text without the secrets after labels; looks on behind a label whose value is none.

    A value is looked at only where its name allows a secret, and stays only where it is short: the time is that of the
    text, however many labels stand in the value of another.
    """
    parts, end, found = [], 0, label.search(text)
    while found:
        place = found.end()
        if judge(found[1], _TELLING_VALUE):
            pattern = _LINE if found[1].lower() in _WHOLE_LINE else _VALUE
            value = pattern.match(text, place)
            opening = _OPENING.match(value.group()) if value else None
            quote = opening.group() if opening else ""
            secret = value.group()[len(quote) :].rstrip("\\\"'" if quote else _AFTER_VALUE) if value else ""
            if value and not secret.startswith(HIDDEN) and judge(found[1], secret):
                parts += [text[end:place], quote, HIDDEN, quote]
                place = end = value.end() if quote else place + len(secret)
        found = label.search(text, place)
    return "".join([*parts, text[end:]]) if parts else text


def _is_headed_secret(name: str, value: str) -> bool:
    last = _BEFORE_LAST_WORD.split(name)[-1]
    before = name.removesuffix(last)
    if not is_secret(last, value):
        return False
    if is_plainly_secret(last) or last.lower() in _WHOLE_LINE:
        return True
    if last.lower() == _BARE:
        return _opens_something(before, value)
    is_word = len(value) <= _LONGEST_WORD and not any(map(str.isdigit, value))
    is_number = _is_figure(value) if _RATE.match(before) else _is_count(value)
    return len(value) >= _SHORTEST and not is_word and not is_number


def _opens_something(before: str, value: str) -> bool:
    """Return whether the value of a key is a secret, by the word before: `API key`, unlike `missing key`."""
    if hide_random(value) != value:
        return True
    if not before or _RATE.match(before):
        return False
    is_long = len(value) >= _SHORTEST or is_plainly_secret(f"{before}{_BARE}")
    return is_long and any(map(str.isdigit, value)) and not _is_count(value)


def _is_figure(value: str) -> bool:
    """Return whether a value is a number of any precision, and none of so many digits that it is rather a secret."""
    try:
        float(value)
    except ValueError:
        return False
    digits = value.replace("_", "")
    return not (digits.isdigit() and len(digits) > _LONGEST_TOTAL)


def _is_count(value: str) -> bool:
    """Return whether a value is a number, and none of so many digits that it is rather a secret."""
    return is_setting(value) and not (value.isdigit() and len(value) > _LONGEST_COUNT)


def _hide_json_value(found: re.Match[str]) -> str:
    value = found["value"]
    before = found.group()[: -len(value)]
    if not may_be_secret(found["name"], value.strip("\"'")):
        return before + (_CONTAINER.sub(_hide_json_value, value) if value[0] in "{[" else value)
    return f'{before}"{HIDDEN}"'
