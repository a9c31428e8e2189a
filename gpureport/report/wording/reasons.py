"""Reasons said once: where several figures are held back by the same, the later ones name the first.

Below a table they are gathered instead, so that its columns of verdicts hold verdicts alone.
"""

from gpureport.report.wording import display

_SHORT = 40
"""Letters up to which a reason is as short as a name."""


class ReasonReferences:
    """What was said so far, and of what."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: dict[str, str] = {}

    def told(self, reason: str, of: str) -> str:
        """Return a reason the first time in full, then by what it was said of.

        Args:
            reason: a sentence, or empty.
            of: what it is said of, as a sentence names it.
        """
        if len(reason) < _SHORT:
            return reason
        if reason not in self._said:
            self._said[reason] = of
            return reason
        first = self._said[reason]
        return "for the same reason" if first == of else f"as for {first}"


class ReasonsBySubject:
    """Reasons with all that each was said of."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: dict[str, list[str]] = {}

    def add(self, reason: str, of: str, otherwise: str = "") -> None:
        """Take a reason down.

        Args:
            reason: a sentence, or a few words; nothing when empty.
            of: what it is said of.
            otherwise: what else it is said of, where it was not said of that yet.
        """
        if not reason:
            return
        said = self._said.setdefault(reason, [])
        if of not in said:
            said.append(otherwise or of)

    def text(self) -> str:
        """Return every reason once, with what it was said of."""
        return " ".join(_sentence(reason, display.join_words(said)) for reason, said in self._said.items())


def _sentence(reason: str, of: str) -> str:
    first, rest = (of, reason) if reason.endswith(".") else (reason, f"{of}.")
    return f"{first[:1].upper()}{first[1:]}: {display.lower_first(rest) if rest is reason else rest}"
