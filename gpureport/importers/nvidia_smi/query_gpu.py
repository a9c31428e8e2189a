"""Reads `nvidia-smi --query-gpu=… --format=csv` logs: any columns, in any order, units in cells or not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from gpureport.errors import SourceError
from gpureport.importers import zones
from gpureport.importers.assembly import Assembly, Rows, Tally, Values, columns_of, strays
from gpureport.importers.base import NOT_SELECTED, Outcome, Placement
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.delimited.parts import Section
from gpureport.importers.delimited.pieces import head_text, pieces
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.devices import NOT_NAMED, Devices
from gpureport.importers.nvidia_smi.devices import NOT_SELECTED as DROPPED
from gpureport.importers.nvidia_smi.events import expand
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect
from gpureport.importers.nvidia_smi.torn import Torn
from gpureport.importers.plan import Plan
from gpureport.importers.raw import RawFile
from gpureport.importers.survey import survey
from gpureport.importers.writers import TORN
from gpureport.metrics import BY_NAME

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD = "record at least nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv -l 1"
_METRICS = frozenset({*BY_NAME, fields.CLOCK_EVENTS})


class NvidiaSmi:
    """The importer of nvidia-smi query logs."""

    kind: ClassVar[str] = "nvidia_smi"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and a GPU."""
        lines = head_text(head).splitlines()
        layouts = [layout for line in lines if (layout := QueryGpuDialect().header(line.strip())) is not None]
        return any(layout.holds(_METRICS) or layout.stamp is not None for layout in layouts)

    def extract(self, file: RawFile, placement: Placement) -> "QueryGpuExtraction":
        """Begin to read a log."""
        return QueryGpuExtraction(file, placement)


class QueryGpuExtraction:
    """One log being read."""

    def __init__(self, file: RawFile, placement: Placement) -> None:
        """Prepare to read; nothing is read yet."""
        self._file = file
        self._placement = placement
        self._tally = Tally()
        self._devices = Devices(placement.gpus)
        self._zone = zones.zone(placement.tz) if placement.tz else None
        self._assembly = Assembly(self._zone, self._survey)
        self._torn = Torn()
        self._averaged = False
        self._problem: str | None = None

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one GPU each.

        Raises:
            SourceError: when no row can be used, or no column tells several GPUs apart.
        """
        for section, rows in self._rows():
            placed = self._assembly.place(rows)
            self._tally.settle(section, placed)
            yield from self._assembly.batches(placed, _series(expand(rows.data)))
        self._check()

    def _rows(self) -> Iterator[tuple[Section, Rows]]:
        """Yield the sections of the log with the GPU each row belongs to."""
        for parsed in Parser(QueryGpuDialect()).sections(pieces(self._file)):
            self._tally.add(parsed)
            for section in parsed.sections:
                self._problem = _problem(section.layout)
                if self._problem:
                    self._tally.drop(f"header with {self._problem}", section.numbers)
                else:
                    yield section, self._assigned(section)

    def _survey(self) -> Plan:
        """Read the whole log once more, to see why its stamps run backwards."""
        again = QueryGpuExtraction(self._file.again(), self._placement)
        return survey((rows for _, rows in again._rows()), self._zone, sure=lambda: again._devices.sure)

    def _assigned(self, section: Section) -> Rows:
        """Return the rows of a section with the GPU each belongs to."""
        self._averaged |= any(
            column.source == "power.draw.average" and column.target == "gpu_power_watts"
            for column in section.layout.columns
        )
        data = columns_of(section)
        torn = self._torn.rows(data)
        self._tally.drop(TORN, section.numbers[torn])
        codes, ids = self._devices.assign(data, section.times, ~torn)
        self._tally.drop("GPU not named", section.numbers[(codes == NOT_NAMED) & ~torn])
        self._tally.drop(NOT_SELECTED, section.numbers[codes == DROPPED])
        stray = (codes >= 0) & strays(section.times, codes)
        self._tally.drop("stamp out of sequence", section.numbers[stray])
        codes[stray] = NOT_NAMED
        return Rows(lines=section.numbers, stamps=section.times, devices=codes, ids=ids, data=data)

    def _check(self) -> None:
        """Refuse a log of which nothing is left."""
        if self._tally.rows == 0:
            raise SourceError(str(self._file.path), *self._nothing())
        together = any(clock.bunched() for clock in self._assembly.clocks.values())
        if together and not self._devices.named:
            what = "several rows come at a time, so several GPUs were logged, and no column tells them apart"
            raise SourceError(str(self._file.path), what, "record index, uuid or pci.bus_id as well")

    def _nothing(self) -> tuple[str, str]:
        """Return why no row is left, and what to do."""
        if self._problem:
            return self._problem, _RECORD
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in self._tally.rejected.items())
        if set(self._tally.rejected) == {NOT_SELECTED}:
            held = ", ".join(map(str, self._devices.indices))
            return "it holds none of the GPUs selected", f"--gpus can name {held}"
        what = f"none of its {self._tally.lines} lines is a row that can be used"
        return what + (f" ({reasons})" if reasons else ""), _RECORD

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        clocks, plan = list(self._assembly.clocks.values()), self._assembly.plan
        devices = self._devices.devices(averaged=self._averaged)
        return Outcome(
            devices=devices if plan is None else tuple(plan.devices(devices)),
            quality=self._tally.quality(clocks, () if plan is None else plan.notes),
            span=(min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)),
            intervals={clock.device: clock.interval for clock in clocks if clock.interval is not None},
            rejects=self._tally.rejects(),
            renamed={} if plan is None else plan.renamed(),
        )


def _problem(layout: Layout) -> str | None:
    """Return what a header lacks, None when its rows can be used."""
    names = ", ".join(column.source for column in layout.columns)
    if layout.stamp is None:
        return f"no timestamp column among {names}"
    return None if layout.holds(_METRICS) else f"no GPU metric among the columns {names}"


def _series(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns that are series, not attributes of a device."""
    attributes = set(fields.ATTRIBUTES.values())
    return {name: value for name, value in data.items() if name not in attributes}
