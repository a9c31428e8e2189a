"""Logs attached to a run of a tracker, which replace what the tracker recorded of the devices they cover."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Input, Labels, ReadOptions
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS
from gpureport.importers.protocol.reject_reasons import BESIDE_A_LOG
from gpureport.importers.protocol.tracker import Attachment, Tracked
from gpureport.importers.reading import sources
from gpureport.importers.reading.run_reading import Reading
from gpureport.importers.trackers.device_tables import add_timing, read_clocks
from gpureport.recording import Device, Recording, Source

_QUARTER = 15 * 60 * 1_000_000
_FARTHEST = 14 * 4
"""Quarters of an hour by which a zone may differ from UTC."""
_COVERED = 0.8
"""Share of a device's time that a log must cover to stand for it (pragmatic)."""
_EQUAL = 0.99
_UTILISATION = "gpu_utilization_ratio"


@dataclass(frozen=True, slots=True)
class _Log:
    """An attached log that was read, and what must be added to its stamps to make them UTC."""

    name: str
    recording: Recording
    offset: int
    stated: bool


def join_attached_logs(tracked: Tracked, options: ReadOptions) -> Tracked:
    """Return a run in which the devices of the attached logs replace its own.

    A log without a time zone is placed where it shares the most time with the run, in steps of a quarter of an hour.
    A note names each log that is not used.
    """
    for attachment in tracked.attachments:
        try:
            log = _read_attachment(attachment, tracked, options)
        except SourceError as error:
            tracked = _add_note(tracked, f"{attachment.name} is attached to the run and not read: {error.what}.")
            continue
        tracked = _use_log(tracked, log, attachment)
    return tracked


def _add_note(tracked: Tracked, note: str) -> Tracked:
    return replace(tracked, quality=replace(tracked.quality, notes=(*tracked.quality.notes, note)))


def _read_attachment(attachment: Attachment, tracked: Tracked, options: ReadOptions) -> _Log:
    """Return an attached log.

    Raises:
        SourceError: when it is none, or shares no time with the run.
    """
    reading = Reading([_identify_attachment(attachment)], options, Labels(name=attachment.name))
    recording = reading.recording()
    stated = recording.run.timezone is not None
    offset = 0 if stated else _find_offset(recording, tracked)
    start, end = recording.run.started + offset, recording.run.ended + offset
    if min(end, tracked.window[1]) < max(start, tracked.window[0]):
        raise SourceError(
            attachment.name, "it shares no time with the run", "attach the log of this run", code="no_shared_time"
        )
    return _Log(attachment.name, recording, offset, stated)


def _identify_attachment(attachment: Attachment) -> Input:
    for found in (IMPORTERS, HOST_IMPORTERS):
        try:
            return sources.identify(str(attachment.path), found)
        except SourceError as error:
            last = error
    raise SourceError(attachment.name, last.what, last.hint, code=last.code)


def _find_offset(recording: Recording, tracked: Tracked) -> int:
    """Return what to add to stamps without a zone, so that the log shares the most time with the run.

    Of several such offsets, the one wins at which the utilization fits the tracker best.
    """
    shared = {
        quarters * _QUARTER: _shared_time(recording, tracked, quarters * _QUARTER)
        for quarters in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs)
    }
    most = max(shared.values())
    best = [offset for offset, seconds in shared.items() if seconds >= _EQUAL * most]
    return min(best, key=lambda offset: _utilization_difference(recording, tracked, offset)) if most > 0 else 0


def _shared_time(recording: Recording, tracked: Tracked, offset: int) -> int:
    start, end = recording.run.started + offset, recording.run.ended + offset
    return min(end, tracked.window[1]) - max(start, tracked.window[0])


def _utilization_difference(recording: Recording, tracked: Tracked, offset: int) -> float:
    """Return how far the utilization of the GPUs in both differs on average; 0 where there is none to compare."""
    found = []
    for device in recording.run.gpus:
        own = tracked.series.get(device.id)
        if own is None or _UTILISATION not in own.column_names:
            continue
        rows = recording.rows_of(device.id)
        if _UTILISATION not in rows.column_names:
            continue
        times, values = columns.integers(rows.column("timestamp")) + offset, columns.floats(rows.column(_UTILISATION))
        at = columns.integers(own.column("timestamp"))
        inside = (at >= times[0]) & (at <= times[-1])
        if inside.any():
            expected = columns.floats(own.column(_UTILISATION))[inside]
            found.append(float(np.nanmean(np.abs(np.interp(at[inside], times, values) - expected))))
    return float(np.mean(found)) if found else 0.0


