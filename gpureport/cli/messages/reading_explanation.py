"""How sources were understood, for a person who checks the figures before trusting them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpureport.cli.messages import line_account
from gpureport.cli.messages.column_explanation import column_table, format_time, shorten_text
from gpureport.importers.protocol.interpretation import PLACE_IN_TICK
from gpureport.report.wording import display

if TYPE_CHECKING:
    from gpureport.data_quality import Quality
    from gpureport.importers import CutReading, Reading, TrackedReading
    from gpureport.importers.decoding.raw_file import Account
    from gpureport.importers.protocol.source_summary import SourceSummary
    from gpureport.recording import Device, Run

_DELIMITERS = {",": "commas", ";": "semicolons, decimal commas", "\t": "tabulators"}
_COLUMNS = {
    "header": "as its header says",
    "--columns": "as --columns says",
}
_KEYS = {"device", "timestamp", "imputed", "stage"}
_LISTED = 3
"""Gaps and steps of the clock that are listed."""
_BLOCKS = 30
"""Blocks that are listed."""
_QUOTED = 120
"""Characters of a rejected line that are quoted."""


def explain_reading(reading: "Reading | TrackedReading | CutReading", kind: str | None) -> Iterator[str]:
    """Yield how a run was understood, source by source; reads it, and stores nothing.

    Args:
        reading: the run, not yet read.
        kind: the kind a person named, None when the content decides.
    """
    rows = Counter[str]()
    columns: dict[str, dict[str, None]] = {}
    for batch in reading.batches():
        device = batch.column("device")[0].as_py()
        rows[device] += len(batch)
        columns.setdefault(device, {}).update(dict.fromkeys(batch.column_names))
    run = reading.run()
    counted = Counter[str]()
    for device, count in rows.items():
        counted[reading.renamed().get(device, device)] += count
    yield line_account.describe_size(run)
    sources = reading.sources_read()
    if not sources:
        yield from _tracked(run, rows, columns)
    sources_of = Counter(device.id for source in sources for device in source.outcome.devices)
    for source in sources:
        yield from _Source(source, run, counted, sources_of).lines(kind)
    if len(sources) > 1:
        yield "together"
        yield line_account.point_equation(run.quality) if run.tracked else line_account.line_equation(run.quality)
        yield from [f"  {line_account.count_gaps(run.quality)}"] if run.quality.gaps else []
        listed = {f"{source.given.locator}: {note}" for source in sources for note in source.outcome.quality.notes}
        yield from (f"  {note}" for note in run.quality.notes if note not in listed)


def _tracked(run: "Run", rows: Counter[str], columns: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield how a run of a tracker was understood: its devices with what is known of each, then its account."""
    yield from (f"  {source.locator}" for source in run.sources)
    for device in run.devices:
        yield f"  {device.id}: {rows[device.id]} rows of {', '.join(sorted(set(columns[device.id]) - _KEYS))}"
    yield from line_account.account_lines(run.quality, run.started, tracked=True)


