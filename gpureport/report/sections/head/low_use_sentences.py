"""How much the GPUs of a step worked, in words, where that is little."""

from collections.abc import Sequence
from math import fsum

from gpureport.analysis import phrases
from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.results import Analysis
from gpureport.analysis.rules.low_use import BELOW
from gpureport.comparison import gains
from gpureport.comparison.figures import below_ratios, mean_over_time
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display, terms

_PAUSES = "short_pauses"
_LOW = 0.25
"""Utilisation that is often said to be the sign of waste (neptune.ai blog)."""
_OFTEN = 0.2
"""Share of the time below it that is told: twice what the sound jobs among the samples show, start-up included."""
_NEARLY_ALL = 0.9
"""Share of the time of a run over which a mean is told as that of the whole (pragmatic): what the other tenth did
moves it by a tenth of the difference at most."""
_ALIKE = 0.05
"""Difference of their shares up to which GPUs are named together (pragmatic): less is no difference to act on."""


def is_low(analyses: Sequence[Analysis]) -> bool:
    """Return whether the mean utilisation of all runs is lower than what calls for no change."""
    mean = mean_over_time(analyses, UTILISATION)
    return mean is not None and mean < BELOW.value


def is_low_mid_job(analyses: Sequence[Analysis]) -> bool:
    """Return whether GPUs were little used between start-up and tail, whatever happened there.

    All work of a run is taken to lie between them, so that no use is called low that may not be.
    """
    summaries = [
        summary
        for analysis in analyses
        for gpu in analysis.statistics
        if (summary := gpu.metric(UTILISATION)) is not None
    ]
    worked = fsum(summary.mean * summary.seconds for summary in summaries)
    seconds = fsum(summary.seconds for summary in summaries) - _measure_outside_seconds(analyses)
    return seconds > 0 and worked < BELOW.value * seconds


def _measure_outside_seconds(analyses: Sequence[Analysis]) -> float:
    """Return the GPU-seconds of start-up and tail, those too short for a finding included."""
    times = [time for analysis in analyses for time in analysis.gpu_time]
    seconds, idle = gpu_time.seconds_by_class(times), gpu_time.seconds_by_cause(times).get("idle", {})
    return fsum((*(seconds.get(name, 0.0) for name in ("startup", "tail")), idle.get(OUTSIDE, 0.0)))


def _measure_seen_seconds(analyses: Sequence[Analysis]) -> float:
    """Return the GPU-seconds of jobs with a known utilisation; in others GPUs may compute."""
    return gpu_time.job_gpu_seconds(analyses) * (1 - gpu_time.unobserved_ratio(analyses))


def measure_computing_ratio(analyses: Sequence[Analysis]) -> float:
    """Return the share of the jobs' seen GPU time in which GPUs computed; 0 without any."""
    seen = _measure_seen_seconds(analyses)
    seconds = gpu_time.seconds_by_class(time for analysis in analyses for time in analysis.gpu_time)
    return seconds.get("computing", 0.0) / seen if seen else 0.0


def measure_computing_ratio_mid_job(analyses: Sequence[Analysis]) -> float:
    """Return the same share of the time between start-up and tail."""
    seen, outside = _measure_seen_seconds(analyses), _measure_outside_seconds(analyses)
    return measure_computing_ratio(analyses) * seen / (seen - outside) if seen > outside else 0.0


def describe_computing(analyses: Sequence[Analysis], *, with_length: bool = False) -> str:
    """Return which share of their time GPUs computed: `The GPU computed 11% of 3 h 24 min`.

    Args:
        analyses: the runs.
        with_length: whether the length of a single GPU's time is said.
    """
    return _describe_share(
        analyses, measure_computing_ratio(analyses), _measure_seen_seconds(analyses) if with_length else None
    )


def describe_computing_mid_job(analyses: Sequence[Analysis]) -> str:
    """Return the same without start-up and tail, where they take time: `Mid-job, the GPU computed 11% of 3 h`."""
    seen, outside = _measure_seen_seconds(analyses), _measure_outside_seconds(analyses)
    if outside < gains.NOTABLE_RATIO * seen or outside >= seen:
        return describe_computing(analyses, with_length=True)
    share = _describe_share(analyses, measure_computing_ratio_mid_job(analyses), seen - outside)
    return f"Mid-job, {display.lower_first(share)}"


