"""Reads one log: assigns each row a device and a time, and builds tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport.columns import IntArray, category, present, repeat_value, to_arrow
from gpureport.errors import CodedProblem, SourceError
from gpureport.importers import account as reasons
from gpureport.importers import clock, gpu_devices
from gpureport.importers.account import ERROR_WORDS, LOST_WORDS, Account, format_count
from gpureport.importers.columns import ATTRIBUTES, HOST_ROW, LOST, Rows, Texts, Values, to_arrays
from gpureport.importers.protocol import Outcome, ReadOptions
from gpureport.importers.source_text import RawFile, Text
from gpureport.parsing import LONGEST_LINE
from gpureport.recording import HOST, Device
from gpureport.recording_advice import RECORDS_ONE

Form = Callable[[Iterable[str], int, Account], Iterator[Rows]]
"""Yields rows from lines, given the number of the first line and the account for other lines."""
_NAME_GPUS = "record a column that identifies the GPU: index or uuid in --query-gpu, gpu_uuid in --query-compute-apps"
_INTERVAL = "give the number of seconds between samples with --interval"
_ONE_MOMENT = "The log has one row per GPU and no time, so it is read as a single sample at time 0."
_SEVERAL_WRITERS = (
    "Several writers wrote to the log at once. The rows were sorted by time. The log does not show whether the writers "
    "recorded the same GPUs, so checks that depend on this are skipped. Give each process its own file."
)
_MEMORY = {f"gpu_memory_{part}_bytes" for part in ("total", "used", "free", "reserved")}
_MOST_AT_ONCE = 128
"""Maximum number of rows for GPUs, or parts of GPUs, at one moment."""
_ANSWERS = {"gpu_utilization_ratio", "gpu_temperature_celsius", "gpu_power_watts", "gpu_memory_used_bytes"}
_FEW = 2
"""Metrics of every healthy GPU. If two or more metrics were recorded and all contain errors, the GPU is lost."""


class Extraction:
    """Reads one log with a form; `explain` returns why no row is usable."""

    def __init__(  # noqa: PLR0913 - a file, a form, and their options
        self,
        file: RawFile,
        options: ReadOptions,
        form: Form,
        *,
        name: str = "",
        explain: Callable[[Account], CodedProblem | None] | None = None,
        longest: int = LONGEST_LINE,
    ) -> None:
        self._file, self._options, self._form, self._explain, self._longest = file, options, form, explain, longest
        self._account = Account(forms={name: 0} if name else {})
        self._gpus = gpu_devices.Gpus(options.gpus)
        self._zone = clock.load_zone(options.tz) if options.tz else None
        self._clocks: dict[str, clock.Clock] = {}
        self._newest: dict[int, int] = {}
        self._order: clock.Order | None = None
        # number of rows in an hour that occurs twice, and of rows without a time
        self._doubled = self._untimed = 0
        # number of rows of each device so far, if times are derived from an interval
        self._counted: Counter[int] = Counter()
        self._stamped: bool | None = None
        self._stated: tuple[str | None, bool] | None = None

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables, each for one device. Raises SourceError if no row is usable."""
        try:
            for rows, stamps, devices in self._parts():
                times = self._place(rows, stamps, devices)
                self._happened(rows, times, devices)
                yield from self._tables(rows, times, devices)
        except (ArithmeticError, LookupError, ValueError) as error:
            # malicious text may cause any of these errors in a form
            what = f"it is damaged and cannot be read ({type(error).__name__}: {error})"
            raise SourceError(str(self._file.path), what, RECORDS_ONE, code="no_usable_row") from error
        if self._account.rows == 0 and (single := self._read_one_moment()):
            yield from single
        elif self._account.rows == 0:
            what, hint, code = (self._explain and self._explain(self._account)) or self._nothing()
            raise SourceError(str(self._file.path), what, hint, code=code)

    def _read_one_moment(self) -> list["pa.Table"]:
        if self._options.interval or not self._account.snapshot or not 0 < self._untimed <= _MOST_AT_ONCE:
            return []
        once = Extraction(self._file.again(), replace(self._options, interval=1.0), self._form, explain=self._explain)
        tables = list(once.batches())
        if any(len(table) > 1 for table in tables) or len(tables) > len(once._clocks):
            return []
        once._account.note(_ONE_MOMENT)
        self._account, self._gpus, self._clocks, self._stamped = once._account, once._gpus, once._clocks, False
        return tables

    def _parts(self) -> Iterator[tuple[Rows, IntArray, IntArray]]:
        if self._options.interval:
            # rows without a time are left out if most early rows have one
            counted = Counter[bool]()
            for rows in self._form(Text(self._file.again(), longest=self._longest, blocks=1), 1, Account()):
                counted[rows.times is not None] += len(rows)
            self._stamped = counted[True] > counted[False]
        for rows in self._form(Text(self._file, longest=self._longest), 1, self._account):
            if len(rows):
                self._account.rows += len(rows)
                yield self._assign(rows)

    def _assign(self, rows: Rows) -> tuple[Rows, IntArray, IntArray]:
        times, account = rows.times, self._account
        if (memory := rows.data.get("gpu_memory_total_bytes")) is not None:
            # tools write 0 for memory that the driver does not report
            gone: Any = np.where(memory == 0, np.nan, 0)
            rows.data |= {name: rows.data[name] + gone for name in _MEMORY & rows.data.keys()}
        stamps = np.zeros(len(rows), dtype=np.int64) if times is None else times
        host = np.asarray(rows.data.pop(HOST_ROW, np.zeros(len(rows)))) == 1
        # a stamp in 1970 is a time of day without a date
        stated = self._stated if times is None else (rows.zone, int(times.max()) > 366 * clock.DAY)
        self._stated = self._stated or stated
        if self._stamped is None and (times is not None or self._options.interval):
            self._stamped = times is not None
        if self._stamped != (times is not None) or stated != self._stated:
            # earlier rows have another kind of time, or none
            account.drop(reasons.NO_TIME, rows.lines)
            self._untimed += len(rows)
            return rows, stamps, np.full(len(rows), gpu_devices.NOT_NAMED, dtype=np.int64)
        codes = self._gpus.assign(rows, stamps, ~host)
        for left_out, reason in gpu_devices.LEFT_OUT.items():
            account.drop(reason, rows.lines[(codes == left_out) & ~host])
        codes = np.where(host, 0, codes + (codes >= 0))
        if times is None:
            # the n-th row of a device is n intervals after its first row
            for device in present(codes):
                own = np.flatnonzero(codes == device)
                counted = (self._counted[device] + np.arange(len(own))) * (self._options.interval or 0.0) * 1e6
                stamps[own] = np.rint(counted)
                self._counted[device] += len(own)
        elif self._gpus.named:
            stamps = clock.share_seconds(stamps, codes)
        wrong = clock.find_wrong_dates(stamps, codes)
        account.drop("stamp out of sequence", rows.lines[wrong])
        codes[wrong] = gpu_devices.NOT_NAMED
        if times is None or rows.zone:
            # neither counted times nor times in UTC are local
            self._zone = None
        return rows, stamps, codes

    def _place(self, rows: Rows, stamps: IntArray, devices: IntArray) -> IntArray:
        parts = {device: np.flatnonzero(devices == device) for device in present(devices)}
        for device, own in parts.items() if self._order is None else ():
            first, self._newest[device] = self._newest.get(device, int(stamps[own[0]])), int(stamps[own[-1]])
            if (np.diff(stamps[own], prepend=first) < 0).any():
                self._order = self._survey()
                break
        if self._order is not None:
            places = np.minimum(np.searchsorted(self._order.lines, rows.lines), len(self._order.lines) - 1)
            copies = self._order.copies[places] & (devices >= 0)
            self._account.drop("duplicate segment", rows.lines[copies])
            devices[copies] = gpu_devices.NOT_NAMED
            return self._order.times[places]
        times = stamps.copy()
        if self._zone is not None:
            times = clock.to_utc(stamps, self._zone)
            self._doubled += int((clock.fold_sizes(stamps[devices >= 0], self._zone) > 0).sum())
        for device, own in parts.items():
            name = self._gpus.ids[device]
            times[own] = self._clocks.setdefault(name, clock.Clock(name)).accept(times[own])
        return times

    def _survey(self) -> clock.Order:
        """Read the file again to find the time order of all rows, at 22 bytes of memory per row."""
        again = Extraction(self._file.again(), self._options, self._form, longest=self._longest)
        kinds: tuple[npt.DTypeLike, ...] = (np.uint32, np.int64, np.int16, np.uint64)
        found: list[list[npt.NDArray[Any]]] = [[], [], [], []]
        for rows, stamps, devices in again._parts():
            parts = (rows.lines, stamps, devices, hash_values(rows.data, len(rows)))
            for column, part, kind in zip(found, parts, kinds, strict=True):
                column.append(part[devices >= 0].astype(kind))
        order = clock.put_in_order([np.concatenate(found.pop(0)) for _ in kinds], again._gpus.ids, self._zone)
        self._clocks = order.clocks
        return order

    def _happened(self, rows: Rows, times: IntArray, devices: IntArray) -> None:
        kept = devices >= 0
        for column, why in rows.reasons.items():
            for code, cells in enumerate(np.bincount(why.codes[kept] + 1).tolist()[1:]):
                self._account.absent += Counter({(column, why.texts[code]): cells})
        self._account.date_messages(rows.lines[kept], times[kept])
        lost = rows.data.pop(LOST, None)
        figures = [values for name, values in rows.data.items() if name in _ANSWERS and not isinstance(values, Texts)]
        for texts in (*rows.reasons.values(), *([lost] if isinstance(lost, Texts) else [])):
            for code, text in enumerate(texts.texts):
                told = text in LOST_WORDS or texts is lost
                if not told and (text not in ERROR_WORDS or len(figures) < _FEW):
                    continue
                where = np.flatnonzero(kept & (texts.codes == code))
                # a GPU is not lost if another metric has a value
                where = where if told else where[np.all([np.isnan(values[where]) for values in figures], axis=0)]
                for device in present(devices[where]):
                    row = where[np.argmax(devices[where] == device)]
                    self._account.keep_event(f"[{text}]", int(rows.lines[row]), int(times[row]), self._gpus.ids[device])

    def _tables(self, rows: Rows, times: IntArray, devices: IntArray) -> Iterator["pa.Table"]:
        places = present(devices)
        # for small integers, a stable sort counts instead of comparing
        order: Any = np.argsort(devices.astype(np.int16), kind="stable")
        bounds = np.searchsorted(devices[order], [*places, devices.max(initial=0) + 1]).tolist()
        order = slice(None) if bounds == [0, len(times)] else order
        arrays = {
            "timestamp": to_arrow(times[order], pa.timestamp("us")),
            "imputed": to_arrow(repeat_value(value=np.False_, length=len(times)), pa.bool_()),
        }
        for name, values in rows.data.items():
            arrays |= {} if name in ATTRIBUTES else to_arrays(name, values[order])
        whole = pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
        for place, start, end in zip(places, bounds[:-1], bounds[1:], strict=True):
            own = whole.slice(start, end - start)
            if (end - start) * len(places) * 2 < len(times):
                # a slice would keep all rows in memory until the slice is written
                own = own.take(to_arrow(np.arange(end - start), pa.int64()))
            yield own.add_column(0, "device", category(self._gpus.ids[place], end - start))

    def _nothing(self) -> CodedProblem:
        rejected = self._account.rejected
        known = ", ".join(name.removeprefix("gpu:") for name in self._gpus.ids[1:])
        counts = ", ".join(f"{n} {reason}" for reason, (n, *_) in rejected.items())
        what = f"none of its {self._account.lines} lines contains GPU data" + (f" ({counts})" if counts else "")
        shown = [each for *_, found in rejected.values() for each in found]
        first = min(shown, key=lambda each: each.line, default=None)
        what += f"; for example, line {first.line}: {first.text}" if first else ""
        return next(
            problem
            for holds, problem in (
                (
                    reasons.NO_TIME in rejected,
                    (f"its rows ({', '.join(self._account.forms)}) have no time", _INTERVAL, "no_timestamps"),
                ),
                (reasons.OTHER_FORMAT in rejected, (what, "correct the format in the map", "other_time_format")),
                (
                    {*rejected} == {reasons.NOT_SELECTED},
                    ("it contains none of the selected GPUs", f"--gpus accepts {known}", "gpus_not_held"),
                ),
                ({*rejected} == {reasons.GPU_NOT_NAMED}, ("no row identifies its GPU", _NAME_GPUS, "no_gpu_named")),
                (True, (what, RECORDS_ONE, "no_usable_row")),
            )
            if holds
        )

    def outcome(self) -> "Outcome":
        clocks = list(self._clocks.values())
        quality = clock.measure(clocks, self._account.quality(self._notes()))
        if not self._stamped:
            quality = replace(quality, gaps=(), coverage_ratio=None, synthetic_time=True)
        known = {each.device for each in clocks}
        gpus = self._gpus.devices(averaged=self._account.averaged, mixed=self._is_mixed)
        return Outcome(
            devices=tuple(each for each in (*gpus, Device(id=HOST)) if each.id in known),
            quality=quality,
            span=(min(each.first or 0 for each in clocks), max(each.last or 0 for each in clocks)),
            intervals={each.device: each.interval for each in clocks if each.interval is not None},
            columns=tuple(self._account.columns),
            timezone=self._stated[0] if self._stated and self._stamped else None,
            tags=tuple(self._account.tags.items()),
        )

    def _notes(self) -> Iterable[str]:
        order, interval = self._order, self._options.interval
        rows = f"{format_count(self._doubled, 'row')} {'falls' if self._doubled == 1 else 'fall'}"
        notes: dict[str, object] = {
            _SEVERAL_WRITERS if self._is_shuffled else self._account.mixed_note: self._is_mixed,
            **dict.fromkeys(order.notes if order else (), True),
            f"{rows} in the hour that {self._zone} repeats in autumn. Its first occurrence is assumed.": self._doubled
            and not order,
            # a few rows with a time among many without may come from another program
            f"{self._untimed:,} rows have no timestamp and were left out. To read them, give --interval.": not interval
            and self._untimed > self._account.rows,
            "The log has timestamps, so --interval was not used.": self._stamped and interval,
        }
        return [*self._gpus.notes(), *(note for note in notes if notes[note]), *self._file.account.notes()]

    @property
    def _is_shuffled(self) -> bool:
        return self._order is not None and self._order.shuffled and not self._gpus.sure

    @property
    def _is_mixed(self) -> bool:
        unnamed = bool(self._account.mixed_note) and not self._gpus.named
        return self._is_shuffled or (unnamed and any(each.bunched() for each in self._clocks.values()))


def hash_values(columns: Mapping[str, Values], length: int) -> npt.NDArray[np.uint64]:
    """Hash the values of each row, regardless of column order."""
    hashes = np.zeros(length, dtype=np.uint64)
    for name, values in columns.items():
        if isinstance(values, Texts):
            known = np.array([*(crc32(str(text).encode()) for text in values.texts), 0], dtype=np.uint64)
            bits, valid = known[values.codes], values.codes >= 0
        else:
            # 0.0 and -0.0 are equal
            bits, valid = (values + 0.0).view(np.uint64), ~np.isnan(values)
        salt = np.uint64(crc32(name.encode()) | 1)
        mixed = (bits ^ (bits >> np.uint64(29)) ^ salt) * np.uint64(0xBF58476D1CE4E5B9) * salt
        hashes += np.where(valid, mixed ^ (mixed >> np.uint64(32)), np.uint64(0))
    return hashes
