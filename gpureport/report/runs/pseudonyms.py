"""What is shown instead of names in all runs of an output, so that two that differ still do."""

from itertools import chain, count
from typing import TYPE_CHECKING

from gpureport.importers.labels import shorten_node

if TYPE_CHECKING:
    from collections.abc import Iterator


class HostNumbers:
    """Gives each machine a number in the order in which it is met, the same with and without its domain."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._namesakes: dict[str, list[str]] = {}

    def hide(self, host: str) -> str:
        """Return `host-1`, `host-2`, …; a name without a domain is the first machine that is called so."""
        name, short = host.lower(), shorten_node(host)
        if name not in self._numbers:
            namesakes = self._namesakes.setdefault(short, [])
            is_known = bool(namesakes) and (name == short or namesakes == [short])
            self._numbers[name] = self._numbers[namesakes[0]] if is_known else self._count() + 1
            namesakes.append(name)
        return f"host-{self._numbers[name]}"

    def _count(self) -> int:
        return max(self._numbers.values(), default=0)


class DistinctTexts:
    """Keeps texts distinct whose names are hidden."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()
        self._candidates: dict[tuple[str, str], Iterator[str]] = {}

    def keep(self, what: str, text: str) -> None:
        """Note a text that stays as it is, before any other may be shown like it."""
        self._taken.add((what, text))

    def tell_apart(self, what: str, text: str, hidden: str) -> str:
        """Return a text without its names; with a number where another text of the same kind looks the same.

        Args:
            what: which texts are told apart, such as steps, or the values of a param.
            text: the text itself.
            hidden: the text without its names.
        """
        if text == hidden:
            return text
        if (what, text) not in self._shown:
            numbered = (f"{hidden} {number}" for number in count(2))
            candidates = self._candidates.setdefault((what, hidden), chain([hidden], numbered))
            self._shown[what, text] = next(each for each in candidates if (what, each) not in self._taken)
            self._taken.add((what, self._shown[what, text]))
        return self._shown[what, text]
