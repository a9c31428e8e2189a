"""Assigns rows to GPUs by uuid, PCI address, serial number, index, model or position, and collects facts about GPUs.

If no column identifies a GPU, the position of a row does. Timestamps or, failing that, repeating values in a slowly
changing column show where ticks start.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray, present
from gpureport.data_quality import gap_seconds
from gpureport.importers import account as reasons
from gpureport.importers import clock
from gpureport.importers.columns import ATTRIBUTES, NAMES, Rows, Texts
from gpureport.metrics import find_gpu
from gpureport.recording import HOST, Device

if TYPE_CHECKING:
    from gpureport.importers.nvidia_smi.query import QueryLines

SURE = ("uuid", "bus_id", "serial")
"""Columns that identify a GPU, starting with the most reliable."""
NOT_NAMED, _NOT_SELECTED, _DAMAGED = -1, -2, -3
LEFT_OUT = {NOT_NAMED: reasons.GPU_NOT_NAMED, _NOT_SELECTED: reasons.NOT_SELECTED, _DAMAGED: "damaged GPU name"}
"""Codes used in place of a GPU's position, and the reasons for leaving out the row."""
_LIMITS = ("gpu_power_limit_watts", "gpu_power_limit_requested_watts")
_EXTREMES = {
    "gpu_memory_total_bytes": max,
    "gpu_memory_reserved_bytes": max,
    "gpu_power_limit_default_watts": max,
    **dict.fromkeys(_LIMITS, min),
}
Identity = tuple[str | None, ...]
"""Identity of a GPU in a row: its text in each column of NAMES."""


@dataclass(slots=True, eq=False)
class Gpu:
    index: int
    names: dict[str, str] = field(default_factory=dict)
    extremes: dict[str, float] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    sizes: Counter[float] = field(default_factory=Counter)

    @property
    def by_index(self) -> bool:
        return not self.names.keys() & set(SURE)

    def device(self, *, averaged: bool, mixed: bool) -> Device:
        memory, reserved = (self.extremes.get(f"gpu_memory_{part}_bytes") for part in ("total", "reserved"))
        known = find_gpu(self.names.get("model"))
        sizes = [size for size, rows in self.sizes.items() if rows > _HANDFUL]
        boards = {board.model for model in self.models if (board := find_gpu(model)) is not None}
        # ECC and the driver reserve less than a tenth of the memory
        larger = max(sizes, default=0) > 1.1 * min(sizes, default=0)
        return Device(
            id=f"gpu:{self.index}",
            index=self.index,
            **{name: self.names.get(name) for name in (*SURE, "model", "driver")},
            memory_total_bytes=None if memory is None else int(memory),
            memory_reserved_bytes=None if reserved is None else int(reserved),
            power_limit_watts=next((self.extremes[name] for name in _LIMITS if name in self.extremes), None),
            power_limit_default_watts=self.extremes.get("gpu_power_limit_default_watts"),
            power_window="1 s" if averaged else "unknown" if known is None else known.power_window,
            mig=None if "mig" not in self.names else self.names["mig"] == "Enabled",
            mixed=mixed or (self.by_index and (len(boards) > 1 or larger)),
        )


