"""Defines a log's columns and `Rows`, which every form yields, and converts cells to values."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, count, groupby, islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from gpureport.columns import (
    BoolArray,
    FloatArray,
    IntArray,
    categories,
    floats,
    nan_to_null,
    read_codes,
    strings_to_arrow,
    to_arrow,
)
from gpureport.importers.account import Account
from gpureport.importers.clock import read_times
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS
from gpureport.parsing import MOST, UNITS, parse_quantity
from gpureport.recording import METRIC_TYPES
from gpureport.redaction import redact_text

TIME, MASK, HOST_ROW, LOST = "timestamp", "clock_events", "host", "lost"
"""Columns that are not metrics; LOST contains messages about lost GPUs."""
NAMES = ("uuid", "bus_id", "serial", "index", "model")
ATTRIBUTES = (*NAMES, "driver", "mig")
CUT = "cut"
"""Reason for ignoring a cell that may be cut off."""
_SOURCE_UNITS = {"1": "%", "By": "MiB", "W": "W", "Hz": "MHz", "Cel": "C", "s": "us", "J": "mJ", "By/s": "MB/s"}
"""Unit in nvidia-smi for each base unit, unless a heading or cell specifies one."""


def absence(text: str) -> str | None:
    """Return why a cell has no value, such as `[text in brackets]`, or None if it has one."""
    bracketed = text.startswith("[") and text.endswith("]")
    return text[1:-1] if bracketed else (text or "empty") if text in {"N/A", "-", "ERR!", "nan", ""} else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a log: the metric or attribute that it fills (`target`), and how its cells are read.

    `source` is its name, or the field that its `heading` was `translated` to. `unit` applies to numbers without a
    unit.
    """

    target: str
    source: str
    read: Callable[[str], Any] = field(default=str, compare=False)
    unit: str = ""
    stated: str = ""
    heading: str = field(default="", compare=False)
    translated: bool = field(default=False, compare=False)
    decimal: str = "."


def extra_name(source: str) -> str:
    return "extra_" + "".join(character if character.isalnum() else "_" for character in redact_text(source))


def make_column(target: str, source: str, unit: str = "", decimal: str = ".", **more: Any) -> Column:
    """Return a column, or an extra one if `target` is empty. `unit` is the heading's unit."""
    metric, assumed = BY_NAME.get(target), ""
    read: Callable[[str], Any] = str
    if metric is not None and metric.dtype == "bool":
        read = {"Active": True, "Not Active": False, "Yes": True, "No": False}.get
    elif target in _PATTERNS or (metric is not None and not metric.unit):
        read = partial(_code, target=target)
    elif metric is not None:
        assumed = unit or ("Hz" if target == "gpu_encoder_frame_rate_hertz" else _SOURCE_UNITS[metric.unit])
        read = partial(_number, target=target, unit=assumed, decimal=decimal)
    target = target or extra_name(source)
    return Column(target=target, source=source, read=read, unit=assumed, stated=unit, decimal=decimal, **more)


def _code(text: str, *, target: str) -> Any:
    pattern, value = _PATTERNS.get(target, ("[0-9]{1,20}", int))
    found = value(text) if re.fullmatch(pattern, text) else None
    most = np.iinfo(BY_NAME[target].dtype).max if target in BY_NAME else math.inf
    return None if isinstance(found, int) and found > most else found


_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])")


def _is_part(target: str) -> bool:
    return BY_NAME[target].unit == "1" and not BY_NAME[target].may_exceed_one


def _number(text: str, *, target: str, unit: str, decimal: str) -> float | None:
    metric = BY_NAME[target]
    if decimal == ",":
        grouped = _GROUPED.match(text)
        # a dot that comes before a comma or another dot separates thousands
        if grouped and (metric.dtype == "int64" or metric.unit == "Hz" or "," in text or grouped[0].count(".") > 1):
            text = grouped[0].replace(".", "") + text[grouped.end() :]
        text = text.replace(",", ".")
    value = parse_quantity(text, unit, metric.unit)
    value = None if value is None or (value > 1 and _is_part(target)) else value
    return value if value is None or metric.dtype != "int64" else round(value)


_PATTERNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    MASK: ("0[xX][0-9a-fA-F]{1,16}", lambda text: int(text, 16)),
    "index": ("[0-9]{1,4}", str),
    "mig": ("Enabled|Disabled", str),
    "gpu_performance_state": ("P(?:1[0-5]|[0-9])", lambda text: int(text[1:])),
}


@dataclass(slots=True)
class Texts:
    """Strings as one code per row (-1 if missing), and the string for each code."""

    codes: npt.NDArray[np.int32]
    texts: list[Any]

    @classmethod
    def of(cls, found: Iterable[Hashable | None]) -> "Texts":
        places: dict[Hashable, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in found]
        return cls(np.array(codes, dtype=np.int32), list(places))

    def __getitem__(self, rows: npt.NDArray[Any] | slice) -> "Texts":
        return Texts(self.codes[rows], self.texts)

    def used(self) -> list[Any]:
        return [self.texts[code] for code in np.flatnonzero(np.bincount(self.codes + 1)[1:]).tolist()]


