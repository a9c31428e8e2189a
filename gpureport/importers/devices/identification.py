"""Which GPU a row belongs to."""

from collections.abc import Iterator

import numpy as np

from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.gpu_identity import (
    IDENTITY,
    GpuDescription,
    first_text,
    make_device,
    note_attributes,
)
from gpureport.importers.devices.shared_indices import BoardsByIndex
from gpureport.recording import Device

_SURE = {"uuid": None, "bus_id": None, "serial": None}.keys()
"""What names one GPU only, the surest first."""
_BY_ORDER = (
    "One part of the log names GPUs by their index, another by uuid or bus id, and no row by both: they are taken to "
    "be the same in the order in which nvidia-smi lists them."
)
_SMALL = 2**16
_TICK = 60_000
"""Rows of one tick lie some milliseconds apart (1 to 6 in genuine logs, 50 under load), in microseconds."""
_NAMED = 3
"""Most names of one GPU that a note lists."""
NOT_NAMED = -1
NOT_SELECTED = -2


class Devices:
    """Identifies GPUs by uuid, else bus id, serial, index, or name.

    Where the cell of the best of these columns is empty, the next column identifies the row. A row that no column
    names belongs to the GPU of a log with a single GPU, and to none otherwise.
    """

    def __init__(self, keep: tuple[int, ...] | None) -> None:
        """Start without GPUs; `keep` are the indices to keep, all when None."""
        self._keep = keep
        self._gpus: list[GpuDescription] = []
        self._places: dict[tuple[str, str], int] = {}
        self._named: dict[tuple[str, str], int] = {}
        self._indexed: dict[int, int] = {}
        self._lowest = 0
        self._ambiguous: set[str] = set()
        self._alone: dict[int, int] = {}
        self._boards: BoardsByIndex | None = None
        self._by_order = False
        self.named = False

    @property
    def indices(self) -> list[int]:
        """Indices of all GPUs seen, kept or not."""
        return sorted(seen.index for seen in self._gpus)

    @property
    def sure(self) -> bool:
        """Whether each GPU is told by a name that no other GPU has; two machines of a kind share bus ids."""
        names = {"uuid", "serial"} - self._ambiguous
        return all(names & seen.attributes.keys() for seen in self._gpus)

    def assign(
        self, data: dict[str, Values], times: IntArray, whole: BoolArray | None = None
    ) -> tuple[IntArray, list[str]]:
        """Return for each row an index into the device ids, NOT_NAMED or NOT_SELECTED; and the ids.

        Args:
            data: columns of the rows.
            times: their stamps.
            whole: which rows can be believed, all when None; the others are not named.
        """
        codes = np.full(len(times), NOT_NAMED, dtype=np.int64)
        if whole is not None and not whole.all():
            kept = {name: values.select(whole) for name, values in data.items()}
            codes[whole], ids = self.assign(kept, times[whole])
            return codes, ids
        for key in self._keys(data, times):
            values = data[key]
            groups = _rows_by_code(values.data, np.flatnonzero(values.valid & (codes == NOT_NAMED)))
            named = [((values.texts or [])[code], rows) for code, rows in groups]
            if key == "index" and named:
                boards = self._boards = self._boards or BoardsByIndex()
                named = [part for name, rows in named for part in boards.rows_by_board(name, rows, data)]
                # a further board takes an index that no first one has
                named.sort(key=lambda part: part[0].partition("/")[2])
            for name, rows in named:
                codes[rows] = self._place(key, name, rows, data)
        unnamed = np.flatnonzero(codes == NOT_NAMED)
        if len(unnamed) and len(self._gpus) <= 1:
            codes[unnamed] = self._place("", "", unnamed, data)
        dropped = [place for place, seen in enumerate(self._gpus) if self._keep and seen.index not in self._keep]
        codes[np.isin(codes, dropped)] = NOT_SELECTED
        return codes, [f"gpu:{seen.index}" for seen in self._gpus]

    def _keys(self, data: dict[str, Values], times: IntArray) -> list[str]:
        """Return the columns that name GPUs, the surest first; one that names two at once is left out for good."""
        for name in ("uuid", "bus_id", "serial"):
            if name in data and _names_two_gpus(data[name], data.get("index"), times):
                self._ambiguous.add(name)
        keys = [name for name in IDENTITY.values() if name in data and name not in self._ambiguous]
        self.named = self.named or any(name != "model" and data[name].valid.any() for name in keys)
        # a model names nothing where another column names GPUs
        return [name for name in keys if name != "model" or not self.named]

    def _place(self, key: str, name: str, rows: IntArray, data: dict[str, Values]) -> int:
        """Return the position of a GPU among those seen, after noting what these rows say of it."""
        place = self._places.get((key, name))
        if place is None:
            index = _logged_index(rows, data)
            place = self._known(key, name, index, rows, data)
            if place is None:
                place = len(self._gpus)
                self._gpus.append(GpuDescription(self._free(index)))
                self._indexed[self._gpus[place].index] = place
            self._places[key, name] = place
        seen = self._gpus[place]
        for attribute in note_attributes(seen, rows, data):
            self._named[attribute] = min(self._named.get(attribute, place), place)
        if seen.attributes.keys() & _SURE:
            self._alone.pop(seen.index, None)
        else:
            self._alone[seen.index] = place
        return place

    def _known(self, key: str, name: str, index: int | None, rows: IntArray, data: dict[str, Values]) -> int | None:
        """Return the GPU that rows before named in another way: by a name they share with these, or by index alone."""
        if key != "model" and (key, name) in self._named:
            return self._named[key, name]
        if index is None and len(self._gpus) == 1:
            return None if key in self._gpus[0].attributes else 0
        others = [other for other in _SURE if other in data and other != key and other not in self._ambiguous]
        shared = [self._named.get((other, first_text(data[other], rows) or ""), NOT_NAMED) for other in others]
        lowest = [self._alone[min(self._alone)]] if self._alone and key in _SURE else []
        counted = lowest if index is None else [self._indexed.get(index, NOT_NAMED)]
        for place in (*shared, *counted):
            if place >= 0 and key not in self._gpus[place].attributes:
                logged = index is not None and "index" in self._gpus[place].attributes
                self._by_order |= not (logged or place in shared or key == "model")
                return place
        return None

    def _free(self, wanted: int | None) -> int:
        """Return the wanted index if it is free, else the lowest that is."""
        if wanted is not None and wanted not in self._indexed:
            return wanted
        while self._lowest in self._indexed:
            self._lowest += 1
        return self._lowest

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know of GPUs that an index alone tells, and that are called in several ways."""
        order = (_BY_ORDER,) if self._by_order else ()
        renamed = (
            f"Rows of gpu:{seen.index} name {' and '.join(list(seen.models)[:_NAMED])}: one GPU under the names of "
            "several drivers, or one put in place of another; a uuid in the log would tell."
            for seen in self._gpus
            if (self._keep is None or seen.index in self._keep)
            and len(seen.models) > 1
            and not {"uuid", "bus_id", "serial"} & seen.attributes.keys()
        )
        return (*order, *(self._boards.notes() if self._boards else ()), *renamed)

    def devices(self, *, averaged: bool) -> tuple[Device, ...]:
        """Return the GPUs kept, by index; `averaged` says that power came from `power.draw.average`."""
        kept = [seen for seen in self._gpus if self._keep is None or seen.index in self._keep]
        return tuple(make_device(seen, averaged=averaged) for seen in sorted(kept, key=lambda entry: entry.index))


def _rows_by_code(codes: IntArray, rows: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each code some rows have, the lowest first, with those rows in their order."""
    found = codes[rows]
    if not len(rows):
        return
    if found.max() == found.min():
        yield int(found[0]), rows
        return
    # a radix sort, where codes are small enough
    small = found.astype(np.uint16) if found.max() < _SMALL else found
    order = np.argsort(small, kind="stable")
    ends = np.flatnonzero(np.diff(small[order])) + 1
    for group in np.split(order, ends):
        yield int(found[group[0]]), rows[group]


def _names_two_gpus(key: Values, index: Values | None, times: IntArray) -> bool:
    """Return whether rows of one tick share a name and differ in their index, so that the name is not one GPU's."""
    if index is None:
        return False
    rows = np.flatnonzero(key.valid & index.valid)
    pairs = key.data.take(rows) * np.int64(len(index.texts or [])) + index.data.take(rows)
    if len(present(pairs)) == len(present(key.data.take(rows))):
        # each name has one index
        return False
    rows = rows[np.argsort(key.data[rows], kind="stable")]
    same = np.diff(key.data[rows]) == 0
    close = np.abs(np.diff(times[rows])) < _TICK
    return bool((same & close & (np.diff(index.data[rows]) != 0)).any())


def _logged_index(rows: IntArray, data: dict[str, Values]) -> int | None:
    index = data.get("index")
    text = None if index is None else first_text(index, rows)
    return None if text is None else int(text)