@dataclass(slots=True)
class Gpus:
    """The GPUs in a log; `keep` contains the indices to keep (None keeps all).

    A row without any identity is assigned to the only GPU in the log, or left out if there are several.
    """

    keep: tuple[int, ...] | None = None
    named: bool = False
    _found: list[Gpu] = field(default_factory=list)
    _called: dict[tuple[str, str], Gpu] = field(default_factory=dict)
    _ambiguous: set[str] = field(default_factory=set)
    _by_order: bool = False
    _seen: Counter[Identity] = field(default_factory=Counter)

    @property
    def ids(self) -> list[str]:
        """The ids of devices; the machine comes first, so that GPUs keep their positions."""
        return [HOST, *(f"gpu:{gpu.index}" for gpu in self._found)]

    @property
    def sure(self) -> bool:
        """Whether each GPU has a unique uuid or serial; machines of the same type share PCI addresses."""
        return all(({"uuid", "serial"} - self._ambiguous) & gpu.names.keys() for gpu in self._found)

    def assign(self, rows: Rows, times: IntArray, where: BoolArray) -> IntArray:
        """Return each row's GPU as a position among all GPUs, or a code in LEFT_OUT, for the rows in `where`."""
        held = {name: column for name in NAMES if isinstance(column := rows.data.get(name), Texts)}
        damaged = _find_damaged_names([*held.values()], times, where, self._seen)
        if "index" in held:
            self._ambiguous |= {name for name in held if name in SURE and _names_two_gpus(held, name, times)}
            is_number = [re.fullmatch("[0-9]{1,4}", text) is not None for text in held["index"].texts]
            damaged |= where & ~np.array([*is_number, True])[held["index"].codes]
        keys = {name: column for name, column in held.items() if name not in self._ambiguous}
        self.named = self.named or any(name != "model" and (keys[name].codes >= 0).any() for name in keys)
        codes = np.where(damaged, _DAMAGED, NOT_NAMED)
        for key, texts in keys.items():
            if key == "model" and self.named:
                # the model identifies a GPU only if no other column does
                continue
            own = np.flatnonzero(where & (codes == NOT_NAMED) & (texts.codes >= 0))
            own = own[np.argsort(texts.codes[own], kind="stable")]
            for part in np.split(own, np.flatnonzero(np.diff(texts.codes[own])) + 1) if len(own) else ():
                codes[part] = self._place(key, texts.texts[texts.codes[part[0]]], part, rows)
        unnamed = np.flatnonzero(where & (codes == NOT_NAMED))
        if len(unnamed) and len(self._found) <= 1:
            codes[unnamed] = self._place("", "", unnamed, rows)
        if left_out := [place for place, gpu in enumerate(self._found) if self.keep and gpu.index not in self.keep]:
            codes[np.isin(codes, left_out)] = _NOT_SELECTED
        return codes

    def _place(self, key: str, name: str, own: IntArray, rows: Rows) -> int:
        said = dict[str, str]()
        for each in ATTRIBUTES:
            texts = rows.data.get(each)
            if isinstance(texts, Texts) and len(held := np.flatnonzero(texts.codes[own] >= 0)):
                said[each] = str(texts.texts[texts.codes[own[held[0]]]])
        gpu = self._called.get((key, name)) if key else next(iter(self._found), None)
        gpu = gpu or self._known(key, said)
        if gpu is None:
            taken = {each.index for each in self._found}
            free = next(number for number in range(len(taken) + 1) if number not in taken)
            wanted = int(said.get("index", free))
            gpu = Gpu(free if wanted in taken else wanted)
            self._found.append(gpu)
        self._called[key, name] = gpu
        for each, text in said.items():
            if each not in gpu.names:
                gpu.names[each] = text
                self._called.setdefault((each, text), gpu)
        if isinstance(models := rows.data.get("model"), Texts):
            gpu.models |= dict.fromkeys(models[own].used())
        for each, pick in _EXTREMES.items():
            values = np.asarray(rows.data.get(each, np.full(len(rows), np.nan)))[own]
            values = values[~np.isnan(values)]
            low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
            if len(values):
                gpu.extremes[each] = pick(gpu.extremes.get(each, low), low, high)
            if each == "gpu_memory_total_bytes":
                gpu.sizes.update({low: len(values)} if low == high else Counter(values.tolist()))
        return self._found.index(gpu)

    def _known(self, key: str, said: dict[str, str]) -> Gpu | None:
        """Return the GPU that other columns identified in earlier rows."""
        index = said.get("index")
        if index is None and len(self._found) == 1:
            return None if key in self._found[0].names else self._found[0]
        others = [each for each in SURE if each in said and each != key and each not in self._ambiguous]
        shared = [self._called[each, said[each]] for each in others if (each, said[each]) in self._called]
        alone = sorted((gpu for gpu in self._found if gpu.by_index and key in SURE), key=lambda gpu: gpu.index)
        counted = alone[:1] if index is None else [gpu for gpu in self._found if gpu.index == int(index)]
        gpu = next((gpu for gpu in (*shared, *counted) if key not in gpu.names), None)
        logged = gpu is not None and index is not None and "index" in gpu.names
        self._by_order |= gpu is not None and not (logged or gpu in shared or key == "model")
        return gpu

    def devices(self, *, averaged: bool, mixed: bool) -> tuple[Device, ...]:
        kept = [gpu for gpu in self._found if not self.keep or gpu.index in self.keep]
        return tuple(gpu.device(averaged=averaged, mixed=mixed) for gpu in sorted(kept, key=lambda gpu: gpu.index))

    def notes(self) -> Iterator[str]:
        if self._by_order:
            yield (
                "One part of the log identifies GPUs by index, another part by uuid or bus id, and no row has both. "
                "GPUs were matched in the order in which nvidia-smi lists them."
            )
        for gpu in self._found:
            if len(gpu.models) > 1 and gpu.by_index and not (self.keep and gpu.index not in self.keep):
                yield (
                    f"Rows of gpu:{gpu.index} name {' and '.join(list(gpu.models)[:3])}, either because drivers "
                    "name one GPU differently or because there are several machines; a uuid would show which."
                )


