"""Reads `gpureport.toml`. Rules, policies and price lists validate their own sections; `[secrets]` is read here.

Add new sections to `SECTIONS`. `toml_files` reads all hand-written TOML files.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpureport.errors import SettingsError
from gpureport.parsing import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction import OwnSecrets
from gpureport.redaction.signs import STAR
from gpureport.settings.toml_files import read_toml

FILE, SECRETS = "gpureport.toml", "secrets"
SECTIONS = ("acknowledge", "baseline", "carbon", "policy", "prices", "report", "rules", "secrets", "training")
"""Known sections. Other sections are refused, since a mistyped `[[polcy]]` would otherwise be ignored."""
_FEWEST_IN_NAME, _FEWEST_IN_PATTERN = 2, 4
"""Minimum number of characters other than `*`, so that no pattern hides every word."""
_NO_LETTERS = frozenset("\\[](){}^$|?\"'<>,;& \t\r\n")
"""Characters that end a word in a text, or that occur only in regular expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table in the settings file. Methods raise SettingsError for a value of the wrong type.

    Attributes:
        file: the file, for messages.
        name: the dotted name of the table.
        values: its keys and values.
        lines: the line of each key, counted from 1.
    """

    file: str
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def number(self, key: str, default: float | None = None) -> float | None:
        value: Any = self.values.get(key, default)
        if not _is_kind(value, int | float):
            what = f"{key} must be a number, not {value!r}"
            raise self.wrong(key, what, "write it without quotes", code="not_a_number")
        return value  # type: ignore[no-any-return]  # checked above

    def amount(self, key: str) -> float | None:
        """Return a non-negative number, or None if the key is absent."""
        value = self.number(key)
        if value is not None and not 0 <= value < float("inf"):
            what = f"{key} must be 0 or more, not {value:g}"
            raise self.wrong(key, what, "write 0 or a positive number", code="below_zero")
        return value

    def text(self, key: str) -> str:
        value: Any = self.values.get(key)
        if not _is_kind(value, str) or (value is not None and not value.strip()):
            raise self.wrong(key, f"{key} must be a string, not {value!r}", "write it in quotes", code="not_a_text")
        return value or ""

    def switch(self, key: str) -> bool | None:
        value: Any = self.values.get(key)
        if not _is_kind(value, bool):
            what = f"{key} must be true or false, not {value!r}"
            raise self.wrong(key, what, "write it without quotes", code="not_true_or_false")
        return value  # type: ignore[no-any-return]  # as above

    def at(self, key: str) -> str:
        """Return a key's location, such as `gpureport.toml:4`, or only the file if lines are unknown."""
        return f"{self.file}:{self.lines.get(key, 1)}" if self.lines else self.file

    def only(self, known: set[str]) -> None:
        for key in self.values.keys() - known:
            hint = f"known keys are {', '.join(sorted(known))}"
            raise self.wrong(key, f"unknown key {key!r} in [{self.name}]", hint, code="unknown_key")

    def wrong(self, key: str, what: str, hint: str, *, code: str = "wrong_setting") -> SettingsError:
        return SettingsError(self.at(key), what, hint, code=code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    file: str = FILE
    content: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    def section(self, name: str) -> Section:
        values: Any = self.content
        for part in name.split("."):
            values = values.get(part, {})
            if not isinstance(values, dict):
                raise SettingsError(self.file, f"{name} must be a table", f"write [{name}]", code="not_a_table")
        return self._place_lines(name, values)

    def unknown_sections(self) -> list[str]:
        return [name for name in self.content if name not in SECTIONS]

    def refuse_section(self, name: str) -> SettingsError:
        opened = (line.partition("=")[0].strip("[ \t").replace("]", ".") for line in self.text.splitlines())
        found = (number for number, line in enumerate(opened, 1) if line.partition(".")[0].strip(" \"'") == name)
        # use line 1 if the section is written in another form
        where = f"{self.file}:{next(found, 1)}" if self.text else self.file
        hint = f"known sections are {', '.join(SECTIONS)}"
        return SettingsError(where, f"unknown section [{name}]", hint, code="unknown_section")

    def sections(self, name: str) -> tuple[Section, ...]:
        """Return the tables of an array (`[[name]]`). Raises SettingsError if it is not an array."""
        parent, _, last = name.rpartition(".")
        entries = (self.section(parent).values if parent else self.content).get(last, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            hint = f"write [[{name}]]"
            raise SettingsError(self.file, f"{name} must be an array of tables", hint, code="not_a_table")
        return tuple(self._place_lines(name, entry, place) for place, entry in enumerate(entries))

    def _place_lines(self, name: str, values: dict[str, Any], place: int = 0) -> Section:
        """Return a table, or the one at index `place` in an array of tables, with the line of each key."""
        tables = _index_lines(self.text).get(name, [])
        lines = tables[place] if place < len(tables) else {}
        return Section(file=self.file, name=name, values=values, lines=lines)


def read_settings(path: Path | None) -> Settings:
    """Return the settings in a file, or in gpureport.toml in the current folder, if any.

    Raises:
        SettingsError: if a named file is missing, or the file is not TOML or contains an unknown section.
    """
    return check_sections(read_unchecked(path))


def read_unchecked(path: Path | None) -> Settings:
    """Return settings like `read_settings`, but without checking section names.

    Raises:
        SettingsError: if a named file is missing, or the file is not TOML.
    """
    if path is None and not Path(FILE).is_file():
        return Settings()
    chosen = path or Path(FILE)
    read = read_toml(chosen, "correct it")
    return Settings(file=str(chosen), content=read.content, text=read.text)


def check_sections(settings: Settings) -> Settings:
    """Return the settings unchanged.

    Raises:
        SettingsError: if the settings contain an unknown section.
    """
    for name in settings.unknown_sections():
        raise settings.refuse_section(name)
    return settings


@lru_cache(1)
def _index_lines(text: str) -> dict[str, list[dict[str, int]]]:
    found: dict[str, list[dict[str, int]]] = {}
    current: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            current = {}
            found.setdefault(stripped.partition("#")[0].strip("[] "), []).append(current)
        elif "=" in stripped:
            current[stripped.partition("=")[0].strip().strip('"')] = number
    return found


def _is_kind(value: Any, kind: Any) -> bool:
    if value is None:
        return True
    import msgspec

    try:
        # Python code may pass NumPy numbers
        msgspec.convert(value.item() if hasattr(value, "item") else value, kind)
    except msgspec.ValidationError:
        return False
    return True


# [secrets]


def read_own_secrets(settings: Settings) -> OwnSecrets:
    """Return the names and patterns in `[secrets]`, or none if there is no such section.

    Raises:
        SettingsError: if a key is unknown, a value is not a list of names or patterns, or `[secrets]` is misspelt.
    """
    if SECRETS not in settings.content and (unknown := settings.unknown_sections()):
        from difflib import get_close_matches

        for name in unknown:
            if get_close_matches(name.lower(), [SECRETS]):
                raise settings.refuse_section(name)
    section = settings.section(SECRETS)
    section.only({"names", "patterns"})
    return OwnSecrets(
        names=tuple(_read_texts(section, "names", _FEWEST_IN_NAME)),
        patterns=tuple(_read_texts(section, "patterns", _FEWEST_IN_PATTERN)),
    )


def _read_texts(section: Section, key: str, fewest: int) -> list[str]:
    texts: Any = section.values.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise section.wrong(key, f"{key} must be a list of strings", f'write {key} = ["…", "…"]', code="not_a_list")
    if len(texts) > MOST_SECRET_PATTERNS:
        what = f"{key} has {len(texts)} strings, but at most {MOST_SECRET_PATTERNS} are allowed"
        raise section.wrong(key, what, "combine several into one with *", code="too_many_values")
    for place, text in enumerate(texts, 1):
        if reason := _find_flaw(text, fewest):
            # the text itself may be a secret
            what = f"string {place} in {key} cannot be used: {reason}"
            raise section.wrong(key, what, "use plain characters, and * for any others", code="not_a_pattern")
    return texts


def _find_flaw(text: str, fewest: int) -> str:
    """Return what is wrong with a name or pattern, or an empty string."""
    if len(text) > LONGEST_SECRET_PATTERN:
        return f"it is longer than {LONGEST_SECRET_PATTERN} characters"
    if not _NO_LETTERS.isdisjoint(text):
        return "it contains a space, a quotation mark, or a regular-expression character"
    if len(text.replace(STAR, "")) < fewest:
        return f"it needs at least {fewest} characters other than *"
    return ""
