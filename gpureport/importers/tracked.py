"""Reads one run of a tracker; attached logs replace the tracker's series for the devices that they cover."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import merge_quality
from gpureport.errors import SourceError
from gpureport.importers.account import BESIDE_A_LOG, CHOSEN
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol import Labels, ReadOptions
from gpureport.importers.protocol.tracker import RunInfo, SelectedRuns, Tracked
from gpureport.importers.reading import Reading, compute_run_id
from gpureport.importers.sources import identify_companion
from gpureport.importers.surveys import KEYS, find_span, shared_time
from gpureport.importers.tracker_series import list_rejected, measure_times
from gpureport.recording import Recording, Run, Source, collect_series
from gpureport.regular_files import name_by_url

_OFFSETS = [quarters * 15 * 60 * 1_000_000 for quarters in sorted(range(-14 * 4, 14 * 4 + 1), key=abs)]
_COVERED, _EQUAL = (
    0.8,
    60_000_000,
)  # least covered share of a device's time; microseconds within which times are equal


def _note(tracked: Tracked, note: str) -> Tracked:
    quality = replace(tracked.run.quality, notes=(*tracked.run.quality.notes, note))
    return replace(tracked, run=replace(tracked.run, quality=quality))


def _join_attachment(tracked: Tracked, name: str, path: Path, options: ReadOptions) -> Tracked:
    try:
        log = Reading([identify_companion(str(path))], options, Labels(name=name)).recording()
    except SourceError as error:
        return _note(tracked, f"{name} is attached to the run and not read: {error.what}.")
    window, offset, zone = tracked.lasted or (tracked.run.started, tracked.run.ended), 0, f"in {log.run.timezone}"
    if log.run.timezone is None:
        measured = (tracked.run.started, tracked.run.ended) if tracked.series else window
        shared = {each: shared_time((log.run.started + each, log.run.ended + each), measured) for each in _OFFSETS}
        fitting = [each for each, time in shared.items() if time > max(max(shared.values()) - _EQUAL, 0)]
        if len(fitting) > 1:
            return _note(tracked, f"{name} is attached to the run and not used: name the zone of its stamps with --tz.")
        hours, minutes = divmod(abs(offset := next(iter(fitting), 0)) // 60_000_000, 60)
        zone = f"taken to be UTC{'-' if offset > 0 else '+'}{hours:02d}:{minutes:02d}, with which it fits the run best"
    series, known, replaced, taken = dict(tracked.series), {each.id: each for each in tracked.run.devices}, 0, []
    has_nodes = any(each.node for each in tracked.run.devices)
    for device in log.run.devices:
        own, rows = series.get(device.id), log.rows_of(device.id)
        times = columns.integers(rows.column("timestamp")) + offset
        start, end = window if own is None else find_span(own)
        covered = shared_time((int(times[0]), int(times[-1])), (start, end))
        if (own is None and has_nodes) or covered < max(_COVERED * (end - start), 0):
            continue
        if own is not None:
            replaced += sum(len(own) - own.column(each).null_count for each in set(own.column_names) - KEYS)
        moved = columns.to_arrow(times, pa.timestamp("us"))
        series[device.id] = rows.set_column(rows.column_names.index("timestamp"), "timestamp", moved)
        # with facts that only the tracker knows
        names = ("memory_total_bytes", "power_limit_watts", "model")
        lacks = {each: getattr(known.get(device.id, device), each) for each in names if not getattr(device, each)}
        known[device.id] = replace(device, **lacks)
        taken.append(device.id)
    if not taken:
        why = "it covers too little of it, or the run has several nodes and nothing says of which it is"
        return _note(tracked, f"{name} is attached to the run and not used: {why}.")
    used = f"{name} is attached to the run and is read for {', '.join(taken)} instead; its stamps are {zone}."
    run = _note(tracked, used).run
    quality = merge_quality([run.quality, log.run.quality])
    rejected = (*quality.rejected, *list_rejected({BESIDE_A_LOG: replaced}))
    kept = quality.rows_kept - replaced
    quality = replace(quality, rows_kept=kept, rejected=rejected, unfinished=run.quality.unfinished)
    devices = sorted(known.values(), key=lambda each: (each.index is None, each.node or "", each.index or 0))
    quality, interval, span = measure_times((series[device.id] for device in devices), quality)
    started, ended = span or (run.started, run.ended)
    return replace(
        tracked,
        run=replace(run, devices=tuple(devices), quality=quality, interval=interval, started=started, ended=ended),
        series=series,
        sources=(*tracked.sources, *(replace(source, locator=name) for source in log.run.sources)),
        state=f"{tracked.state}\n{log.run.sources[0].sha256}",
    )


class TrackedReading:
    """Reads one run of a tracker, with the interface of `Reading`; its sources do not show what is stored."""

    sizes: tuple[int, ...] = ()

    def __init__(
        self, chosen: SelectedRuns, info: RunInfo, options: ReadOptions, labels: Labels, *, strict: bool
    ) -> None:
        if options.tz:
            load_zone(options.tz)
        self._kind, self._info, self._options, self._strict = chosen.tracker.kind, info, options, strict
        # a worker process gets this run without the others
        self._record = partial(chosen.tracker.record, chosen.store, info, chosen.selection)
        self.labels, self.file_labels = labels, Labels()
        self.locator = f"{self._kind}:{chosen.store.where}#{info.id}"

    @cached_property
    def _tracked(self) -> Tracked:
        if self._info.fault is not None:
            raise self._info.fault
        tracked = self._record(self._options)
        for name, path in tracked.attachments:
            tracked = _join_attachment(tracked, name, path, self._options)
        rejected = [entry for entry in tracked.run.quality.rejected if entry.reason not in CHOSEN]
        if self._strict and rejected:
            what = f"points were rejected: {', '.join(f'{each.rows} {each.reason}{each.at}' for each in rejected)}"
            raise SourceError(self.locator, what, "leave out --strict", code="points_rejected")
        return tracked

    @property
    def sources(self) -> tuple[Source, ...]:
        state = sha256(self._tracked.state.encode()).hexdigest()
        own = Source(kind=self._kind, locator=self.locator, sha256=state, bytes=self._tracked.size)
        return (own, *self._tracked.sources)

    @property
    def run_id(self) -> str:
        return compute_run_id([f"{self._kind} {self._info.key or self._info.id}"], self._options)

    def batches(self) -> Iterator["pa.Table"]:
        yield from self._tracked.series.values()

    def run(self) -> Run:
        run, zone = self._tracked.run, self._options.tz or self._tracked.run.timezone
        sources = tuple(replace(each, locator=name_by_url(each.locator)) for each in self.sources)
        quality = replace(run.quality, notes=tuple(map(name_by_url, run.quality.notes)))
        return self.labels.applied(replace(run, id=self.run_id, timezone=zone, sources=sources, quality=quality))

    def training(self) -> "pa.Table":
        return self._tracked.training

    def columns(self) -> tuple[tuple[str, str], ...]:
        return ()

    def recording(self) -> Recording:
        run = self.run()
        series = collect_series(self.batches(), [device.id for device in run.devices])
        return Recording(run=run, series=series, training=self.training())
