"""How long GPU memory stayed empty before the first work: time in which the job had not reached the GPU yet."""

from collections.abc import Iterable
from statistics import fmean

from gpureport import columns
from gpureport.analysis.job.jobs import EMPTY_MEMORY
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_range

_USED = "gpu_memory_used_bytes"
_NOTABLE = 0.25
"""Share of the start-up from which empty memory is worth naming."""


def describe_empty_startup(runs: Iterable[ReportRun]) -> str:
    """Return for how much of the start-up GPU memory was empty, a mean over runs; empty where it is little or unknown.

    Args:
        runs: runs of one step, each with a start-up.
    """
    measured = [each for run in runs if (each := measure_empty_startup(run)) is not None]
    if not measured:
        return ""
    empty, length = (fmean(values) for values in zip(*measured, strict=True))
    if not length or empty / length < _NOTABLE:
        return ""
    lengths = format_range((round(empty), round(length)), display.duration).replace(" to ", " of ")
    return f"For {lengths} GPU memory was still empty: the job was importing and setting up, or had not begun."


def measure_empty_startup(run: ReportRun) -> tuple[float, float] | None:
    """Return the seconds of the start-up in which the memory of every GPU was empty, and its length.

    None where the run has no start-up, or no GPU memory was recorded.
    """
    phase = next((phase for phase in run.analysis.phases if phase.kind == "startup"), None)
    if phase is None or run.run.interval is None or _USED not in run.recording.rows.schema.names:
        return None
    length = phase.interval.seconds
    first_uses = []
    for gpu in run.run.gpus:
        rows = run.recording.rows.rows_of(gpu.id)
        times = columns.integers(rows.column("timestamp"))
        used = columns.floats(rows.column(_USED))
        held = times[used > EMPTY_MEMORY]
        first_uses.append((float(held[0]) - phase.interval.start) / 1e6 if len(held) else length)
    return (min(max(min(first_uses), 0.0), length), length) if first_uses else None