Values = FloatArray | Texts


@dataclass(slots=True)
class Rows:
    """Rows of a log in line order. If a line has several rows, they get consecutive line numbers.

    `times` are as written, or in UTC if timestamps specify a `zone`. `data` contains columns by target:
    numbers in base units (NaN if missing), or `Texts`. `reasons` contains the reasons for missing values by the
    column's name in the log.
    """

    lines: IntArray
    times: IntArray | None
    data: dict[str, Values]
    zone: str | None = None
    reasons: dict[str, Texts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, rows: BoolArray | IntArray) -> "Rows":
        return Rows(
            self.lines[rows],
            None if self.times is None else self.times[rows],
            {name: values[rows] for name, values in self.data.items()},
            self.zone,
            {name: texts[rows] for name, texts in self.reasons.items()},
        )


def decode(columns: Sequence[Column], cells: Sequence[Any], lines: IntArray) -> tuple[Rows, dict[str, BoolArray]]:
    rows, faults = Rows(lines, None, {}), dict[str, BoolArray]()
    for column, texts in sorted(zip(columns, cells, strict=True), key=lambda pair: pair[0].target == TIME):
        if column.target == TIME:
            rows.times, valid, rows.zone = read_times(texts)
            rows.zone = rows.zone or ("UTC" if re.search("(?i)(?<![a-z])utc(?![a-z])", column.heading) else None)
            wrong = ~valid
        else:
            rows.data[column.target], reasons, wrong = _decode_column(column, texts)
            if reasons is not None:
                rows.reasons[column.source] = reasons
        if wrong.any():
            faults[f"malformed {column.source}"] = wrong
    return rows, faults


_MANY = 200


@lru_cache(200_000)
def _read_text(read: Callable[[str], Any], text: str) -> tuple[Any, str | None]:
    why_not = absence(text.strip())
    return None if why_not is not None else read(text.strip()), why_not


def _decode_column(column: Column, cells: Any) -> tuple[Values, Texts | None, BoolArray]:
    held: Any = cells if isinstance(cells, pa.DictionaryArray) else strings_to_arrow(list(cells)).dictionary_encode()
    coded, codes = held.dictionary, read_codes(held.indices)
    none = np.zeros(len(cells), dtype=np.bool_)
    numbers = _read_numbers(column, coded) if column.unit and column.decimal == "." and len(coded) > _MANY else None
    if numbers is not None:
        gone = np.isnan(numbers).tolist()
        texts: Any = coded.to_pylist() if any(gone) else []
        whys = Texts.of(absence(text.strip()) if lost else None for text, lost in zip(texts, gone, strict=False))
        return numbers[codes], whys[codes] if texts else None, none
    read = [_read_text(column.read, str(text)) for text in coded.to_pylist()]
    values = [value for value, _ in read]
    reasons = Texts.of(why_not for _, why_not in read)
    bad = np.array([value is None for value in values], dtype=np.bool_) & (reasons.codes < 0)
    wrong = bad[codes] if bad.any() else none
    why = reasons[codes] if reasons.texts else None
    is_number = column.target in BY_NAME and column.target != MASK
    return np.array(values, dtype=np.float64)[codes] if is_number else Texts.of(values)[codes], why, wrong


def _read_numbers(column: Column, cells: "pa.Array[Any]") -> FloatArray | None:
    """Return numbers (NaN if missing), or None if units differ or a value is impossible."""
    metric, none = BY_NAME[column.target], pa.nulls(1, pa.string())[0]
    texts = pc.utf8_trim_whitespace(cells)
    suffix = next((text for text in texts[:_MANY].to_pylist() if text and text[0] != "["), "").lstrip("+-.0123456789")
    unit = UNITS.get(suffix.strip() or column.unit)
    pattern = rf"^(?:[+-]?[0-9]+(?:\.[0-9]+)?{re.escape(suffix)}|\[.*\])$"
    if unit is None or unit.base != metric.unit or not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        return None
    texts = pc.if_else(pc.starts_with(texts, "["), none, pc.utf8_slice_codeunits(texts, 0, -len(suffix) or None))
    numbers: Any = pc.cast(texts, pa.float64())
    values: FloatArray = floats(numbers) * unit.numerator / unit.denominator
    low = -MOST if metric.unit == "Cel" else 0
    high = 1 if _is_part(column.target) else np.nextafter(MOST, 0)
    if not (((values >= low) & (values <= high)) | np.isnan(values)).all():
        return None
    return np.rint(values) if metric.dtype == "int64" else values


_TOGETHER = 20_000
Record = dict[str, Any]
Stamp = tuple[int, bool] | None
"""A time in microseconds, and whether it is UTC, as returned by `parse_time`."""


