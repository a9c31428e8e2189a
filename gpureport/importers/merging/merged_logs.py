"""Several logs of one run as one source: each is read once to learn what it holds, then all in the order of time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import AbsentCells, LogGap, Quality, Rejected, gap_seconds, merge_quality
from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging import device_gaps
from gpureport.importers.merging.device_plan import DevicePlan, plan_devices
from gpureport.importers.merging.log_overlap import RepeatedRowFilter
from gpureport.importers.merging.overlap_check import find_equal_logs
from gpureport.importers.merging.shared_devices import LogContents, Relation, Span, compare_logs
from gpureport.importers.protocol import time_bases
from gpureport.importers.protocol.importer import Extraction, Input, Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import TWICE
from gpureport.label_tags import merge_pairs
from gpureport.series_table import sort_by_time

_FINEST = 1e-3


class MergedLogs:
    """The logs of one run being read."""

    def __init__(self, inputs: Sequence[Input], files: Sequence[RawFile], options: ReadOptions) -> None:
        self._inputs = inputs
        self._files = files
        self._options = options
        self._plan = DevicePlan(order=(), names=(), devices=())
        self._outcomes: list[Outcome] = []
        self._bases: list[Outcome] = []
        self._parts: dict[str, list[tuple[int, Span]]] = {}
        self._twice: list[int] = [0] * len(inputs)
        self._unordered: set[int] = set()
        self._seams: dict[str, RepeatedRowFilter] = {}

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each, in time order within a device but for the time that two logs share.

        Raises:
            SourceError: when a log holds nothing that can be used, or their times cannot be compared.
        """
        logs = [self._learned(place) for place in range(len(self._inputs))]
        time_bases.check_time_bases(self._inputs, self._bases, self._options.tz)
        untold = [pair for pair, relation in compare_logs(logs).items() if relation is Relation.UNTOLD]
        self._plan = plan_devices(logs, find_equal_logs(logs, untold, self._aside))
        self._outcomes = [Outcome(devices=(), quality=Quality(), span=(0, 0))] * len(logs)
        for place in self._plan.order:
            for device, span in logs[place].spans.items():
                self._parts.setdefault(self._plan.names[place][device], []).append((place, span))
        self._seams = {name: RepeatedRowFilter(parts) for name, parts in self._parts.items()}
        for place in self._plan.order:
            names = self._plan.names[place]
            extraction = self._extraction(place)
            for batch in self._read(extraction, place):
                fresh = self._fresh(batch, names, place)
                if len(fresh):
                    yield fresh
            outcome = extraction.outcome()
            self._outcomes[place] = outcome.noted(self._files[place].account.notes())

    def _extraction(self, place: int) -> Extraction:
        options = self._options
        logs = [outcome for outcome, given in zip(self._bases, self._inputs, strict=False) if not given.beside]
        if self._inputs[place].beside and logs:
            starts, ends = zip(*(outcome.span for outcome in logs), strict=True)
            options = options.for_companion((min(starts), max(ends)))
        return self._inputs[place].importer.extract(self._files[place], options)

    def _aside(self, place: int) -> Iterator["pa.Table"]:
        """Yield the batches of one log, read for nothing but to be compared."""
        again = self._files[place].again()
        return self._read(self._inputs[place].importer.extract(again, self._options), place)

    def _read(self, extraction: Extraction, place: int) -> Iterator["pa.Table"]:
        """Yield the batches of one log, in time order even where the log has its rows in another."""
        try:
            if place in self._unordered:
                yield from _ordered(extraction)
            else:
                yield from extraction.batches()
        except SourceError as error:
            raise SourceError(self._inputs[place].locator, error.what, error.hint, code=error.code) from error

    def _learned(self, place: int) -> LogContents:
        """Return what a log holds, after reading it for nothing else."""
        spans: dict[str, Span] = {}
        extraction = self._extraction(place)
        for batch in self._read(extraction, place):
            device, times = _device(batch), columns.integers(batch.column("timestamp"))
            first, last = spans.get(device, (int(times[0]), int(times[0])))
            if times[0] < last or (times[1:] < times[:-1]).any():
                self._unordered.add(place)
            spans[device] = min(first, int(times.min())), max(last, int(times.max()))
        self._bases.append(extraction.outcome())
        devices = tuple(device for device in extraction.outcome().devices if device.id in spans)
        given = self._inputs[place]
        return LogContents(locator=given.locator, devices=devices, spans=spans, beside=given.beside)

    def _fresh(self, batch: "pa.Table", names: dict[str, str], place: int) -> "pa.Table":
        """Return the rows of a batch that no earlier log contains, under the device's name in the run."""
        name = names[_device(batch)]
        codes = columns.category(name, len(batch))
        renamed = batch.set_column(batch.column_names.index("device"), batch.schema.field("device"), codes)
        again = self._seams[name].find_repeated(renamed, place)
        if not again.any():
            return renamed
        self._twice[place] += int(again.sum())
        return renamed.filter(columns.to_arrow(~again, pa.bool_()))

    def outcome(self) -> Outcome:
        """Return what is known after the last batch.

        Raises:
            SourceError: when a host log shares no time with the logs.
        """
        log = [outcome for outcome, given in zip(self._outcomes, self._inputs, strict=True) if not given.beside]
        span = min(outcome.span[0] for outcome in log), max(outcome.span[1] for outcome in log)
        for outcome, given in zip(self._outcomes, self._inputs, strict=True):
            if outcome.span[1] < span[0] or outcome.span[0] > span[1]:
                what = "it covers another time than the GPU logs"
                raise SourceError(
                    given.locator, what, "check its clock, give --tz, or leave it out", code="no_shared_time"
                )
        intervals: dict[str, float] = {}
        for place in self._plan.order:
            for device, interval in self._outcomes[place].intervals.items():
                intervals.setdefault(self._plan.names[place][device], interval)
        return Outcome(
            devices=self._plan.devices,
            quality=self._quality(intervals),
            span=span,
            intervals=intervals,
            columns=tuple(dict.fromkeys(column for outcome in self._outcomes for column in outcome.columns)),
            timezone=log[0].timezone if len({outcome.timezone for outcome in log}) == 1 else None,
            tags=merge_pairs(outcome.tags for outcome in log),
        )

    def _quality(self, intervals: dict[str, float]) -> Quality:
        accounts = [
            replace(account, notes=tuple(f"{self._inputs[place].locator}: {note}" for note in account.notes))
            for place, account in ((place, self._account(place)) for place in self._plan.order)
        ]
        gaps = tuple(self._gaps(accounts, intervals))
        rejected: dict[str, Rejected] = {}
        absent = Counter[tuple[str, str]]()
        for cells in (cells for account in accounts for cells in account.absent_cells):
            absent[cells.column, cells.reason] += cells.cells
        for entry in (entry for account in accounts for entry in account.rejected):
            first = rejected.get(entry.reason, replace(entry, rows=0))
            rejected[entry.reason] = replace(first, rows=first.rows + entry.rows)
        return replace(
            merge_quality(accounts),
            rejected=tuple(rejected.values()),
            absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(absent.items())),
            gaps=gaps,
            coverage_ratio=self._coverage(gaps),
            notes=(*self._plan.notes, *(note for account in accounts for note in account.notes)),
        )

    def _account(self, place: int) -> Quality:
        names, account = self._plan.names[place], self._outcomes[place].quality
        twice = self._twice[place]
        rejected = (Rejected(reason=TWICE, rows=twice, first_line=None),) if twice else ()
        return replace(
            account,
            rows_kept=account.rows_kept - twice,
            rejected=(*account.rejected, *rejected),
            gaps=tuple(replace(gap, device=names[gap.device]) for gap in account.gaps),
            clock_steps=tuple(replace(step, device=names[step.device]) for step in account.clock_steps),
            log_events=tuple(
                replace(event, device=names.get(event.device or "", event.device)) for event in account.log_events
            ),
        )

    def outcomes(self) -> list[Outcome]:
        """Return what is known of each log as given, devices called as in the run, after the last batch."""
        return [self._outcome(place) for place in range(len(self._inputs))]

    def _outcome(self, place: int) -> Outcome:
        names, outcome = self._plan.names[place], self._outcomes[place]
        return replace(
            outcome,
            devices=tuple(replace(each, id=names.get(each.id, each.id)) for each in outcome.devices),
            intervals={names[device]: interval for device, interval in outcome.intervals.items()},
            quality=self._account(place),
        )

    def _gaps(self, accounts: Sequence[Quality], intervals: dict[str, float]) -> Iterator[LogGap]:
        """Yield the time without samples of each device, in its logs and between them; accounts as in the plan."""
        of = dict(zip(self._plan.order, accounts, strict=True))
        for device, parts in sorted(self._parts.items()):
            limit = gap_seconds(intervals.get(device, _FINEST)) * 1e6
            logs = [
                (span, [(gap.start, gap.end) for gap in of[place].gaps if gap.device == device])
                for place, span in parts
            ]
            for start, end in device_gaps.find_device_gaps(logs, limit):
                yield LogGap(device=device, start=start, end=end)

    def _coverage(self, gaps: Sequence[LogGap]) -> float | None:
        spans = [
            (min(start for _, (start, _) in parts), max(end for _, (_, end) in parts)) for parts in self._parts.values()
        ]
        whole = max(end for _, end in spans) - min(start for start, _ in spans)
        sampled = sum(end - start for start, end in spans) - sum(gap.end - gap.start for gap in gaps)
        return sampled / (whole * len(spans)) if whole else None


def _ordered(extraction: Extraction) -> Iterator["pa.Table"]:
    """Yield a whole log device by device, since its rows are in the order of time only then."""
    kept: dict[str, list[pa.Table]] = {}
    for batch in extraction.batches():
        kept.setdefault(_device(batch), []).append(batch)
    for device, tables in kept.items():
        yield sort_by_time(pa.concat_tables(tables, promote_options="default"), device)


def _device(batch: "pa.Table") -> str:
    name: Any = batch.column("device")[0].as_py()
    return str(name)
