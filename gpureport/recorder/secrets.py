"""Secrets on a command line, replaced before it is written down."""

import re
from collections.abc import Sequence

HIDDEN = "***"
_NAMES = re.compile(r"token|password|passwd|secret|credential|api.?key|auth", re.IGNORECASE)


def hide_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with the values of options and assignments that sound like secrets replaced."""
    shown: list[str] = []
    hides_next = False
    for word in command:
        name, sign, _ = word.partition("=")
        if hides_next and not word.startswith("-"):
            shown.append(HIDDEN)
        elif sign and _NAMES.search(name):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(re.sub(r"://[^/@\s]+@", f"://{HIDDEN}@", word))
        hides_next = not sign and word.startswith("-") and _NAMES.search(word) is not None
    return tuple(shown)
