"""Reads hand-written TOML: settings, maps and steps. Refuses files that are too large, deep, or slow to read."""

import re
import tomllib
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpureport.errors import SettingsError
from gpureport.regular_files import UnsafeFileError, code_system_error, read_small_text

_piped: ContextVar[dict[Path, "TomlText"] | None] = ContextVar("piped", default=None)
"""Content of pipes, which can be read only once, or None if nothing is kept."""

_DEEPEST = 50
"""Maximum depth of nested tables and lists, since Python prints and compares values recursively."""
_MOST_KEY_WORK = 20_000_000
"""Maximum sum of squared dot counts per line, excluding strings, to limit the time for dotted keys."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_WHOLE = 2**63
"""Whole numbers in TOML must be below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlText:
    text: str = ""
    content: dict[str, Any] = field(default_factory=dict)


def keep_piped() -> None:
    """Forget earlier content of pipes, and keep new content, since commands read settings twice."""
    _piped.set({})


def read_toml(path: Path, hint: str) -> TomlText:
    """Return a file's content. A pipe can be read again if `keep_piped` kept its content.

    Args:
        path: the file.
        hint: what to do if the file is not TOML.

    Raises:
        SettingsError: if the file is unreadable, is not TOML, contains too large a number, or is nested too deeply.
    """
    kept = _piped.get()
    if kept and path in kept:
        return kept[path]
    try:
        text = read_small_text(path)
        read = TomlText(text=text, content=parse_toml(text))
        if kept is not None and not path.is_file():
            kept[path] = read
        return read
    except OSError as error:
        advice = error.hint if isinstance(error, UnsafeFileError) else "check the path"
        what = error.strerror or "cannot be read"
        code = code_system_error(error, "cannot_read")
        raise SettingsError(str(path), what, advice, code=code) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(str(path), f"not TOML ({error})", hint, code="not_toml") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML document.

    Raises:
        ValueError: if the text is not TOML, or is refused as in `read_toml`.
        RecursionError: if the text is nested too deeply.
    """
    if sum(line.count(".") ** 2 for line in _STRING.sub("", text).splitlines()) > _MOST_KEY_WORK:
        msg = "a key with too many parts"
        raise ValueError(msg)
    content = tomllib.loads(text)
    _check_values(content)
    return content


def _check_values(content: dict[str, Any]) -> None:
    level: list[Any] = [content]
    for _ in range(_DEEPEST):
        if any(isinstance(value, int) and not -_WHOLE <= value < _WHOLE for value in level):
            msg = "a whole number with more than 64 bits"
            raise ValueError(msg)
        inner = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        ]
        level = [value for values in inner for value in values]
        if not level:
            return
    msg = f"nested more than {_DEEPEST} levels deep"
    raise ValueError(msg)
