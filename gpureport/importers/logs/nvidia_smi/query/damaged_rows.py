"""Rows that are torn, cut or damaged, or that belong to an incomplete tick, so that their GPU is uncertain."""

from collections.abc import Mapping

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.gpu_identity import IDENTITY, Identity
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.logs.nvidia_smi.query.torn_lines import TornRows
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_positions import LEFT_OUT
from gpureport.importers.protocol.reject_reasons import GPU_DAMAGED, GPU_NOT_NAMED, TORN, WRONG_TICK
from gpureport.importers.recorders.damaged_identities import DamagedIdentities
from gpureport.importers.values.cells import CUT


class DamagedRows:
    """Finds such rows, section by section, and counts them."""

    def __init__(self, tally: Tally, sound: Mapping[Identity, int]) -> None:
        """Start with nothing seen.

        Args:
            tally: counts the rows that are rejected.
            sound: rows of the sections in which none is damaged, by identity.
        """
        self._tally = tally
        self._torn = TornRows(sound)
        self._suspects = DamagedIdentities(sound)

    def find_sound(self, section: Section, data: dict[str, Values], places: IntArray | None) -> BoolArray:
        """Return which rows can be believed; the others are counted as rejected.

        Args:
            section: the rows.
            data: their columns; places in the tick are added as the index of GPUs.
            places: place of each row in its tick, None where columns name the GPUs.
        """
        torn = self._torn.rows(data, section.times)
        self._tally.drop(TORN, section.numbers[torn])
        sound = ~torn
        if places is not None:
            incomplete = (places == LEFT_OUT) & sound
            self._tally.drop(WRONG_TICK, section.numbers[incomplete])
            sound &= ~incomplete
            data["index"] = _positions_as_index(places)
        unnamed = sound & _name_is_cut(section)
        self._tally.drop(GPU_NOT_NAMED, section.numbers[unnamed])
        sound &= ~unnamed
        damaged = self._suspects.rows(data, section.times, sound)
        self._tally.drop(GPU_DAMAGED, section.numbers[damaged])
        return sound & ~damaged


def _name_is_cut(section: Section) -> BoolArray:
    """Return rows of which the cell that names the GPU may be a part of another name."""
    cut = np.zeros(len(section.numbers), dtype=np.bool_)
    for position, column in section.columns.items():
        if section.layout.columns[position].target in IDENTITY.values() and CUT in column.reasons:
            cut |= column.codes == column.reasons.index(CUT)
    return cut


def _positions_as_index(places: IntArray) -> Values:
    """Return places in a tick as the index of GPUs."""
    most = int(places.max(initial=0))
    texts = [str(place) for place in range(most + 1)]
    return Values(np.maximum(places, 0), places != LEFT_OUT, texts)
