"""Reads `nvidia-smi --query-gpu=… --format=csv` logs: any columns, in any order, units in cells or not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from gpureport.errors import SourceError
from gpureport.importers import zones
from gpureport.importers.assembly import Assembly, Tally, Values, columns_of, strays
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
from gpureport.importers.raw import RawFile
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
        self._tally = Tally()
        self._devices = Devices(placement.gpus)
        self._assembly = Assembly(zones.zone(placement.tz) if placement.tz else None)
        self._averaged = False
        self._problem: str | None = None

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one GPU each.

        Raises:
            SourceError: when no row can be used, or no column tells several GPUs apart.
        """
        for parsed in Parser(QueryGpuDialect()).sections(pieces(self._file)):
            self._tally.add(parsed)
            for section in parsed.sections:
                self._problem = _problem(section.layout)
                if self._problem:
                    self._tally.drop(f"header with {self._problem}", section.numbers)
                else:
                    yield from self._section(section)
        self._check()

    def _section(self, section: Section) -> Iterator["pa.Table"]:
        self._averaged |= any(
            column.source == "power.draw.average" and column.target == "gpu_power_watts"
            for column in section.layout.columns
        )
        data = columns_of(section)
        codes, ids = self._devices.assign(data, section.times)
        self._tally.drop("GPU not named", section.numbers[codes == NOT_NAMED])
        self._tally.drop(NOT_SELECTED, section.numbers[codes == DROPPED])
        stray = (codes >= 0) & strays(section.times, codes)
        self._tally.drop("stamp out of sequence", section.numbers[stray])
        codes[stray] = NOT_NAMED
        self._tally.keep(section, codes >= 0)
        yield from self._assembly.batches(section.times, codes, ids, _series(expand(data)))

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
        clocks = list(self._assembly.clocks.values())
        return Outcome(
            devices=self._devices.devices(averaged=self._averaged),
            quality=self._tally.quality(clocks),
            span=(min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)),
            intervals={clock.device: clock.interval for clock in clocks if clock.interval is not None},
            rejects=self._tally.rejects(),
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
