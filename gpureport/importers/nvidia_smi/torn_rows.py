"""Finds lines torn by two writers that still have the right number of cells, by values that are constant on a GPU."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise, takewhile

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.columns import NAMES, Rows, Texts

_RARE, _COMMON = 3, 20
"""A text on at most 3 rows beside one on 20 can be damage (pragmatic)."""
_MEMORY = "gpu_memory_total_bytes"
_LASTING = 2
"""Rows in which a change lasts; lines torn one after the other are rare (pragmatic)."""
_DRIVER_FORMS = {
    "uuid": re.compile(r"(?:GPU|MIG)-(?:GPU-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:/\d+/\d+)?"),
    "bus_id": re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"),
}
"""How the driver writes what identifies a GPU."""


def find_torn_rows(rows: Rows, times: IntArray, seen: dict[str, Counter[str]]) -> BoolArray:
    """Return which rows are torn.

    Args:
        rows: the rows.
        times: their stamps, in microseconds.
        seen: rows of each text of a column so far; those of these rows are added.
    """
    torn = np.zeros(len(rows), dtype=np.bool_)
    for name in ("uuid", "bus_id", "model"):
        texts = rows.data.get(name)
        if isinstance(texts, Texts) and (bad := _damaged(name, texts, seen.setdefault(name, Counter()))):
            found = np.isin(texts.codes, bad)
            torn |= found if name in _DRIVER_FORMS else found & _find_brief_changes(found, rows, times)
    sizes = rows.data.get(_MEMORY)
    key = next((name for name in NAMES if name in rows.data), None)
    if key is not None and not (sizes is None or isinstance(sizes, Texts)):
        torn |= _find_odd_memory_sizes(sizes, _codes(rows, key), times)
    return torn


def _codes(rows: Rows, name: str) -> IntArray:
    texts = rows.data[name]
    assert isinstance(texts, Texts)  # noqa: S101 - names are texts
    return texts.codes.astype(np.int64)


def _damaged(name: str, column: Texts, seen: Counter[str]) -> list[int]:
    """Return the codes of texts that are damaged ones of another text."""
    counts = np.bincount(column.codes + 1, minlength=len(column.texts) + 1)[1:].tolist()
    for text, count in zip(column.texts, counts, strict=True):
        seen[text] += count
    grammar = _DRIVER_FORMS.get(name)
    if grammar is not None:
        return _find_malformed(column.texts, seen, grammar)
    common = [text for text, count in seen.items() if count >= _COMMON]
    rare = [code for code, text in enumerate(column.texts) if 0 < seen[text] <= _RARE]
    return [code for code in rare if common and _is_spliced(column.texts[code], common)]


def _find_malformed(texts: list[str], seen: Counter[str], grammar: re.Pattern[str]) -> list[int]:
    """Return the codes of texts the driver cannot have written, where it wrote others that were seen more often."""
    bad = [code for code, text in enumerate(texts) if seen[text] and not grammar.fullmatch(text)]
    if not bad:
        return []
    proper = max((count for text, count in seen.items() if grammar.fullmatch(text)), default=0)
    return [code for code in bad if seen[texts[code]] < min(proper, _RARE + 1)]


def _find_brief_changes(strange: BoolArray, rows: Rows, times: IntArray) -> BoolArray:
    """Return which rows of a strange model are of a GPU that other rows say is of another model, and not lastingly."""
    torn = np.zeros(len(strange), dtype=np.bool_)
    key = next((name for name in NAMES if name in rows.data and name != "model"), None)
    devices = torn.astype(np.int64) if key is None else _codes(rows, key)
    for device in np.unique(devices[strange]).tolist():
        own = np.flatnonzero(devices == device)
        odd = strange[own]
        if not odd.all():
            torn[own[odd & ~_find_lasting_changes(odd, times[own])]] = True
    return torn


def _is_spliced(text: str, common: Iterable[str]) -> bool:
    """Return whether a text is the beginning of a common one and the end of a common one run together."""
    head = max(_common_prefix_length(text, other) for other in common)
    tail = max(_common_prefix_length(text[::-1], other[::-1]) for other in common)
    return head + tail >= len(text)


def _common_prefix_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _find_odd_memory_sizes(sizes: FloatArray, devices: IntArray, times: IntArray) -> BoolArray:
    """Return the few rows whose memory in all is not that of all others of the same GPU."""
    odd = np.zeros(len(sizes), dtype=np.bool_)
    if not len(sizes) or (sizes == sizes[0]).all():
        return odd
    for device in np.unique(devices).tolist():
        own = np.flatnonzero((devices == device) & ~np.isnan(sizes))
        values, inverse, counts = np.unique(sizes[own], return_inverse=True, return_counts=True)
        if len(values) > 1 and counts.max() >= _COMMON:
            rare = counts[inverse] <= _RARE
            odd[own[rare & ~_find_lasting_changes(rare, times[own])]] = True
    return odd


def _find_lasting_changes(odd: BoolArray, times: IntArray) -> BoolArray:
    """Return which odd rows of a GPU show a change: after a gap, or two and more up to the end or from the beginning.

    Memory in all changes with a setting that needs the GPU reset or the machine booted. A torn line follows the line
    before it at the interval, and a sound line follows it.
    """
    changed = np.zeros(len(odd), dtype=np.bool_)
    steps = np.diff(times)
    limit = gap_seconds(max(float(np.median(steps)), 0.0) / 1e6) * 1e6
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(odd)) + 1).tolist(), len(odd)]):
        lasts = end - start >= _LASTING and (start == 0 or end == len(odd))
        changed[start:end] = lasts or (start > 0 and steps[start - 1] > limit)
    return changed & odd
