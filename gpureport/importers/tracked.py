"""One run of a tracker being read; logs attached to it replace what was recorded of the devices that they cover."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import Rejected, merge_quality
from gpureport.errors import SourceError
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.reject_reasons import BESIDE_A_LOG, CHOSEN
from gpureport.importers.protocol.tracker import Attachment, Tracked, TrackerRun
from gpureport.importers.reading import Reading, compute_run_id, name_copies_by_url
from gpureport.importers.sources import identify_companion
from gpureport.importers.surveys import KEYS, shared_time
from gpureport.importers.tracker_series import measure_times
from gpureport.recording import Device, Recording, Run, Source
from gpureport.series_table import collect_series

_QUARTER = 15 * 60 * 1_000_000
_FARTHEST = 14 * 4
"""Quarters of an hour by which a zone may differ from UTC."""
_COVERED, _EQUAL = 0.8, 0.99
"""Share of a device's time that a log must cover to stand for it, and of the longest shared time that is as long."""
_UTILISATION = "gpu_utilization_ratio"


def _join_attachment(tracked: Tracked, attachment: Attachment, options: ReadOptions) -> Tracked:
    """Return a run in which the devices of an attached log replace its own; a note says why a log is not used.

    A log without a time zone is placed where it shares the most time with the run, in steps of a quarter of an hour.
    """
    name = attachment.name
    try:
        log = Reading([identify_companion(str(attachment.path))], options, Labels(name=name)).recording()
    except SourceError as error:
        return _add_note(tracked, f"{name} is attached to the run and not read: {error.what}.")
    offset = 0 if log.run.timezone is not None else _find_offset(log, tracked)
    if taken := [device for device in log.run.devices if _covers_device(tracked, log, offset, device)]:
        return _use_log(tracked, log, offset, taken, name)
    why = "it covers too little of it"
    if shared_time((log.run.started + offset, log.run.ended + offset), tracked.window) < 0:
        why = "it shares no time with the run"
    elif any(device.node for device in tracked.devices):
        why = "the run has several nodes, and nothing says of which it is"
    return _add_note(tracked, f"{name} is attached to the run and not used: {why}.")


def _add_note(tracked: Tracked, note: str) -> Tracked:
    return replace(tracked, quality=replace(tracked.quality, notes=(*tracked.quality.notes, note)))


def _find_offset(log: Recording, tracked: Tracked) -> int:
    """Return what to add to stamps without a zone, so that the log shares the most time with the run.

    Of several such offsets, the one wins at which the utilization fits the tracker best.
    """
    offsets = [quarters * _QUARTER for quarters in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs)]
    shared = {each: shared_time((log.run.started + each, log.run.ended + each), tracked.window) for each in offsets}
    most = max(shared.values())
    best = [offset for offset in offsets if shared[offset] >= _EQUAL * most]
    return min(best, key=lambda offset: _compare_utilization(log, tracked, offset)) if most > 0 else 0


def _compare_utilization(log: Recording, tracked: Tracked, offset: int) -> float:
    """Return how far the utilization of the GPUs in both differs on average; 0 where there is none to compare."""
    found = []
    for device in log.run.gpus:
        own, rows = tracked.series.get(device.id), log.rows_of(device.id)
        if own is None or _UTILISATION not in own.column_names or _UTILISATION not in rows.column_names:
            continue
        times, values = columns.integers(rows.column("timestamp")) + offset, columns.floats(rows.column(_UTILISATION))
        at = columns.integers(own.column("timestamp"))
        inside = (at >= times[0]) & (at <= times[-1])
        if inside.any():
            expected = columns.floats(own.column(_UTILISATION))[inside]
            found.append(float(np.nanmean(np.abs(np.interp(at[inside], times, values) - expected))))
    return float(np.mean(found)) if found else 0.0


def _covers_device(tracked: Tracked, log: Recording, offset: int, device: Device) -> bool:
    """Return whether a log covers most of the time of a device, or of the run where the tracker lacks the device."""
    span = tracked.window
    if device.id in tracked.series:
        span = _span(tracked.series[device.id])
    elif any(each.node for each in tracked.devices):
        # nobody can say which of several nodes it is a device of
        return False
    start, end = _span(log.rows_of(device.id))
    return shared_time((start + offset, end + offset), span) >= max(_COVERED * (span[1] - span[0]), 0)


def _span(table: "pa.Table") -> tuple[int, int]:
    times = columns.integers(table.column("timestamp"))
    return int(times[0]), int(times[-1])


