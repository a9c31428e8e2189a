"""Stretches before or after the work in words: how long they lasted, and how long no job held a GPU."""

from gpureport.analysis import phrases
from gpureport.analysis.detectors.idle.stretch_figures import measure_seconds_of_jobs, name_whole
from gpureport.analysis.rulebook import Context
from gpureport.findings import Interval


def describe_length(context: Context, kind: str, spans: tuple[Interval, ...], *, is_freed: bool) -> str:
    """Return how long a stretch lasted, in a sentence."""
    seconds = sum(span.seconds for span in spans)
    length = phrases.duration(seconds)
    if is_freed:
        share = phrases.percent(seconds / context.whole.seconds)
        return f"The log ran on for {length} after the last work, {share} of the run."
    share = f"{phrases.percent(seconds / measure_seconds_of_jobs(context))} of {name_whole(context)}"
    if kind == "tail_idle":
        gpus = tuple(context.gpus())
        whose = phrases.capitalize(phrases.gpu_names(gpus, gpus)) if len(gpus) > 1 else "The GPU"
        return f"{whose} sat idle for {length} after the last work, {share}."
    whose = "first work" if spans[0].start <= context.whole.start else "first work of a later job"
    return f"The {whose} came after {length}, {share}."


def describe_no_job_time(context: Context, free: float) -> str:
    """Return how long no job held a GPU, as a sentence; empty if a job held all of them."""
    if not free:
        return ""
    if len(context.gpus()) > 1:
        return f" No job used the GPUs for {phrases.duration(free)} of that GPU time, which is not lost."
    return f" No job used the GPU for {phrases.duration(free)} of it, which is not lost."
