"""Finds lines torn by two writers that still have the right number of cells, by values that are constant on a GPU."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.gpu_identity import DRIVER_FORMS, IDENTITY, Identity
from gpureport.importers.timebase.row_order import split_at

_RARE, _COMMON = 3, 20
"""A text on at most 3 rows beside one on 20 can be damage (pragmatic)."""
_MEMORY = "gpu_memory_total_bytes"
_SURER = tuple(name for name in IDENTITY.values() if name != "model")
"""What names one GPU rather than a kind of GPUs, the surest first."""
_LASTING = 2
"""Rows in which a change lasts; lines torn one after the other are rare (pragmatic)."""


class TornRows:
    """Finds torn rows, section by section; it remembers how often each text was seen."""

    def __init__(self, sound: Mapping[Identity, int] | None = None) -> None:
        """Start with nothing seen; `sound` counts the rows of sections that are not looked at here, by identity."""
        self._sound = sound or {}
        self._rows: dict[str, Counter[str]] = {}

    def rows(self, data: dict[str, Values], times: IntArray) -> BoolArray:
        """Return which rows of a section are torn.

        Args:
            data: columns of the rows.
            times: their stamps, in microseconds.
        """
        torn = np.zeros(len(times), dtype=np.bool_)
        for name in ("uuid", "bus_id", "model"):
            if name in data and (bad := self._damaged(name, data[name])):
                found = data[name].valid & np.isin(data[name].data, bad)
                torn |= found if name in DRIVER_FORMS else found & _find_brief_changes(found, data, times)
        key = next((data[name] for name in IDENTITY.values() if name in data), None)
        if key is not None and _MEMORY in data:
            torn |= _find_odd_memory_sizes(data[_MEMORY], key, times)
        return torn

    def _damaged(self, name: str, values: Values) -> list[int]:
        """Return the codes of texts that are damaged ones of another text."""
        texts = values.texts or []
        own = self._rows.setdefault(name, Counter())
        grammar = DRIVER_FORMS.get(name)
        counts = np.bincount(values.data[values.valid], minlength=len(texts)).tolist()
        for text, count in zip(texts, counts, strict=True):
            own[text] += count
        seen = own + self._sound_texts(name)
        if grammar is not None:
            return _find_malformed(texts, seen, grammar)
        common = [text for text, count in seen.items() if count >= _COMMON]
        rare = [code for code, text in enumerate(texts) if 0 < seen[text] <= _RARE]
        return [code for code in rare if common and _is_spliced(texts[code], common)]

    def _sound_texts(self, name: str) -> Counter[str]:
        """Return how many of the rows that are not looked at here have each text in a column."""
        place = list(IDENTITY.values()).index(name)
        found: Counter[str] = Counter()
        for identity, rows in self._sound.items():
            if (text := identity[place]) is not None:
                found[text] += rows
        return found


def _find_malformed(texts: list[str], seen: Counter[str], grammar: re.Pattern[str]) -> list[int]:
    """Return the codes of texts the driver cannot have written, where it wrote others that were seen more often."""
    bad = [code for code, text in enumerate(texts) if seen[text] and not grammar.fullmatch(text)]
    if not bad:
        return []
    proper = max((count for text, count in seen.items() if grammar.fullmatch(text)), default=0)
    return [code for code in bad if seen[texts[code]] < min(proper, _RARE + 1)]


def _find_brief_changes(strange: BoolArray, data: dict[str, Values], times: IntArray) -> BoolArray:
    """Return which rows of a strange model are of a GPU that other rows say is of another model, and not lastingly."""
    torn = np.zeros(len(strange), dtype=np.bool_)
    key = next((data[name] for name in _SURER if name in data), None)
    devices = torn.astype(np.int64) if key is None else np.where(key.valid, key.data, -1)
    for device in np.unique(devices[strange]).tolist():
        rows = np.flatnonzero(devices == device)
        odd = strange[rows]
        if not odd.all():
            torn[rows[odd & ~_find_lasting_changes(odd, times[rows])]] = True
    return torn


def _is_spliced(text: str, common: Iterable[str]) -> bool:
    """Return whether a text is the beginning of a common one and the end of a common one run together."""
    head = max(_common_prefix_length(text, other) for other in common)
    tail = max(_common_prefix_length(text[::-1], other[::-1]) for other in common)
    return head + tail >= len(text)


def _common_prefix_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _find_odd_memory_sizes(memory: Values, key: Values, times: IntArray) -> BoolArray:
    """Return the few rows whose memory in all is not that of all others of the same GPU."""
    sizes = memory.data
    odd = np.zeros(len(sizes), dtype=np.bool_)
    if not len(sizes) or (sizes == sizes[0]).all():
        return odd
    devices = np.where(key.valid, key.data, -1)
    for device in np.unique(devices).tolist():
        rows = np.flatnonzero((devices == device) & memory.valid)
        values, inverse, counts = np.unique(sizes[rows], return_inverse=True, return_counts=True)
        if len(values) > 1 and counts.max() >= _COMMON:
            rare = counts[inverse] <= _RARE
            odd[rows[rare & ~_find_lasting_changes(rare, times[rows])]] = True
    return odd


def _find_lasting_changes(odd: BoolArray, times: IntArray) -> BoolArray:
    """Return which odd rows of a GPU show a change: after a gap, or two and more up to the end or from the beginning.

    Memory in all changes with a setting that needs the GPU reset or the machine booted. A torn line follows the line
    before it at the interval, and a sound line follows it.
    """
    changed = np.zeros(len(odd), dtype=np.bool_)
    steps = np.diff(times)
    limit = gap_seconds(max(float(np.median(steps)), 0.0) / 1e6) * 1e6
    for start, end in split_at(np.flatnonzero(np.diff(odd)) + 1, len(odd)):
        lasts = end - start >= _LASTING and (start == 0 or end == len(odd))
        changed[start:end] = lasts or (start > 0 and steps[start - 1] > limit)
    return changed & odd
