"""Reads a CSV with a timestamp and CPU columns, as a few lines of psutil write it.

A CPU value covers the time since the reading before; it is kept at the stamp of its reading.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import head_text, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import STAMP, Layout, make_layout, split_header
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.delimited.row_sections import LineKind, Section
from gpureport.importers.devices.column_values import ColumnsRead, columns_by_target
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.logs.host.recorder_csv.host_columns import interpret_heading
from gpureport.importers.ordering.backward_survey import survey_log
from gpureport.importers.ordering.placement_plan import PlacementPlan
from gpureport.importers.ordering.row_placement import AssignedRows, RowPlacement
from gpureport.importers.protocol.importer import Outcome, ReadOptions
from gpureport.importers.timebase import zones
from gpureport.importers.values import stamps
from gpureport.importers.values.cells import Column, extra_name, number_column
from gpureport.importers.values.numbers import Number
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST, Device

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = {
    "cpu_percent": ("cpu_utilization_ratio", "%"),
    "cpu_max_core_percent": ("cpu_busiest_core_ratio", "%"),
    "iowait_percent": ("cpu_iowait_ratio", "%"),
    "cpu_count": ("cpu_logical_cores", ""),
    "ram_used_mib": ("host_memory_used_bytes", "MiB"),
    "ram_total_mib": ("host_memory_total_bytes", "MiB"),
    "cpu_utilization_ratio": ("cpu_utilization_ratio", "1"),
    "cpu_busiest_core_ratio": ("cpu_busiest_core_ratio", "1"),
    "cpu_iowait_ratio": ("cpu_iowait_ratio", "1"),
    "cpu_logical_cores": ("cpu_logical_cores", ""),
    "host_memory_used_bytes": ("host_memory_used_bytes", "B"),
    "host_memory_total_bytes": ("host_memory_total_bytes", "B"),
}
"""Column of the CSV to column of the series and the unit it counts in."""
_FIRST = 100
"""Lines that are looked at."""
_PLAIN = re.compile(rf"{stamps.STAMP.pattern}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}} .*")


def _column(name: str) -> Column:
    if name == STAMP:
        return Column(target=STAMP, source=name, dtype="str", read=str)
    if name not in _COLUMNS:
        return Column(target=extra_name(name), source=name, dtype="str", read=str)
    target, unit = _COLUMNS[name]
    metric = BY_NAME[target]
    number = Number(unit=unit, base=metric.unit, whole=metric.dtype.startswith("int"), part=metric.unit == "1")
    return number_column(target, name, metric.dtype, number, unit)


class HostDialect:
    """Lines of a host CSV."""

    def header(self, line: str) -> Layout | None:
        """Return the columns of a header that names a timestamp and at least one known column."""
        delimiter, names = split_header(line)
        if STAMP not in names or not set(names) & _COLUMNS.keys():
            return None
        return make_layout([_column(name) for name in names], delimiter=delimiter, header=line)

    def classify(self, line: str) -> LineKind:
        """Return that any other line is rejected."""
        return LineKind.REJECTED if line else LineKind.NOISE


class HostCsv:
    """The importer of host CSVs."""

    kind: ClassVar[str] = "host"

    def identify(self, head: bytes) -> bool:
        """Return whether the first line is a header of these columns and the rows have stamps as nvidia-smi's."""
        lines = [line.strip() for line in head_text(head).splitlines()[:_FIRST]]
        found = HostDialect().header(lines[0]) if lines else None
        if found is None or found.stamp is None:
            return False
        names = {column.source for column in found.columns}
        if any(interpret_heading(name) for name in names - _COLUMNS.keys() - {STAMP}):
            # one column a core, or another metric
            return False
        rows = [line.split(found.delimiter) for line in lines[1:] if line]
        written = [row[found.stamp].strip() for row in rows if len(row) == len(found.columns)]
        return not written or any(_PLAIN.fullmatch(stamp) for stamp in written)

    def extract(self, file: RawFile, options: ReadOptions) -> "HostExtraction":
        """Begin to read a CSV."""
        return HostExtraction(file, options)


class HostExtraction:
    """One host CSV being read."""

    def __init__(self, file: RawFile, options: ReadOptions) -> None:
        self._file = file
        self._tally = Tally()
        self._zone = zones.load_zone(options.tz) if options.tz else None
        self._row_placement = RowPlacement(self._zone, self._survey)
        self._columns = ColumnsRead()

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of the host.

        Raises:
            SourceError: when no row can be used.
        """
        for section, rows in self._rows():
            placed = self._row_placement.place(rows)
            self._tally.settle(section, placed)
            yield from self._row_placement.batches(placed, rows.data)
        if self._tally.rows == 0:
            hint = "give a CSV with a timestamp and cpu_percent, the value of psutil.cpu_percent()"
            raise SourceError(
                str(self._file.path), "no row of host metrics that can be used", hint, code="no_usable_row"
            )

    def _rows(self) -> Iterator[tuple[Section, AssignedRows]]:
        for parsed in Parser(HostDialect()).sections(pieces(self._file)):
            self._tally.add(parsed)
            for section in parsed.sections:
                self._columns.see(section.layout)
                hosts = np.zeros(len(section.times), dtype=np.int64)
                data = columns_by_target(section)
                yield (
                    section,
                    AssignedRows(lines=section.numbers, stamps=section.times, devices=hosts, ids=[HOST], data=data),
                )

    def _survey(self) -> PlacementPlan:
        """Read the whole CSV once more, to see why its stamps run backwards."""
        again = HostExtraction(self._file.again(), ReadOptions())
        return survey_log((rows for _, rows in again._rows()), self._zone, sure=lambda: True)

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        (clock,) = self._row_placement.clocks.values()
        return Outcome(
            devices=(Device(id=HOST),),
            quality=self._tally.quality([clock], self._row_placement.notes()),
            span=(clock.first or 0, clock.last or 0),
            intervals={} if clock.interval is None else {HOST: clock.interval},
            columns=self._columns.metrics(),
        )
