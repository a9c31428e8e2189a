"""Rows of a query log in which no column names a GPU: told apart by their place in the tick."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.assembly import Values, columns_of
from gpureport.importers.delimited.parts import Section
from gpureport.importers.nvidia_smi.fields import IDENTITY
from gpureport.importers.nvidia_smi.tick_positions import LEFT_OUT, TickPositions, along
from gpureport.importers.nvidia_smi.ticks import Ticks, infer

WRONG_TICK = "tick with another number of rows"
_HEAD = 50_000
"""Rows that are looked at for ticks."""


@dataclass(slots=True)
class Places:
    """Gives rows of a log the place in their tick, where nothing else tells GPUs apart.

    Attributes:
        given: rows a tick as a person says, None when nobody does.
        whole: whether the first section is all of the log.
    """

    given: int | None
    whole: bool
    ticks: Ticks | None = None
    _positions: TickPositions | None = None

    def along(self, sections: Iterator[Section]) -> Iterator[tuple[Section, IntArray | None]]:
        """Yield the sections with the place of each row, None where columns name the GPUs."""
        first = next(sections, None)
        if first is None:
            return
        self.ticks = self._ticks(first)
        everything = chain([first], sections)
        if self.ticks is None:
            yield from ((section, None) for section in everything)
            return
        self._positions = TickPositions(self.ticks)
        yield from along(self._positions, everything, lambda section: section.times)

    def _ticks(self, section: Section) -> Ticks | None:
        """Return the ticks of a log by its first section."""
        data = columns_of(section)
        if self.given == 1 or any(name in data and data[name].valid.any() for name in _NAMES):
            return None
        found = None
        if section.layout.stamp is not None:
            shown = [values.data[:_HEAD] for values in data.values()]
            found = infer(section.times[:_HEAD], shown, whole=self.whole and len(section.times) <= _HEAD)
        if self.given is None:
            return found
        gap = found.gap if found is not None and found.size == self.given else None
        return Ticks(size=self.given, confidence="high", evidence=f"--gpus-per-tick {self.given}", gap=gap)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know about how GPUs were told apart."""
        if self.ticks is None or self._positions is None:
            return ()
        told = f"No column tells the GPUs apart: each is a place in the tick ({self.ticks.evidence}; "
        return (f"{told}{self.ticks.confidence} confidence).",)


_NAMES = tuple(name for name in IDENTITY.values() if name != "model")


def index(places: IntArray) -> Values:
    """Return places in a tick as the index of GPUs."""
    most = int(places.max(initial=0))
    texts = [str(place) for place in range(most + 1)]
    return Values(np.maximum(places, 0), places != LEFT_OUT, texts)


def left_out(places: IntArray | None, rows: int) -> BoolArray:
    """Return rows whose tick does not hold the usual number of rows."""
    return np.zeros(rows, dtype=np.bool_) if places is None else places == LEFT_OUT
