"""Lines torn by two writers that still have the right number of cells, told by what cannot change on a GPU."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

import numpy as np

from gpureport.columns import BoolArray
from gpureport.importers.assembly import Values
from gpureport.importers.nvidia_smi.fields import IDENTITY

_RARE, _COMMON = 3, 20
"""A text on at most 3 rows beside one on 20 can be damage; a second GPU would be logged as often (pragmatic)."""
_GRAMMAR = {
    "uuid": re.compile(r"(?:GPU|MIG)-(?:GPU-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:/\d+/\d+)?"),
    "bus_id": re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"),
}
"""How the driver writes what identifies a GPU."""
_MEMORY = "gpu_memory_total_bytes"


class Torn:
    """Finds torn rows, section by section; it remembers how often each text was seen."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen: dict[str, Counter[str]] = {}

    def rows(self, data: dict[str, Values]) -> BoolArray:
        """Return which rows of a section are torn.

        Args:
            data: columns of the rows.
        """
        torn = np.zeros(len(next(iter(data.values())).valid) if data else 0, dtype=np.bool_)
        for name in ("uuid", "bus_id", "model"):
            if name in data and (bad := self._damaged(name, data[name])):
                torn |= data[name].valid & np.isin(data[name].data, bad)
        key = next((data[name] for name in IDENTITY.values() if name in data), None)
        if key is not None and _MEMORY in data:
            torn |= _odd_size(data[_MEMORY], key)
        return torn

    def _damaged(self, name: str, values: Values) -> list[int]:
        """Return the codes of texts that are damaged ones of a text that is common."""
        texts = values.texts or []
        seen = self._seen.setdefault(name, Counter())
        if all(seen[text] >= _COMMON for text in texts):
            return []
        counts = np.bincount(values.data[values.valid], minlength=len(texts)).tolist()
        for text, count in zip(texts, counts, strict=True):
            seen[text] += count
        common = [text for text, count in seen.items() if count >= _COMMON]
        rare = [code for code, text in enumerate(texts) if 0 < seen[text] <= _RARE]
        grammar = _GRAMMAR.get(name)
        if not rare or not common:
            return []
        if grammar is None:
            return [code for code in rare if _pieced(texts[code], common)]
        proper = all(grammar.fullmatch(text) for text in common)
        return [code for code in rare if proper and not grammar.fullmatch(texts[code])]


def _pieced(text: str, common: Iterable[str]) -> bool:
    """Return whether a text is the beginning of a common one and the end of a common one run together."""
    head = max(_alike(text, other) for other in common)
    tail = max(_alike(text[::-1], other[::-1]) for other in common)
    return head + tail >= len(text)


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _odd_size(memory: Values, key: Values) -> BoolArray:
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
            odd[rows[counts[inverse] <= _RARE]] = True
    return odd