@dataclass(frozen=True, slots=True)
class _Source:
    """One source of a run, as lines of text.

    Attributes:
        source: the source.
        run: the run.
        rows: rows of each device of the run.
        sources_of: how many sources hold each device.
    """

    source: "SourceSummary"
    run: "Run"
    rows: Counter[str]
    sources_of: Counter[str]

    def lines(self, kind: str | None) -> Iterator[str]:
        """Yield how it was understood; `kind` is the one a person named."""
        given = self.source.given
        yield shorten_text(given.locator, _QUOTED)
        named = "as the options say" if kind and not given.beside else "by its content"
        yield f"  kind: {given.importer.title}, {named}"
        size = self.source.file.size
        yield f"  file: {size:,} byte{line_account.plural(size)}{_form(self.source.file.account)}{self._cells()}"
        yield from self._columns()
        yield from self._blocks()
        yield from self._devices()
        yield from self._times()
        yield "  lines:"
        yield from (f"  {line}" for line in self._account())

    def _cells(self) -> str:
        """Return what parts cells, nothing where several forms may differ in that."""
        found = self.source.file.account
        if not found.delimiter:
            return ""
        cells = _DELIMITERS.get(found.delimiter, found.delimiter) + (", in quotes" if found.quoted else "")
        return "" if self.source.outcome.understanding.blocks else f"; cells separated by {cells}"

    def _blocks(self) -> Iterator[str]:
        """Yield where each block begins, what it is, and the line that says so."""
        blocks = self.source.outcome.understanding.blocks
        if blocks:
            yield f"  blocks: {len(blocks):,}"
        for block in blocks[:_BLOCKS]:
            yield f"    line {block.first_line:,}: {block.form}, {block.rows:,} rows in {block.lines:,} lines"
            yield f"      it begins {shorten_text(block.opening, _QUOTED)}"
        if len(blocks) > _BLOCKS:
            yield f"    {len(blocks) - _BLOCKS:,} more blocks"

    def _columns(self) -> Iterator[str]:
        outcome = self.source.outcome
        by = outcome.understanding.columns_by
        yield f"  columns: {', then '.join(_COLUMNS.get(each, f'as {each} writes them') for each in by)}"
        yield from (f"    {line}" for line in column_table(outcome.columns, outcome.understanding.gpus_by))
        yield from (f"    {note}" for note in outcome.understanding.columns_notes)

    def _devices(self) -> Iterator[str]:
        outcome = self.source.outcome
        gpus = [device for device in outcome.devices if device.index is not None]
        if gpus:
            identified = _describe_identification(
                outcome.understanding.gpus_by, len(gpus), mixed=any(gpu.mixed for gpu in gpus)
            )
            by_writer = any((gpu.node or "").startswith("writer_") for gpu in gpus)
            yield f"  GPUs: {len(gpus)}, {identified}{' and by the process that wrote them' if by_writer else ''}"
            yield from (f"    {note}" for note in outcome.understanding.gpus_notes)
        else:
            yield "  device: the machine"
        yield from (f"    {self._device(device)}" for device in outcome.devices)

    def _device(self, device: "Device") -> str:
        memory, rows = device.memory_total_bytes, self.rows[device.id]
        facts = (
            device.model,
            device.uuid and f"uuid {device.uuid}",
            device.bus_id and f"bus id {device.bus_id}",
            None if memory is None else display.memory(memory),
            f"{rows:,} row{line_account.plural(rows)}{' in all logs' if self.sources_of[device.id] > 1 else ''}",
        )
        return f"{device.id}: {', '.join(shorten_text(each, _QUOTED) for each in facts if each)}"

    def _times(self) -> Iterator[str]:
        outcome, zone = self.source.outcome, self.run.timezone
        quality, (first, last) = outcome.quality, outcome.span
        if quality.synthetic_time:
            yield f"  time: no time stamps; counted from --interval, 0 to {(last - first) / 1e6:g} s"
            return
        unknown = "zone unknown: local time of the recording machine (--tz names the zone)"
        stated = f"zone {outcome.timezone}, as its stamps say" if outcome.timezone else None
        yield f"  time: {stated or (unknown if zone is None else f'zone {zone}, as --tz says')}"
        interval = _every(sorted(outcome.intervals.values()))
        yield f"    {format_time(first, zone)} to {format_time(last, zone)}, {interval}"
        yield f"    {line_account.count_gaps(quality) if quality.gaps else 'no gaps'}"
        for gap in sorted(quality.gaps, key=lambda gap: gap.start - gap.end)[:_LISTED]:
            yield f"      {(gap.end - gap.start) / 1e6:.0f} s from {format_time(gap.start, zone)} on ({gap.device})"
        yield from (f"    {line}" for line in self._order())

    def _order(self) -> Iterator[str]:
        """Yield whether the stamps run backwards, and why."""
        notes, steps = self.source.outcome.understanding.order_notes, self.source.outcome.quality.clock_steps
        yield "stamps never run backwards" if notes is None else "stamps run backwards"
        yield from notes or ()
        for step in steps[:_LISTED]:
            shifted = f"; later ones shifted by {step.shift_seconds:+.1f} s" if step.shift_seconds else ""
            at = format_time(step.at, self.run.timezone)
            yield f"  {step.step_seconds:+.1f} s at {at} ({step.device}): {step.cause}{shifted}"
        if len(steps) > _LISTED:
            yield f"  {len(steps) - _LISTED} more step{line_account.plural(len(steps) - _LISTED)}"

    def _account(self) -> list[str]:
        """Return what became of every line, without what is listed above."""
        quality = self.source.outcome.quality
        quoted = {line.reason: shorten_text(line.text, _QUOTED) for line in self.source.first_lines()}
        return line_account.account_lines(
            _leave_out_listed(quality, self.source.outcome.understanding.notes), self.run.started, quoted
        )


def _leave_out_listed(quality: "Quality", listed: tuple[str, ...]) -> "Quality":
    notes = tuple(note for note in quality.notes if note not in listed)
    return replace(quality, gaps=(), clock_steps=(), synthetic_time=False, notes=notes)


def _form(found: "Account") -> str:
    """Return how a file is packed and written."""
    mark = " with a byte order mark" if found.marked else ""
    ends = {
        "LF": found.newlines - found.pairs - found.returns,
        "CRLF": found.pairs,
        "CR": found.returns,
    }
    used = {name: count for name, count in ends.items() if count}
    lines = ", ".join(f"{n:,} {name}" for name, n in used.items()) if len(used) > 1 else next(iter(used), "nothing")
    packed = f", {found.compression}" if found.compression else ""
    return f"{packed}; {found.encoding.upper()}{mark}; lines end with {lines}"


def _describe_identification(by: tuple[str, ...], count: int, *, mixed: bool) -> str:
    """Return what distinguished the GPUs."""
    if mixed:
        return "perhaps several: no column identifies them"
    if PLACE_IN_TICK in by:
        return f"identified by their {PLACE_IN_TICK}"
    if not by:
        return "no column identifies it: read as the only one"
    if count == 1 and by == ("name",):
        return "all rows name one model, and no other column identifies GPUs"
    return f"identified by {', else '.join(by)}"


def _every(intervals: list[float]) -> str:
    if not intervals:
        return "one sample"
    low, high = intervals[0], intervals[-1]
    return f"median interval {low:g} s" if low == high else f"median interval {low:g} to {high:g} s by device"