def _names_two_gpus(held: dict[str, Texts], name: str, times: IntArray) -> bool:
    """Return whether rows in one tick have the same name but different indices."""
    key, index = held[name], held["index"]
    both = np.flatnonzero((key.codes >= 0) & (index.codes >= 0))
    keys, indices = key.codes[both].astype(np.int64), index.codes[both]
    if len(present(keys * len(index.texts) + indices)) == len(present(keys)):
        # each name has a single index
        return False
    order = np.argsort(keys, kind="stable")
    same = np.diff(keys[order]) == 0
    same &= np.abs(np.diff(times[both][order])) < clock.TICK
    return bool((same & (np.diff(indices[order]) != 0)).any())


_MOST = 1024
"""Blocks with more identities are not searched for damaged ones."""
_HANDFUL, _OFTEN = 5, 20
"""Maximum number of rows with a damaged identity, and minimum number of real rows for each."""
_AT_EDGE = 2
"""This many odd rows at the beginning or end indicate another GPU rather than damage."""
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def _find_damaged_names(texts: list[Texts], times: IntArray, where: BoolArray, seen: Counter[Identity]) -> BoolArray:
    """Mark rows with a rare identity where another GPU's row is missing; `seen` counts identities."""
    suspect, places = np.zeros(len(where), dtype=np.bool_), np.flatnonzero(where)
    keys = np.zeros(len(places), dtype=np.int64)
    for column in texts:
        keys = keys * (len(column.texts) + 1) + column.codes[places] + 1
        if int(keys.max(initial=0)) > _MOST * _MOST:
            keys = np.unique(keys, return_inverse=True)[1]
    counts = np.bincount(keys)
    met = np.flatnonzero(counts).tolist()
    if len(met) > _MOST:
        return suspect
    identities: dict[int, Identity] = {}
    for key in met:
        first = places[np.argmax(keys == key)]
        identities[key] = tuple(column.texts[code] if (code := column.codes[first]) >= 0 else None for column in texts)
        seen[identities[key]] += int(counts[key])
    for key, identity in identities.items():
        others = {other: each for other, each in identities.items() if seen[each] >= _OFTEN * seen[identity]}
        if seen[identity] > _HANDFUL or not others:
            continue
        odd = np.flatnonzero(keys == key)
        if any(text and text[:2] == "GP" and not _UUID.fullmatch(text) for text in identity):
            # a partial identity is torn if the log also contains complete identities
            suspect[places[odd]] = any(text and _UUID.fullmatch(text) for each in others.values() for text in each)
        # a cell without a value does not contradict an identity
        elif all(
            any(None not in pair and pair[0] != pair[1] for pair in zip(identity, each, strict=False))
            for each in others.values()
        ):
            for other in others:
                suspect[places[odd]] |= _replaces_row(odd, np.flatnonzero(keys == other), times[places])
    return suspect


