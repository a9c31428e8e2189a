"""Command lines, and the scripts in them, without their secrets and without what may be one."""

import re
import shlex
from collections.abc import Sequence

from gpureport.redaction.forms import HIDDEN, hide_forms, hide_random, hide_schemes, hide_users
from gpureport.redaction.labelled_values import hide_assigned, hide_json
from gpureport.redaction.names import may_be_secret, may_look_random

_OPTION = re.compile(r"--?[A-Za-z][\w.\-]*|-")
_ASSIGNMENT = re.compile(r"([-+~]*[A-Za-z_][\w.\-/]*)(=|:[ \t]*(?!//))(.*)", re.DOTALL)
_SHELL_WORD = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|[^\s\"'\\;&|()<>]++)++|[\"'\\]", re.DOTALL)
_BLANK = re.compile(r"\s")
_USER_OPTIONS = {"-u", "--user"}


def hide_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with `***` for what is a secret, or may be one, by its name or its form."""
    shown: list[str] = []
    option = ""
    for word in command:
        # a secret may begin with a hyphen, as an option of one letter does
        looks_secret = len(word) > len("-x") and not word.startswith("--") and may_be_secret(option, word)
        is_value = bool(option) and (looks_secret or not _OPTION.fullmatch(word))
        if (is_value and may_be_secret(option, word)) or (is_value and option in _USER_OPTIONS and ":" in word):
            shown.append(HIDDEN)
        else:
            shown.append(_hide_in_word(word, option if is_value else ""))
        option = word if _OPTION.fullmatch(word) else ""
    return tuple(shown)


def hide_secret_value(name: str, value: str) -> str:
    """Return the value of a setting, `***` where it is a secret, or may be one."""
    return HIDDEN if may_be_secret(name, value) else _hide_in_word(value, name)


def _hide_in_word(word: str, name: str = "") -> str:
    """Return a word of a command line, which may be a whole script, without its secrets."""
    assigned = _ASSIGNMENT.fullmatch(word)
    if assigned:
        own, sign, value = assigned.groups()
        if may_be_secret(own, value):
            return f"{own}{sign}{HIDDEN}"
        name = own
    word = hide_json(hide_users(hide_schemes(word, keep_words=False)), containers=True)
    if _BLANK.search(word):
        word = _hide_in_script(word)
    word = hide_forms(hide_assigned(word, may_be_secret))
    return word if may_look_random(name) else hide_random(word)


def _hide_in_script(script: str) -> str:
    """Return a script without the secrets of the commands in it; its blanks stay."""
    pieces = list(_SHELL_WORD.finditer(script))
    words = [_unquote(piece.group()) for piece in pieces]
    parts, end = [], 0
    for piece, word, new in zip(pieces, words, hide_secrets(words), strict=True):
        parts += [script[end : piece.start()], piece.group() if new == word else new]
        end = piece.end()
    return "".join([*parts, script[end:]])


def _unquote(piece: str) -> str:
    """Return a word as the shell understands it; as it is where its quotes do not match."""
    if not any(letter in piece for letter in "\"'\\"):
        return piece
    try:
        return "".join(shlex.split(piece))
    except ValueError:
        return piece