def _describe_share(analyses: Sequence[Analysis], ratio: float, seconds: float | None) -> str:
    gpus = max(len(analysis.run.gpus) for analysis in analyses)
    who = "The GPU" if gpus == 1 else "Both GPUs" if gpus == 2 else f"All {gpus} GPUs"  # noqa: PLR2004 - both means two
    of = display.rough_duration(seconds) if seconds is not None and gpus == 1 and len(analyses) == 1 else "the time"
    return f"{who} computed {display.percent(ratio)} of {of}"


def often_low_sentence(analyses: Sequence[Analysis], *, where: str = "") -> str:
    """Return how long GPUs were below 25%, the worst of several named; empty where that is not often.

    Args:
        analyses: the runs, of which each GPU is taken over all.
        where: words to begin with, as "in the last step".
    """
    shares = _shares_below(analyses)
    worst = max(shares, key=lambda gpu: shares[gpu], default="")
    if not worst or shares[worst] < _OFTEN:
        return ""
    others = [share for gpu, share in shares.items() if gpu != worst]
    alike = not others or shares[worst] - min(others) <= _ALIKE
    who = phrases.gpu_name(worst) if not alike else "the GPUs" if others else "the GPU"
    share = sum(shares.values()) / len(shares) if alike else shares[worst]
    rest = "" if alike else f", {'the other GPU' if len(others) == 1 else 'the others'} for {_name_range(others)}"
    verb = "were" if alike and others else "was"
    low = f"{verb} below {display.percent(_LOW)} utilisation for {display.percent(share)} of the time"
    return f"{phrases.capitalize(f'{where} {who}'.lstrip())} {low}{rest}."


def _name_range(shares: Sequence[float]) -> str:
    least, most = display.percent(min(shares)), display.percent(max(shares))
    return least if max(shares) - min(shares) <= _ALIKE else f"{least} to {most}"


def _shares_below(analyses: Sequence[Analysis]) -> dict[str, float]:
    """Return the share of the time that each GPU spent below 25%, over all runs."""
    below: dict[str, list[tuple[float, float]]] = {}
    for each in (one for analysis in analyses for one in analysis.statistics):
        if (summary := each.metric(UTILISATION)) is not None and summary.seconds > 0:
            share = dict(summary.below).get(_LOW, 0.0)
            below.setdefault(each.device, []).append((share * summary.seconds, summary.seconds))
    return {gpu: sum(low for low, _ in parts) / sum(whole for _, whole in parts) for gpu, parts in below.items()}


def levels_sentence(analyses: Sequence[Analysis]) -> str:
    """Return the mean utilisation of whole recordings, how long it was below some levels, and how much pauses took.

    The lowest level is left out where a sentence of its own tells it, and the mean where a finding does.
    """
    mean = mean_over_time(analyses, UTILISATION)
    if mean is None:
        return ""
    left_out = _LOW if often_low_sentence(analyses) else None
    below = [
        f"below {display.percent(limit)} for {display.percent(part)}"
        for limit, part in below_ratios(analyses).items()
        if limit != left_out
    ]
    below[:1] = [f"{text} of the time" for text in below[:1]]
    held, seconds = (
        gpu_time.job_gpu_seconds(analyses),
        gpu_time.seconds_by_class(t for each in analyses for t in each.gpu_time),
    )
    pauses = seconds.get(_PAUSES, 0.0) / held if held else 0.0
    name = display.lower_first(terms.CLASSES[_PAUSES])
    took = f"; {name} took {display.percent(pauses)}" if pauses >= gains.NEGLIGIBLE_RATIO else ""
    runs = f" of {len(analyses)} runs" if len(analyses) > 1 else ""
    if below and _is_mean_told(analyses):
        return f"Utilisation was {display.join_words(below)}{took}."
    return f"Mean utilisation{runs} {display.percent(mean)}: {display.join_words(below)}{took}."


def _is_mean_told(analyses: Sequence[Analysis]) -> bool:
    """Return whether a finding tells the mean of a single run already, all GPUs over nearly all of its time.

    Its figure ends with the first and the last sample, and the other half an interval beyond them: two of one thing.
    """
    if len(analyses) != 1:
        return False
    (analysis,) = analyses
    gpus = {gpu.id for gpu in analysis.run.gpus}
    return any(
        set(found.devices) in (set(), gpus)
        and fsum(interval.seconds for interval in found.intervals) >= _NEARLY_ALL * analysis.seconds
        and any((each.metric, each.statistic) == (UTILISATION, "mean") for each in found.evidence)
        for found in analysis.findings
    )