def _use_log(tracked: Tracked, log: _Log, attachment: Attachment) -> Tracked:
    """Return a run with the devices of a log that covers them."""
    taken = [device for device in log.recording.run.devices if _covers_device(tracked, log, device)]
    if not taken:
        nodes = any(device.node for device in tracked.devices)
        why = "the run has several nodes, and nothing says of which it is" if nodes else "it covers too little of it"
        return _add_note(tracked, f"{log.name} is attached to the run and not used: {why}.")
    series = dict(tracked.series)
    instead = sum(_count_values(series[device.id]) for device in taken if device.id in series)
    for device in taken:
        series[device.id] = _shift_times(log.recording.rows_of(device.id), log.offset)
    known = {device.id: device for device in tracked.devices}
    known |= {device.id: _complete_device(device, known.get(device.id)) for device in taken}
    devices = sorted(known.values(), key=lambda each: (each.index is None, each.node or "", each.index or 0))
    seen = read_clocks([series[device.id] for device in devices])
    rates = sorted(clock.interval for clock in seen if clock.interval is not None)
    times = [(clock.first or 0, clock.last or 0) for clock in seen]
    return replace(
        tracked,
        devices=tuple(devices),
        series=series,
        quality=add_timing(_merge_accounts(tracked, log, taken, instead), seen),
        span=(min(first for first, _ in times), max(last for _, last in times)),
        interval=rates[len(rates) // 2] if rates else None,
        sources=(*tracked.sources, *_name_sources(log, attachment)),
        state=f"{tracked.state}\n{log.recording.run.sources[0].sha256}",
    )


def _complete_device(device: Device, own: Device | None) -> Device:
    """Return a device of a log, completed with what only the tracker knows."""
    if own is None:
        return device
    return replace(
        device,
        memory_total_bytes=device.memory_total_bytes or own.memory_total_bytes,
        power_limit_watts=device.power_limit_watts or own.power_limit_watts,
        model=device.model or own.model,
    )


def _covers_device(tracked: Tracked, log: _Log, device: Device) -> bool:
    """Return whether a log covers most of the time of a device, or of the run where the tracker lacks the device."""
    start, end = tracked.window
    if device.id in tracked.series:
        times = columns.integers(tracked.series[device.id].column("timestamp"))
        start, end = int(times[0]), int(times[-1])
    elif any(each.node for each in tracked.devices):
        # nobody can say which of several nodes it is a device of
        return False
    times = columns.integers(log.recording.rows_of(device.id).column("timestamp")) + log.offset
    shared = min(int(times[-1]), end) - max(int(times[0]), start)
    return shared >= _COVERED * (end - start) and shared >= 0


def _count_values(table: "pa.Table") -> int:
    """Return how many values a table holds."""
    names = [name for name in table.column_names if name not in {"device", "timestamp", "stage", "imputed"}]
    return sum(len(table) - table.column(name).null_count for name in names)


def _shift_times(table: "pa.Table", offset: int) -> "pa.Table":
    """Return rows at other times."""
    times = columns.integers(table.column("timestamp")) + offset
    place = table.column_names.index("timestamp")
    return table.set_column(place, "timestamp", columns.to_arrow(times, pa.timestamp("us")))


def _merge_accounts(tracked: Tracked, log: _Log, taken: Sequence[Device], instead: int) -> Quality:
    """Return the account of both; the values that the log replaces count as left out."""
    one, other = tracked.quality, log.recording.run.quality
    left = [Rejected(reason=BESIDE_A_LOG, rows=instead, first_line=None)] if instead else []
    return replace(
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
        notes=(*one.notes, *_describe_log(log, taken), *other.notes),
    )


def _describe_log(log: _Log, taken: Sequence[Device]) -> Iterator[str]:
    named = ", ".join(device.id for device in taken)
    if log.stated:
        zone = f"in {log.recording.run.timezone}"
    else:
        minutes = -log.offset // 60_000_000
        sign = "-" if minutes < 0 else "+"
        zone = f"taken to be UTC{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}, with which it fits the run best"
    yield f"{log.name} is attached to the run and is read for {named} instead; its stamps are {zone}."


def _name_sources(log: _Log, attachment: Attachment) -> Iterator[Source]:
    for source in log.recording.run.sources:
        yield replace(source, locator=attachment.name)