def _use_log(tracked: Tracked, log: Recording, offset: int, taken: Sequence[Device], name: str) -> Tracked:
    """Return a run with the devices of a log that covers them; the values that it replaces count as left out."""
    series, known, replaced = dict(tracked.series), {device.id: device for device in tracked.devices}, 0
    for device in taken:
        own, rows = series.get(device.id), log.rows_of(device.id)
        if own is not None:
            replaced += sum(len(own) - own.column(each).null_count for each in set(own.column_names) - KEYS)
        times = columns.to_arrow(columns.integers(rows.column("timestamp")) + offset, pa.timestamp("us"))
        series[device.id] = rows.set_column(rows.column_names.index("timestamp"), "timestamp", times)
        # completed with what only the tracker knows
        names = ("memory_total_bytes", "power_limit_watts", "model")
        lacks = {each: getattr(known.get(device.id, device), each) for each in names if not getattr(device, each)}
        known[device.id] = replace(device, **lacks)
    devices = sorted(known.values(), key=lambda each: (each.index is None, each.node or "", each.index or 0))
    zone = f"in {log.run.timezone}"
    if log.run.timezone is None:
        hours, minutes = divmod(abs(offset) // 60_000_000, 60)
        zone = f"taken to be UTC{'-' if offset > 0 else '+'}{hours:02d}:{minutes:02d}, with which it fits the run best"
    named = ", ".join(device.id for device in taken)
    note = f"{name} is attached to the run and is read for {named} instead; its stamps are {zone}."
    noted = _add_note(tracked, note).quality
    quality = merge_quality([noted, log.run.quality])
    left_out = (Rejected(reason=BESIDE_A_LOG, rows=replaced, first_line=None),) if replaced else ()
    quality = replace(
        quality,
        rows_kept=quality.rows_kept - replaced,
        rejected=(*quality.rejected, *left_out),
        unfinished=noted.unfinished,
    )
    quality, interval, span = measure_times((series[device.id] for device in devices), quality)
    return replace(
        tracked,
        devices=tuple(devices),
        series=series,
        quality=quality,
        span=span or tracked.span,
        interval=interval,
        sources=(*tracked.sources, *(replace(source, locator=name) for source in log.run.sources)),
        state=f"{tracked.state}\n{log.run.sources[0].sha256}",
    )


class TrackedReading:
    """Reads one run of a tracker, as `Reading` reads one from logs."""

    sizes: tuple[int, ...] = ()
    """None: the bytes of a tracker say nothing about what is stored."""

    def __init__(self, kind: str, run: TrackerRun, options: ReadOptions, labels: Labels, *, strict: bool) -> None:
        """Prepare to read; with `strict`, a point that was not understood is an error.

        Raises:
            SettingsError: when there is no zone of the name given.
        """
        if options.tz:
            load_zone(options.tz)
        self._kind, self._of, self._options, self._strict = kind, run, options, strict
        self.labels, self.file_labels, self.locator = labels, Labels(), run.locator

    @cached_property
    def _tracked(self) -> Tracked:
        tracked = self._of.read(self._options)
        for attachment in tracked.attachments:
            tracked = _join_attachment(tracked, attachment, self._options)
        rejected = [entry for entry in tracked.quality.rejected if entry.reason not in CHOSEN]
        if self._strict and rejected:
            what = f"points were rejected: {', '.join(f'{each.rows} {each.reason}{each.at}' for each in rejected)}"
            raise SourceError(self.locator, what, "leave out --strict", code="points_rejected")
        return tracked

    def watch(self, seen: Callable[[int], None]) -> None:
        """Take who wants to be told of bytes; none are counted."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from, with the state it had."""
        state = sha256(self._tracked.state.encode()).hexdigest()
        own = Source(kind=self._kind, locator=self.locator, sha256=state, bytes=self._tracked.size)
        return (own, *self._tracked.sources)

    @property
    def run_id(self) -> str:
        """The run's id, from that of the tracker and the options that select or place rows."""
        return compute_run_id([f"{self._kind} {self._of.key}"], self._options)

    def batches(self) -> Iterator["pa.Table"]:
        """Yield a table of each device."""
        yield from self._tracked.series.values()

    def run(self) -> Run:
        """Return what is known about the run."""
        tracked = self._tracked
        run = Run(
            id=self.run_id,
            name=tracked.name,
            started=tracked.span[0],
            ended=tracked.span[1],
            timezone=self._options.tz or tracked.timezone,
            interval=tracked.interval,
            sources=self.sources,
            devices=tracked.devices,
            stages=tracked.stages,
            params=tracked.params,
            tags=tracked.tags,
            work=tracked.work,
            quality=tracked.quality,
        )
        return self.labels.applied(name_copies_by_url(run))

    def training(self) -> "pa.Table":
        """Return its training metrics."""
        return self._tracked.training

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Return nothing: a tracker names its metrics."""
        return ()

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        run = self.run()
        series = collect_series(self.batches(), [device.id for device in run.devices])
        return Recording(run=run, series=series, training=self.training())