def _replaces_row(odd: IntArray, own: IntArray, times: IntArray) -> BoolArray:
    """Mark odd rows at times when a GPU's own row is due but missing."""
    steps = np.abs(np.diff(times[own]))
    step = float(np.median(steps)) if len(steps) else 0.0
    around = np.searchsorted(own, odd) + np.array([[-1], [0]])
    there = (around >= 0) & (around < len(own))
    apart = np.abs(times[odd] - times[own[np.clip(around, 0, len(own) - 1)]])
    # another GPU's row would be closer to one of the two rows, unless one is missing
    beat = (apart >= 0.6 * step) & (apart <= gap_seconds(step / 1e6) * 1e6)
    fits: BoolArray = np.where(there, beat, (~there).sum(axis=1, keepdims=True) < _AT_EDGE).all(axis=0) & (step > 0)
    return fits


_LARGEST = 32
_FEWEST_TICKS, _HALF, _LARGER = 3, 0.5, 0.05
"""Minimum number of ticks, minimum share of ticks of the usual size, and maximum share of larger ticks."""
_SILENCE, _TOGETHER = 4, 60_000
"""Minimum ratio of gaps between ticks to gaps within ticks, and maximum median gap within ticks."""
_REPEATED, _CLEARLY = 0.9, 0.2
"""Minimum share of rows that repeat after one tick, and how far it must exceed the share at other distances."""
_HEAD = 50_000
"""Number of rows to search for ticks."""
_MIXED = (
    "Several rows have the same time, so several GPUs were logged, but neither a column nor their order tells them "
    "apart. They are kept as one device, which checks ignore. Give the number of GPUs with --gpus-per-tick."
)
_ONE_GPU = (
    "No column identifies GPUs, and there are no times, so one GPU is assumed. If there are more, give --gpus-per-tick."
)
_PLACES = "No column identifies the GPUs, so each is identified by its position in the tick: {}."


def names_gpus(rows: Rows) -> bool:
    columns = (rows.data.get(name) for name in NAMES if name != "model")
    return any(isinstance(column, Texts) and bool((column.codes >= 0).any()) for column in columns)


class _Ticks(NamedTuple):
    size: int
    evidence: str
    gap: int | None = None


