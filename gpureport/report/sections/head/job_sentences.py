"""Which jobs a log holds, and for how long none held its GPUs, in words."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.results import Analysis, Job
from gpureport.comparison import gains
from gpureport.recording import Run
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import format_time
from gpureport.report.wording import display

_LISTED = 6
"""Jobs that are named one by one."""


def sentences(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield which logs hold several jobs, and how much GPU time no job held, which no share counts."""
    for analysis in analyses:
        if len(analysis.jobs) > 1:
            whose = f"The log {display.clean(analysis.run.name)}" if len(analyses) > 1 else "The log"
            each = job_list(analysis.run, analysis.jobs)
            yield f"{whose} holds {len(analysis.jobs)} jobs: {each}. Read one of them with --job N."
    seconds = gpu_time.no_job_gpu_seconds(analyses)
    held = gpu_time.job_gpu_seconds(analyses)
    if held and seconds / held >= gains.NOTABLE_RATIO:
        free = gpu_time.format_held(seconds, len(analyses))
        yield f"No job was on a GPU for another {free}; no figure counts that time."


def job_list(run: Run, jobs: Sequence[Job]) -> str:
    """Return the jobs of a log with their times, the first ones of many."""
    named = [f"job {job.number}, {_times(run, job)}" for job in jobs[:_LISTED]]
    more = len(jobs) - len(named)
    return "; ".join([*named, f"{more} more"] if more else named)


def _times(run: Run, job: Job) -> str:
    span = job.interval
    return f"{format_time(run, span.start)} to {format_time(run, span.end)} ({display.duration(span.seconds)})"
