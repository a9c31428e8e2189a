"""Which jobs a log holds, and for how long none held its GPUs, in words."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.base import Analysis, Job
from gpureport.report import display, gpu_time, loss
from gpureport.report.inputs import moment

_LISTED = 6
"""Jobs that are named one by one."""


def sentences(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield which logs hold several jobs, and how much GPU time no job held, which no share counts."""
    for analysis in analyses:
        if len(analysis.jobs) > 1:
            whose = f"The log {display.clean(analysis.run.name)}" if len(analyses) > 1 else "The log"
            yield f"{whose} holds {len(analysis.jobs)} jobs: {listed(analysis)}. --job N reads one of them."
    seconds = gpu_time.no_job_seconds(analyses)
    held = gpu_time.held_seconds(analyses)
    if held and seconds / held >= loss.NOTABLE:
        yield (
            f"No job held a GPU for {display.gpu_hours(seconds / len(analyses))}"
            f"{' a run' if len(analyses) > 1 else ''} besides: figures and shares are of the jobs alone."
        )


def listed(analysis: Analysis) -> str:
    """Return the jobs of a log with their times, the first ones of many."""
    jobs = [f"{job.number} from {_times(analysis, job)}" for job in analysis.jobs[:_LISTED]]
    more = len(analysis.jobs) - len(jobs)
    return "; ".join([*jobs, f"{more} more"] if more else jobs)


def _times(analysis: Analysis, job: Job) -> str:
    span = job.interval
    return f"{moment(analysis.run, span.start)} to {moment(analysis.run, span.end)} ({display.duration(span.seconds)})"
