"""What became of every point of a run."""

from collections import Counter
from collections.abc import Sequence

from gpureport.data_quality import AbsentCells, ClockStep, Quality, Rejected
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.trackers.device_tables import add_timing
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune_hardware.device_rows import RowsByDevice
from gpureport.importers.trackers.neptune_hardware.process_samples import ProcessSamples

_HOUR = 3600.0


def build_quality(  # noqa: PLR0913, PLR0917 - what an account is made of
    processes: Sequence[ProcessContent],
    arranged: RowsByDevice,
    unselected: int,
    clocks: Sequence[Clock],
    trained: int,
    notes: tuple[str, ...],
) -> Quality:
    """Return the account of a run; its points are counted as the lines of a log are.

    Of a row of several points, the first counts as kept and the others as continued. Points that are not numbers, and
    points of series without a metric here, count as noise.

    Args:
        processes: what its processes wrote.
        arranged: its rows by device.
        unselected: number of points of GPUs that were not selected.
        clocks: the clock of each device.
        trained: number of points of training metrics.
        notes: what else a reader must know.
    """
    samples = [sample for each in processes for sample in each.samples]
    blocks = [block for found in arranged.blocks.values() for block in found]
    rows, points = sum(len(each.times) for each in blocks), sum(int(each.points.sum()) for each in blocks)
    absent = Counter({name: count for each in samples for name, count in each.nan.items()})
    unknown = sum(each.other_points for each in processes)
    rejected = _list_rejected(processes, samples, arranged.copies, unselected)
    noise = absent.total() + unknown
    account = Quality(
        lines=points + trained + noise + sum(entry.rows for entry in rejected),
        rows_kept=rows + trained,
        rejected=tuple(rejected),
        noise=noise,
        continued=points - rows,
        absent_cells=tuple(AbsentCells(column=name, reason="NaN", cells=count) for name, count in absent.items()),
        clock_steps=_clock_steps(processes, arranged),
        imputed_points=sum(int(each.imputed.sum()) for each in blocks),
        notes=notes,
    )
    return add_timing(account, clocks)


def _list_rejected(
    processes: Sequence[ProcessContent], samples: Sequence[ProcessSamples], copies: int, unselected: int
) -> list[Rejected]:
    rejected = [entry for each in processes for entry in each.content.rejected]
    counted = {
        OTHER_PROCESS: copies,
        TWICE_AT_ONCE: sum(each.repeated for each in samples),
        FORKED: sum(each.crowded for each in samples),
        NOT_SELECTED: unselected,
    }
    return rejected + [Rejected(reason=why, rows=count, first_line=None) for why, count in counted.items() if count]


def _clock_steps(processes: Sequence[ProcessContent], arranged: RowsByDevice) -> tuple[ClockStep, ...]:
    """Return when clocks were set back, attributed to the first device."""
    first = next(iter(arranged.blocks))
    moments = sorted({at for each in processes for at in each.back})
    return tuple(
        ClockStep(device=arranged.id(first), at=at, step_seconds=-_HOUR, shift_seconds=_HOUR, cause="daylight saving")
        for at in moments
    )
