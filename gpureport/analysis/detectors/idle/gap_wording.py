"""Sentences on idle gaps: advice by cause, and what was ruled out."""

from gpureport.analysis.detectors.idle.gap_causes import NO_PROCESS
from gpureport.analysis.job import jobs
from gpureport.analysis.rules import phrases
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.findings import Interval


def describe_gap(series: DeviceSeries, gap: Interval, cause: str) -> str:
    """Return a gap as a sentence; it calls the job running only if the log shows that one held the GPU."""
    idle = f"{phrases.gpu_name(series.device.id)} sat idle for {phrases.duration(gap.seconds)}"
    if cause == NO_PROCESS:
        return f"{idle}; its memory was empty for most of that, as between two processes."
    # of several GPUs one may begin to work later than others, or never work again
    if gap.start <= series.times[0]:
        return f"{idle} from the first sample on, while other GPUs worked."
    if gap.end + series.shift >= series.times[-1]:
        return f"{idle} to the last sample, while other GPUs worked."
    if gap.seconds >= jobs.FREE_BETWEEN_JOBS and not jobs.records_occupancy(series):
        return f"{idle} between two stretches of work; whether a job used it is not known."
    return f"{idle} mid-job."


def list_ruled_out(run: IdleRun, *, several: bool) -> tuple[str, ...]:
    """Return which other explanations of a gap were excluded; `several` if there are other GPUs."""
    explanations = ["missing samples: a stretch without samples is a log gap"]
    if run.samples < run.needed:
        explanations.append(
            "chance: power was that of a GPU at rest at every sample, and it also covers the time between samples"
        )
    elif run.needed > 1:
        explanations.append(
            f"chance: {run.samples} low samples in a row; {run.needed} would already be unlikely by chance"
        )
    if several:
        explanations.append("start-up and tail of the job, which are counted over all GPUs")
    return tuple(explanations)
