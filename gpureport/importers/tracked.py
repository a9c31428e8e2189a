"""One run of a tracker being read; logs attached to it replace what was recorded of the devices that they cover."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS
from gpureport.importers.protocol.reject_reasons import BESIDE_A_LOG, CHOSEN
from gpureport.importers.protocol.tracker import Attachment, Tracked, TrackerRun
from gpureport.importers.reading import Reading
from gpureport.importers.run_facts import format_identity_options, name_copies_by_url
from gpureport.importers.sources import identify
from gpureport.importers.surveys import KEYS, shared_time
from gpureport.importers.trackers.device_tables import add_timing, read_clocks
from gpureport.recording import Device, Recording, Run, Source
from gpureport.series_table import arrange_series

_QUARTER = 15 * 60 * 1_000_000
_FARTHEST = 14 * 4
"""Quarters of an hour by which a zone may differ from UTC."""
_COVERED = 0.8
"""Share of a device's time that a log must cover to stand for it (pragmatic)."""
_EQUAL = 0.99
_UTILISATION = "gpu_utilization_ratio"


def join_attached_logs(tracked: Tracked, options: ReadOptions) -> Tracked:
    """Return a run in which the devices of the attached logs replace its own.

    A log without a time zone is placed where it shares the most time with the run, in steps of a quarter of an hour.
    A note names each log that is not used.
    """
    for attachment in tracked.attachments:
        try:
            recording = _read_attachment(attachment, options)
            offset = 0 if recording.run.timezone is not None else _find_offset(recording, tracked)
            if shared_time(_span(recording, offset), tracked.window) < 0:
                what = "it shares no time with the run"
                hint = "attach the log of this run"
                raise SourceError(attachment.name, what, hint, code="no_shared_time")
        except SourceError as error:
            tracked = _add_note(tracked, f"{attachment.name} is attached to the run and not read: {error.what}.")
            continue
        taken = [device for device in recording.run.devices if _covers_device(tracked, recording, offset, device)]
        if taken:
            tracked = _use_log(tracked, recording, offset, taken, attachment.name)
        else:
            several = any(device.node for device in tracked.devices)
            why = (
                "the run has several nodes, and nothing says of which it is"
                if several
                else "it covers too little of it"
            )
            tracked = _add_note(tracked, f"{attachment.name} is attached to the run and not used: {why}.")
    return tracked


def _add_note(tracked: Tracked, note: str) -> Tracked:
    return replace(tracked, quality=replace(tracked.quality, notes=(*tracked.quality.notes, note)))


def _read_attachment(attachment: Attachment, options: ReadOptions) -> Recording:
    """Return an attached log.

    Raises:
        SourceError: when it is none.
    """
    try:
        given = identify(str(attachment.path), IMPORTERS)
    except SourceError:
        try:
            given = identify(str(attachment.path), HOST_IMPORTERS)
        except SourceError as error:
            raise error.at(attachment.name) from error
    return Reading([given], options, Labels(name=attachment.name)).recording()


def _span(recording: Recording, offset: int) -> tuple[int, int]:
    return recording.run.started + offset, recording.run.ended + offset


def _find_offset(recording: Recording, tracked: Tracked) -> int:
    """Return what to add to stamps without a zone, so that the log shares the most time with the run.

    Of several such offsets, the one wins at which the utilization fits the tracker best.
    """
    shared = {
        quarters * _QUARTER: shared_time(_span(recording, quarters * _QUARTER), tracked.window)
        for quarters in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs)
    }
    most = max(shared.values())
    best = [offset for offset, seconds in shared.items() if seconds >= _EQUAL * most]
    return min(best, key=lambda offset: _utilization_difference(recording, tracked, offset)) if most > 0 else 0


def _utilization_difference(recording: Recording, tracked: Tracked, offset: int) -> float:
    """Return how far the utilization of the GPUs in both differs on average; 0 where there is none to compare."""
    found = []
    for device in recording.run.gpus:
        own, rows = tracked.series.get(device.id), recording.rows_of(device.id)
        if own is None or _UTILISATION not in own.column_names or _UTILISATION not in rows.column_names:
            continue
        times, values = columns.integers(rows.column("timestamp")) + offset, columns.floats(rows.column(_UTILISATION))
        at = columns.integers(own.column("timestamp"))
        inside = (at >= times[0]) & (at <= times[-1])
        if inside.any():
            expected = columns.floats(own.column(_UTILISATION))[inside]
            found.append(float(np.nanmean(np.abs(np.interp(at[inside], times, values) - expected))))
    return float(np.mean(found)) if found else 0.0


def _covers_device(tracked: Tracked, recording: Recording, offset: int, device: Device) -> bool:
    """Return whether a log covers most of the time of a device, or of the run where the tracker lacks the device."""
    span = tracked.window
    if device.id in tracked.series:
        times = columns.integers(tracked.series[device.id].column("timestamp"))
        span = int(times[0]), int(times[-1])
    elif any(each.node for each in tracked.devices):
        # nobody can say which of several nodes it is a device of
        return False
    times = columns.integers(recording.rows_of(device.id).column("timestamp")) + offset
    return shared_time((int(times[0]), int(times[-1])), span) >= max(_COVERED * (span[1] - span[0]), 0)


