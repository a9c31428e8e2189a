"""Reasons said once: where several figures are held back by the same, the later ones name the first."""

_SHORT = 40
"""Letters up to which a reason is as short as a name."""


class Reasons:
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