def form(records: Callable[..., Iterable[Record]]) -> Callable[..., Iterator[Rows]]:
    """Turn a function that yields one record per row into a form that yields `Rows`.

    A record is `{"line": 1, "timestamp": Stamp, "index": "0", "gpu_power_watts": 250.0}`. A missing
    value is None or left out. `"host": True` marks a row about the machine.
    """

    def read(lines: Iterable[str], first: int, account: Account, **more: Any) -> Iterator[Rows]:
        remaining, last = iter(records(lines, first, account, **more)), 0
        while part := list(islice(remaining, _TOGETHER)):
            for record in part:
                last = record["line"] = max(last + 1, record["line"])
            for zone, alike in groupby(part, key=lambda record: record[TIME] and record[TIME][1]):
                rows = list(alike)
                cells = {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}
                numbers = np.array(cells.pop("line"), dtype=np.int64)
                times: list[Any] = cells.pop(TIME)
                moments = None if zone is None else np.array([time[0] for time in times], dtype=np.int64)
                data: dict[str, Values] = {
                    name: np.array(own, dtype=np.float64) if name in BY_NAME or name == HOST_ROW else Texts.of(own)
                    for name, own in cells.items()
                }
                yield Rows(numbers, moments, data, "UTC" if zone else None)

    return read


def to_arrays(name: str, values: Values) -> dict[str, "pa.Array[Any]"]:
    if not isinstance(values, Texts):
        kind = METRIC_TYPES[name]
        if pa.types.is_integer(kind):
            # a sum that overflows its counter is not a reading
            values = np.where(np.abs(values) <= float(np.iinfo(BY_NAME[name].dtype).max), values, np.nan)
        return {name: nan_to_null(values, kind)}
    if name != MASK:
        texts = [str(text) for text in values.texts] or [""]
        return {name: categories(values.codes.astype(np.int64), texts, values.codes >= 0)}
    bits = np.array([*values.texts, 0], dtype=np.uint64)[values.codes]
    valid = values.codes >= 0
    found = {f"clock_event_{reason}": (bits & np.uint64(bit)) != 0 for reason, bit in CLOCK_EVENT_BITS.items()}
    unknown = bits & ~np.uint64(sum(CLOCK_EVENT_BITS.values()))
    arrays = {each: to_arrow(flags, METRIC_TYPES[each], valid) for each, flags in found.items()}
    return arrays | {"clock_event_unknown_bits": to_arrow(unknown, pa.uint64(), valid)}


_CODED = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Layout:
    columns: tuple[Column, ...]
    delimiter: str = ","
    header: str = field(default="", compare=False)

    @property
    def stamp(self) -> int | None:
        return next((place for place, column in enumerate(self.columns) if column.target == TIME), None)


def make_layout(
    columns: Sequence[Column], preferred: frozenset[str] = frozenset(), delimiter: str = ",", header: str = ""
) -> Layout:
    """Return a layout that reads each target from its `preferred` column or, failing that, its first."""
    # the last one wins
    order = sorted(enumerate(columns), key=lambda pair: (pair[1].source in preferred, -pair[0]))
    chosen = {column.target: place for place, column in order}
    taken, found = set(chosen), list(columns)
    for place in sorted({*range(len(found))} - {*chosen.values()}):
        aside = make_column("", found[place].source, found[place].stated, heading=found[place].heading)
        names = chain([aside.target], (f"{aside.target}_{number}" for number in count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        found[place] = replace(aside, target=name)
    return Layout(tuple(found), delimiter, header)


def scan(data: bytes, layout: Layout) -> tuple[list["pa.Array[Any]"], list[int]]:
    odd: list[int] = []

    def skip(row: csv.InvalidRow) -> Literal["skip"]:
        odd.append((row.number or 1) - 1)
        return "skip"

    kinds: dict[str, pa.DataType] = {
        str(place): pa.string() if column.target == TIME else _CODED for place, column in enumerate(layout.columns)
    }
    buffer: Any = pa.BufferReader(data or b"\n")
    table = csv.read_csv(
        buffer,
        csv.ReadOptions(column_names=list(kinds), block_size=len(data) + 2, use_threads=False),
        csv.ParseOptions(
            delimiter=layout.delimiter, quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        csv.ConvertOptions(column_types=kinds, strings_can_be_null=False, check_utf8=False),
    )
    columns: Any = table.combine_chunks().columns
    return [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in columns], odd


def without_faults(rows: Rows, faults: dict[str, BoolArray]) -> tuple[Rows, list[tuple[int, str]]]:
    """Return the intact rows, and the position and first fault of each faulty row."""
    bad = np.zeros(len(rows), dtype=np.bool_)
    found: list[tuple[int, str]] = []
    for reason, wrong in faults.items():
        found += [(place, reason) for place in np.flatnonzero(wrong & ~bad).tolist()]
        bad |= wrong
    return (rows.select(~bad) if found else rows), found
