"""Which GPU a row is of: by uuid, PCI address, serial number, index or model; and what the rows say of each GPU."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpureport import gpus
from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.columns import ATTRIBUTES, NAMES, Rows, Texts
from gpureport.recording import Device

_SURE = ("uuid", "bus_id", "serial")
"""What names one GPU only, the surest first."""
_BY_ORDER = (
    "One part of the log names GPUs by their index, another by uuid or bus id, and no row by both: they are taken to "
    "be the same in the order in which nvidia-smi lists them."
)
_TICK = 60_000
"""Rows of one tick lie some milliseconds apart (1 to 6 in genuine logs, 50 under load), in microseconds."""
_NAMED = 3
"""Most names of one GPU that a note lists."""
NOT_NAMED, NOT_SELECTED = -1, -2
_LIMITS = ("gpu_power_limit_watts", "gpu_power_limit_requested_watts")
_EXTREMES = {
    "gpu_memory_total_bytes": max,
    "gpu_memory_reserved_bytes": max,
    "gpu_power_limit_default_watts": max,
    **dict.fromkeys(_LIMITS, min),
}
"""Sizes and limits of a GPU, and which of their values is kept."""
_DIFFERENT_MEMORY = 1.1
"""Ratio from which the memory of two GPUs differs (pragmatic: drivers and ECC take up to a sixteenth of one)."""
_FEWEST = 8
"""Rows that show a further board (pragmatic: fewer are damaged cells)."""
_Board = tuple[str, float]
"""What distinguishes a board: the model of the table that its name fits, and its memory; empty and 0 where unknown."""


@dataclass(slots=True, eq=False)
class Gpu:
    """What was seen of one GPU so far."""

    index: int
    names: dict[str, str] = field(default_factory=dict)
    extremes: dict[str, float] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)

    @property
    def by_index(self) -> bool:
        """Whether nothing names it but its index and model."""
        return not self.names.keys() & set(_SURE)

    def device(self, *, averaged: bool) -> Device:
        """Return it as a device; `averaged` says that its power readings are averages over a second."""
        memory, reserved = (self.extremes.get(f"gpu_memory_{part}_bytes") for part in ("total", "reserved"))
        known = gpus.find_gpu(self.names.get("model"))
        return Device(
            id=f"gpu:{self.index}",
            index=self.index,
            uuid=self.names.get("uuid"),
            bus_id=self.names.get("bus_id"),
            serial=self.names.get("serial"),
            model=self.names.get("model"),
            driver=self.names.get("driver"),
            memory_total_bytes=None if memory is None else int(memory),
            memory_reserved_bytes=None if reserved is None else int(reserved),
            power_limit_watts=next((self.extremes[name] for name in _LIMITS if name in self.extremes), None),
            power_limit_default_watts=self.extremes.get("gpu_power_limit_default_watts"),
            power_window="1 s" if averaged else "unknown" if known is None else known.power_window,
            mig=None if "mig" not in self.names else self.names["mig"] == "Enabled",
        )


@dataclass(slots=True)
class Gpus:
    """The GPUs of a log.

    Where the cell of the surest column is empty, the next one names the GPU of a row. A row that no column names is
    the GPU's of a log with a single one, and nobody's otherwise.

    Attributes:
        keep: indices to keep, all when None.
        named: whether a column other than the model named any GPU.
    """

    keep: tuple[int, ...] | None = None
    named: bool = False
    _found: list[Gpu] = field(default_factory=list)
    _called: dict[tuple[str, str], Gpu] = field(default_factory=dict)
    """By each name that rows gave a GPU, attributes among them."""
    _by_index: dict[int, Gpu] = field(default_factory=dict)
    _ambiguous: set[str] = field(default_factory=set)
    _by_order: bool = False
    _boards_at: dict[str, list[_Board]] = field(default_factory=dict)

    @property
    def indices(self) -> list[int]:
        """Indices of all GPUs seen, kept or not."""
        return sorted(self._by_index)

    @property
    def ids(self) -> list[str]:
        """Ids of the GPUs, in the order in which they were met."""
        return [f"gpu:{gpu.index}" for gpu in self._found]

    @property
    def sure(self) -> bool:
        """Whether each GPU is named by what no other GPU has; two machines of a kind share PCI addresses."""
        names = {"uuid", "serial"} - self._ambiguous
        return all(names & gpu.names.keys() for gpu in self._found)

    def assign(self, rows: Rows, times: IntArray, where: BoolArray) -> IntArray:
        """Return for each row the place of its GPU among `ids`, NOT_NAMED or NOT_SELECTED; `where` rows are a GPU's."""
        codes = np.full(len(rows), NOT_NAMED, dtype=np.int64)
        for key in self._keys(rows, times):
            texts = _texts(rows, key)
            open_rows = np.flatnonzero(where & (codes == NOT_NAMED) & (texts.codes >= 0))
            order = open_rows[np.argsort(texts.codes[open_rows], kind="stable")]
            ends = np.flatnonzero(np.diff(texts.codes[order])) + 1
            named = [(texts.texts[texts.codes[own[0]]], own) for own in (np.split(order, ends) if len(order) else ())]
            if key == "index":
                named = [part for name, own in named for part in self._boards(name, own, rows)]
                # a further board takes an index that no first one has
                named.sort(key=lambda part: part[0].partition("/")[2])
            for name, own in named:
                codes[own] = self._place(key, name, own, rows)
        unnamed = np.flatnonzero(where & (codes == NOT_NAMED))
        if len(unnamed) and len(self._found) <= 1:
            codes[unnamed] = self._place("", "", unnamed, rows)
        if left_out := [place for place, gpu in enumerate(self._found) if self.keep and gpu.index not in self.keep]:
            codes[np.isin(codes, left_out)] = NOT_SELECTED
        return codes

    def _boards(self, index: str, own: IntArray, rows: Rows) -> Iterator[tuple[str, IntArray]]:
        """Yield the rows of each board at an index with a name for it: the index, and a number from the second on.

        Two machines may write one log, or one board be put in place of another.
        """
        known = self._boards_at.setdefault(index, [])
        places = np.zeros(len(own), dtype=np.int64)
        for (model, memory), where in _boards_of(rows, own):
            found = next((place for place, each in enumerate(known) if not _differ(each, (model, memory))), None)
            if found is None and (not known or where.sum() >= _FEWEST):
                found = len(known)
                known.append((model, memory))
            elif found is not None:
                known[found] = known[found][0] or model, known[found][1] or memory
            places[where] = found or 0
        for place in present(places):
            yield f"{index}/{place}" if place else index, own[places == place]

    def _keys(self, rows: Rows, times: IntArray) -> list[str]:
        """Return the columns that name GPUs, the surest first; one that names two at once is left out for good."""
        held = [name for name in NAMES if name in rows.data]
        self._ambiguous |= {name for name in _SURE if {name, "index"} <= {*held} and _names_two_gpus(rows, name, times)}
        keys = [name for name in held if name not in self._ambiguous]
        self.named = self.named or any(name != "model" and (_texts(rows, name).codes >= 0).any() for name in keys)
        # a model names nothing where another column names GPUs
        return [name for name in keys if name != "model" or not self.named]

    def _place(self, key: str, name: str, own: IntArray, rows: Rows) -> int:
        """Return the place of the GPU of some rows, after noting what they say of it."""
        gpu = self._called.get((key, name)) if key else next(iter(self._found), None)
        if gpu is None:
            index = _first_text(rows, "index", own)
            gpu = self._known(key, index, own, rows)
            if gpu is None:
                wanted = -1 if index is None else int(index)
                free = next(number for number in range(len(self._found) + 1) if number not in self._by_index)
                gpu = Gpu(free if wanted < 0 or wanted in self._by_index else wanted)
                self._found.append(gpu)
                self._by_index[gpu.index] = gpu
            self._called[key, name] = gpu
        self._describe(gpu, own, rows)
        return self._found.index(gpu)

    def _known(self, key: str, index: str | None, own: IntArray, rows: Rows) -> Gpu | None:
        """Return the GPU that rows before named in another way: by a name they share with these, or by index alone."""
        if index is None and len(self._found) == 1:
            return None if key in self._found[0].names else self._found[0]
        others = [each for each in _SURE if each in rows.data and each != key and each not in self._ambiguous]
        shared = [self._called.get((each, _first_text(rows, each, own) or "")) for each in others]
        alone: list[Gpu | None] = [gpu for _, gpu in sorted(self._by_index.items()) if gpu.by_index and key in _SURE]
        counted = alone[:1] if index is None else [self._by_index.get(int(index))]
        for gpu in (*shared, *counted):
            if gpu is not None and key not in gpu.names:
                logged = index is not None and "index" in gpu.names
                self._by_order |= not (logged or gpu in shared or key == "model")
                return gpu
        return None

    def _describe(self, gpu: Gpu, own: IntArray, rows: Rows) -> None:
        """Keep what some rows say of a GPU: each name once, limits and sizes at their extremes."""
        for name in ATTRIBUTES:
            text = _first_text(rows, name, own) if name not in gpu.names else None
            if text is not None:
                gpu.names[name] = text
                self._called.setdefault((name, text), gpu)
        if "model" in rows.data:
            gpu.models |= dict.fromkeys(_texts(rows, "model")[own].used())
        for name, pick in _EXTREMES.items():
            held = np.asarray(rows.data.get(name, ()), dtype=np.float64)[own if name in rows.data else slice(0)]
            held = held[~np.isnan(held)]
            if len(held):
                value = float(pick(held.max(), held.min()))
                gpu.extremes[name] = pick(gpu.extremes.get(name, value), value)

    def devices(self, *, averaged: bool) -> tuple[Device, ...]:
        """Return the GPUs that are kept, by index."""
        kept = [gpu for gpu in self._found if not self.keep or gpu.index in self.keep]
        return tuple(gpu.device(averaged=averaged) for gpu in sorted(kept, key=lambda gpu: gpu.index))

    def notes(self) -> Iterator[str]:
        """Yield what a reader must know of GPUs that an index alone names, or that several names stand for."""
        if self._by_order:
            yield _BY_ORDER
        drivers = list(dict.fromkeys(gpu.names["driver"] for gpu in self._found if "driver" in gpu.names))
        if len(drivers) > 1:
            named = ", ".join(drivers[:_NAMED])
            yield f"GPUs of {len(drivers)} drivers are in the log ({named}), as of two machines: write one log each."
        for index, boards in self._boards_at.items():
            if len(boards) > 1:
                yield (
                    f"Index {index} stands for {len(boards)} different GPUs, by name or memory, as where two machines "
                    "write one log: each counts as a GPU of its own. Record the uuid to be sure."
                )
        for gpu in self._found:
            if len(gpu.models) > 1 and gpu.by_index and not (self.keep and gpu.index not in self.keep):
                yield (
                    f"Rows of gpu:{gpu.index} name {' and '.join(list(gpu.models)[:_NAMED])}: one GPU under the names "
                    "of several drivers, or one put in place of another; a uuid in the log would tell."
                )