def _use_log(tracked: Tracked, recording: Recording, offset: int, taken: Sequence[Device], name: str) -> Tracked:
    """Return a run with the devices of a log that covers them; the values that it replaces count as left out."""
    series, run = dict(tracked.series), recording.run
    instead = 0
    for device in taken:
        own, rows = series.get(device.id), recording.rows_of(device.id)
        for column in set(own.column_names) - KEYS if own is not None else ():
            instead += len(own) - own.column(column).null_count  # type: ignore[union-attr, arg-type] # it has columns
        times = columns.to_arrow(columns.integers(rows.column("timestamp")) + offset, pa.timestamp("us"))
        series[device.id] = rows.set_column(rows.column_names.index("timestamp"), "timestamp", times)
    known = {device.id: device for device in tracked.devices}
    for device in taken:
        # completed with what only the tracker knows
        own_names = ("memory_total_bytes", "power_limit_watts", "model")
        lacks = {each: getattr(known.get(device.id, device), each) for each in own_names if not getattr(device, each)}
        known[device.id] = replace(device, **lacks)
    devices = sorted(known.values(), key=lambda each: (each.index is None, each.node or "", each.index or 0))
    seen = read_clocks([series[device.id] for device in devices])
    rates = sorted(clock.interval for clock in seen if clock.interval is not None)
    if run.timezone is not None:
        zone = f"in {run.timezone}"
    else:
        minutes = -offset // 60_000_000
        hours = f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
        zone = f"taken to be {hours}, with which it fits the run best"
    named = ", ".join(device.id for device in taken)
    note = f"{name} is attached to the run and is read for {named} instead; its stamps are {zone}."
    one, other = tracked.quality, run.quality
    left = [Rejected(reason=BESIDE_A_LOG, rows=instead, first_line=None)] if instead else []
    quality = replace(
        one,
        lines=one.lines + other.lines,
        rows_kept=one.rows_kept + other.rows_kept - instead,
        rejected=(*one.rejected, *other.rejected, *left),
        headers=one.headers + other.headers,
        noise=one.noise + other.noise,
        events=one.events + other.events,
        continued=one.continued + other.continued,
        absent_cells=(*one.absent_cells, *other.absent_cells),
        clock_steps=(*one.clock_steps, *other.clock_steps),
        log_events=(*one.log_events, *other.log_events),
        notes=(*one.notes, note, *other.notes),
    )
    return replace(
        tracked,
        devices=tuple(devices),
        series=series,
        quality=add_timing(quality, seen),
        span=(min(clock.first or 0 for clock in seen), max(clock.last or 0 for clock in seen)),
        interval=rates[len(rates) // 2] if rates else None,
        sources=(*tracked.sources, *(replace(source, locator=name) for source in run.sources)),
        state=f"{tracked.state}\n{run.sources[0].sha256}",
    )


class TrackedReading:
    """Reads one run of a tracker, as `Reading` reads one from logs."""

    sizes: tuple[int, ...] = ()
    """Bytes of its sources; none, since they say nothing about what is stored."""
    work = 0
    """Bytes that are read; not known."""

    def __init__(self, kind: str, run: TrackerRun, options: ReadOptions, labels: Labels, *, strict: bool) -> None:
        """Prepare to read; nothing is read yet.

        Args:
            kind: kind of the tracker.
            run: the run.
            options: how to select and place rows.
            labels: what a person says about the run.
            strict: whether a point that was not understood is an error.

        Raises:
            SettingsError: when there is no zone of the name given.
        """
        if options.tz:
            load_zone(options.tz)
        self._kind, self._of, self._options, self._strict = kind, run, options, strict
        self.labels, self.file_labels = labels, Labels()

    @cached_property
    def _tracked(self) -> Tracked:
        tracked = join_attached_logs(self._of.read(self._options), self._options)
        rejected = [entry for entry in tracked.quality.rejected if entry.reason not in CHOSEN]
        if self._strict and rejected:
            what = f"points were rejected: {', '.join(f'{each.rows} {each.reason}{each.at}' for each in rejected)}"
            raise SourceError(self.locator, what, "leave out --strict", code="points_rejected")
        return tracked

    @property
    def locator(self) -> str:
        """What a person can call the run."""
        return self._of.locator

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
        identity = f"{self._kind} {self._of.key}\n{format_identity_options(self._options)}"
        return sha256(identity.encode()).hexdigest()[:16]

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
            timezone=self._options.tz or "UTC",
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
        run, series = self.run(), self._tracked.series
        tables = [series[device.id] for device in run.devices if device.id in series]
        return Recording(run=run, series=arrange_series(tables), training=self._tracked.training)