def _infer(rows: Rows, times: IntArray, at: IntArray) -> _Ticks | None:
    times = times[:_HEAD]
    if len(times) < 2 * _FEWEST_TICKS:
        return None
    held = [values[:_HEAD] for values in rows.data.values()]
    shown = [values.codes if isinstance(values, Texts) else np.nan_to_num(values) for values in held]
    columns = [column for column in shown if (column != column[0]).any()]
    gaps, best, most = np.abs(np.diff(times)), None, _HALF
    resolution = int(np.gcd.reduce(np.abs(times - times[0])))
    for limit in np.rint(1000 * 2 ** np.arange(0, max(1, int(gaps.max()) // 1000).bit_length(), 0.5)).tolist():
        apart = gaps > limit
        inside, between = gaps[~apart], gaps[apart]
        # whole seconds do not show whether the rows of one second are a single tick
        told = len(between) >= _FEWEST_TICKS and np.median(between) >= _SILENCE * max(limit, resolution)
        if not told or not len(inside) or np.median(inside) > _TOGETHER:
            continue
        # the last tick may be incomplete, so it is ignored
        sizes = np.diff(np.flatnonzero(np.concatenate([[True], apart])))
        size = int(np.bincount(sizes).argmax())
        alike = float((sizes == size).mean())
        # of equally good limits, the largest allows the longest pause within a tick
        if 1 < size <= _LARGEST and alike >= most and (sizes > size).mean() <= _LARGER:
            best = _Ticks(size, f"{alike:.1%} of the ticks have {size} rows", int(limit))
            most = alike
    if best is None:
        return _infer_from_repetition(gaps, columns, at[: len(gaps)])
    # if all rows of each tick are equal, they are one GPU's row, written repeatedly
    copies = columns and not any((column[1:] != column[:-1])[gaps <= best.gap].any() for column in columns)
    return None if copies else best


def _infer_from_repetition(gaps: IntArray, columns: list[npt.NDArray[Any]], at: IntArray) -> _Ticks | None:
    most = min(2 * _LARGEST, (len(gaps) + 1) // _FEWEST_TICKS)
    share, size = _REPEATED, 0
    for column in columns:
        shares = np.array([(column[lag:] == column[:-lag]).mean() for lag in range(1, most + 1)])
        for lag in range(2, min(_LARGEST, most) + 1):
            others = np.delete(shares, np.arange(lag - 1, most, lag))
            if shares[lag - 1] > share and shares[lag - 1] >= others.max() + _CLEARLY:
                share, size = float(shares[lag - 1]), lag
    medians = [float(np.median(gaps[at % size == place])) for place in range(size)]
    if not size or not medians[-1] or medians[-1] < _SILENCE * max(medians[:-1]):
        return None
    return _Ticks(size, f"the values of a column repeat after {size} rows in {share:.1%} of cases")


def number_gpus(parts: Iterable[Rows], per_tick: int | None, log: "QueryLines") -> Iterator[Rows]:
    """Yield the rows; if no column identifies the GPU, its index is the row's position in the tick."""
    account = log.account
    ticks: _Ticks | None = None
    begun, counted, last, before = False, 0, 0, 0
    for rows in parts:
        if names_gpus(rows) or per_tick == 1:
            begun = False
            yield rows
            continue
        account.mixed_note = _MIXED
        first, times, count = not begun, rows.times, np.arange(len(rows))
        # in a torn line, the lost row comes before the remaining row
        lost = np.searchsorted(np.unique(np.array(log.damaged, dtype=np.int64)), rows.lines, side="right")
        if first:
            begun, counted = True, 0
            ticks = None if times is None else _infer(rows, times, count + lost)
            if per_tick is not None:
                gap = ticks.gap if ticks is not None and ticks.size == per_tick else None
                ticks = _Ticks(per_tick, f"--gpus-per-tick {per_tick}", gap)
            if ticks is not None or times is None:
                account.note(_PLACES.format(ticks.evidence) if ticks else _ONE_GPU)
        if ticks is None:
            yield rows
            continue
        if ticks.gap is not None and times is not None:
            starts = np.abs(np.diff(times, prepend=times[0] if first else last)) > ticks.gap
            starts[0] |= first
            tick = np.cumsum(starts) - starts[0]
            before = 0 if starts[0] else before
            sizes = np.bincount(tick)
            places = count - np.searchsorted(tick, tick) + np.where(tick == 0, before, 0)
            sizes[0] += before
            fits = sizes == ticks.size
            # the first and last tick may continue in earlier and later rows
            fits[0] |= bool(before) and sizes[0] <= ticks.size
            fits[-1] |= not log.ended and sizes[-1] <= ticks.size
            last, before, kept = int(times[-1]), int(sizes[-1]), fits[tick]
            account.reject_rows("tick with another number of rows", rows.lines[~kept])
            rows, places = rows.select(kept), places[kept]  # noqa: PLW2901 - the rest
        else:
            places = (counted + count + lost) % ticks.size
            counted += len(rows)
        rows.data["index"] = _name_places(places, ticks.size)
        yield rows


def _name_places(places: IntArray, size: int) -> Texts:
    return Texts(places.astype(np.int32), [str(place) for place in range(size)])


def date_rows(rows: Rows, log: "QueryLines") -> Rows:
    """Give rows the date above them as their time and, if no column identifies the GPU, their position as index."""
    dates = [(line, *time) for line, text in log.dates.items() if (time := clock.parse_printed_time(text)) is not None]
    if not dates:
        return rows
    lines, times, zoned = np.array(dates, dtype=np.int64).T
    if zoned.any():
        log.account.note("Dates above the rows specify a time zone, but are read as written, without conversion.")
    ticks = np.searchsorted(lines, rows.lines) - 1
    log.account.reject_rows(reasons.NO_TIME, rows.lines[ticks < 0])
    rows, ticks = replace(rows, times=times[ticks]).select(ticks >= 0), ticks[ticks >= 0]
    sizes = np.bincount(ticks, minlength=1)
    usual = int(np.bincount(sizes[sizes > 0], minlength=2).argmax())
    if usual > 1 and not names_gpus(rows):
        places = np.arange(len(rows)) - np.searchsorted(ticks, ticks)
        log.account.note(_PLACES.format(f"there is a date above every {usual} rows"))
        rows.data["index"] = _name_places(np.where(sizes[ticks] == usual, places, -1), usual)
    return rows