def _texts(rows: Rows, name: str) -> Texts:
    found = rows.data[name]
    assert isinstance(found, Texts)  # noqa: S101 - names are texts
    return found


def _first_text(rows: Rows, name: str, own: IntArray) -> str | None:
    """Return the first text that some rows hold in a column."""
    if name not in rows.data:
        return None
    texts = _texts(rows, name)
    codes = texts.codes[own]
    place = int(np.argmax(codes >= 0))
    return str(texts.texts[codes[place]]) if codes[place] >= 0 else None


def _boards_of(rows: Rows, own: IntArray) -> list[tuple[_Board, BoolArray]]:
    """Return each board that some rows name, with the rows, in the order in which they come."""
    names = _texts(rows, "model")[own] if "model" in rows.data else Texts.of([None] * len(own))
    sizes = np.nan_to_num(np.asarray(rows.data.get("gpu_memory_total_bytes", np.zeros(len(rows))))[own])
    found = []
    for code in np.unique(names.codes).tolist():
        known = gpus.find_gpu(names.texts[code]) if code >= 0 else None
        for size in np.unique(sizes[names.codes == code]).tolist():
            found.append(((known.model if known else "", size), (names.codes == code) & (sizes == size)))
    return sorted(found, key=lambda part: int(np.argmax(part[1])))


def _differ(one: _Board, other: _Board) -> bool:
    """Return whether two boards cannot be one GPU."""
    least, most = sorted((one[1], other[1]))
    return bool(one[0] and other[0] and one[0] != other[0]) or (least > 0 and most > _DIFFERENT_MEMORY * least)


def _names_two_gpus(rows: Rows, name: str, times: IntArray) -> bool:
    """Return whether rows of one tick share a name and differ in their index, so that the name is not one GPU's."""
    key, index = _texts(rows, name), _texts(rows, "index")
    both = np.flatnonzero((key.codes >= 0) & (index.codes >= 0))
    keys, indices = key.codes[both].astype(np.int64), index.codes[both]
    if len(present(keys * len(index.texts) + indices)) == len(present(keys)):
        # each name has one index
        return False
    order = np.argsort(keys, kind="stable")
    same, close = np.diff(keys[order]) == 0, np.abs(np.diff(times[both][order])) < _TICK
    return bool((same & close & (np.diff(indices[order]) != 0)).any())
