"""What `[secrets]` of the settings adds to the list of secrets."""

from typing import Any

from gpureport.parsing import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction import OwnSecrets
from gpureport.redaction.signs import STAR
from gpureport.settings.settings_file import Section, Settings

SECTION = "secrets"
_FEWEST_IN_NAME, _FEWEST_IN_PATTERN = 2, 4
"""Letters besides `*`, so that no pattern hides every word."""
_NO_LETTERS = frozenset("\\[](){}^$|?\"'<>,;& \t\r\n")
"""Signs that end a word of a text, or that only a regular expression has."""


def read_own_secrets(settings: Settings) -> OwnSecrets:
    """Return the names and patterns of `[secrets]`; none without the section.

    Raises:
        SettingsError: when a key is unknown, its value is no list of names or patterns, or another section's
            name is close to this: its secrets would silently be shown.
    """
    if SECTION not in settings.content and (unknown := settings.unknown_sections()):
        from difflib import get_close_matches

        for name in unknown:
            if get_close_matches(name.lower(), [SECTION]):
                raise settings.refuse_section(name)
    section = settings.section(SECTION)
    section.only({"names", "patterns"})
    return OwnSecrets(
        names=tuple(_read_texts(section, "names", _FEWEST_IN_NAME)),
        patterns=tuple(_read_texts(section, "patterns", _FEWEST_IN_PATTERN)),
    )


def _read_texts(section: Section, key: str, fewest: int) -> list[str]:
    texts: Any = section.values.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise section.wrong(key, f"{key} must be a list of texts", f'write it as {key} = ["…", "…"]', code="not_a_list")
    if len(texts) > MOST_SECRET_PATTERNS:
        what = f"{key} holds {len(texts)} texts, at most {MOST_SECRET_PATTERNS} are taken"
        raise section.wrong(key, what, "let one with * stand for several", code="too_many_values")
    for place, text in enumerate(texts, 1):
        if reason := _find_flaw(text, fewest):
            # the text itself may be a secret
            what = f"text {place} of {key} cannot be used: {reason}"
            raise section.wrong(key, what, "write letters as they are, and * for any others", code="not_a_pattern")
    return texts


def _find_flaw(text: str, fewest: int) -> str:
    """Return what is wrong with a name or pattern; empty for nothing."""
    if len(text) > LONGEST_SECRET_PATTERN:
        return f"longer than {LONGEST_SECRET_PATTERN} letters"
    if not _NO_LETTERS.isdisjoint(text):
        return "it holds a blank, a quote, or a sign of a regular expression"
    if len(text.replace(STAR, "")) < fewest:
        return f"too short, it needs {fewest} letters besides *"
    return ""
