"""What a reader must know of a run of Neptune, one clause each."""

from collections.abc import Iterator, Sequence

from gpureport.importers.note_text import list_first
from gpureport.importers.trackers.neptune.device_inventory import DeviceInventory
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune_hardware.device_rows import RowsByDevice
from gpureport.importers.trackers.neptune_hardware.namespaces import Namespace
from gpureport.importers.trackers.neptune_hardware.process_samples import ProcessSamples

_MS = 1000
_UNSAMPLED_INTERVALS = 3
"""Intervals without samples at the end of a run that are worth a note (pragmatic)."""
_MOST_NAMED = 4


def collect_notes(
    processes: Sequence[ProcessContent],
    arranged: RowsByDevice,
    span: tuple[int, int],
    interval: float | None,
) -> Iterator[str]:
    """Yield what a reader must know of a run, except of its memory.

    Args:
        processes: what its processes wrote.
        arranged: its rows by device.
        span: first and last sample, in microseconds.
        interval: seconds between samples.
    """
    for each in processes:
        yield from each.content.notes
        yield from each.said
    yield from note_values([sample for each in processes for sample in each.samples])
    yield from note_devices(arranged, [space for each in processes for space in each.spaces])
    yield from note_unknown_series(
        [path for each in processes for path in each.others], sum(p.other_points for p in processes)
    )
    yield from note_early_end(processes, span[1], interval)


def note_values(sampled: Sequence[ProcessSamples]) -> Iterator[str]:
    """Yield notes on the values."""
    zeros, of = sum(each.zeros for each in sampled), sum(each.of for each in sampled)
    if zeros:
        yield f"Neptune's client drops zeros: {zeros} of {of} values of utilization were 0 and are put back"
    never = sorted({gpu for each in sampled for gpu in each.never})
    if never:
        yield f"utilization of {_format_gpus(never)} was never reported: it is unknown, always 0 or not supported"
    unrestored = sorted({gpu for each in sampled for gpu in each.unrestored})
    if unrestored:
        gpus = _format_gpus(unrestored)
        yield f"memory of {gpus} was not recorded, so zeros cannot be put back and idle time is missing"
    spread = max((each.spread for each in sampled), default=0)
    if spread:
        yield f"points of one sample lie up to {spread / _MS:.0f} ms apart and were joined"


def _format_gpus(numbers: Sequence[int]) -> str:
    return ", ".join(f"gpu:{number}" for number in numbers)


def note_devices(arranged: RowsByDevice, spaces: Sequence[Namespace]) -> Iterator[str]:
    """Yield notes on the GPUs and processes."""
    if arranged.copied:
        yield (
            f"{len(arranged.copied)} processes recorded the same devices at the same time as others and were left out: "
            f"{list_first(arranged.copied, _MOST_NAMED)}"
        )
    bare = [space for space in spaces if space.bare]
    if arranged.numbered > 1:
        yield f"{arranged.numbered} processes saw one GPU each, without its number: they are numbered as they began"
    elif bare:
        yield "a process saw a single GPU, and which one it was is not recorded: it is called gpu:0"
    gpus = [space for space in spaces if space.gpus]
    if gpus and not any(meaning.metric == "gpu_power_watts" for space in gpus for meaning in space.leaves.values()):
        yield "GPU power was not recorded: Neptune's client does so since 1.11.0"
    if any(meaning.metric == "gpu_memory_used_bytes" for space in gpus for meaning in space.leaves.values()):
        yield (
            "GPU memory in use holds what the driver reserves (NVML's first interface), "
            "a few hundred MiB that nvidia-smi leaves out"
        )


def note_memory(stock: DeviceInventory) -> Iterator[str]:
    """Yield notes on the installed memory."""
    if stock.given:
        yield "memory of each GPU is what --gpu-memory-total says"
    elif stock.largest:
        yield "memory of each GPU is taken to be that of the largest one of its machine, which is all that is recorded"
    elif stock.unknown:
        yield "memory of the GPUs is not recorded: --gpu-memory-total GIB says it"


def note_unknown_series(others: Sequence[str], points: int) -> Iterator[str]:
    """Yield a note on hardware series without a metric here."""
    if others:
        yield f"{points} points of {len(others)} series have no metric here: {list_first(others, _MOST_NAMED)}"


def note_early_end(processes: Sequence[ProcessContent], end: int, step: float | None) -> Iterator[str]:
    """Yield a note if the run went on after its last hardware sample.

    Args:
        processes: what its processes wrote.
        end: last hardware sample, in microseconds.
        step: seconds between samples.
    """
    last = max(
        [
            int(series.times.max())
            for each in processes
            for path, series in each.content.series.items()
            if not each.hardware(path)
        ]
        + [each.content.last for each in processes if each.content.last is not None],
        default=end,
    )
    if last > end + _UNSAMPLED_INTERVALS * (step or 0.0) * 1e6:
        yield (
            f"hardware monitoring ended {(last - end) / 1e6:.0f} s before the run did: nothing is known of that time, "
            "its stderr may say why"
        )
