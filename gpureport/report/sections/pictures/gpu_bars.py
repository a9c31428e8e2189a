"""Where the GPU time of one run went, one bar a GPU; of many GPUs the worst, and one bar for the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from gpureport.analysis.results import LOST_CLASSES, GpuTime
from gpureport.comparison.gains import measure_excessive_short_pauses
from gpureport.report.charts.elements import place_time_ticks
from gpureport.report.model.pictures import SpentBar, TimeSpent
from gpureport.report.runs.gpu_time import measure_own_seconds, seconds_by_cause, seconds_by_class
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.class_names import (
    Causes,
    build_segments,
    describe_pauses,
    list_legend,
    name_class,
)
from gpureport.report.wording import display

_MOST_BARS = 8
"""Most GPUs that have a bar each."""

_APART = 0.03
"""How much more of its time than the median GPU one has to lose to have a bar of its own among many."""

_WORTH_A_COLOUR = 0.05
"""Share of its time by which one GPU must lose more than another for its note to be flagged."""

_MUCH = 0.1
"""Share of its time from which the loss of a single GPU is flagged."""

_NEGLIGIBLE = 0.002

_MOST_UNKNOWN = 0.02
"""Share of its time without data from which the note of a GPU names it."""

_FEWEST_ALIKE = 5
"""GPUs that spent their time alike, from which on they share a bar."""


def build_gpu_bars(run: ReportRun) -> TimeSpent | None:
    """Return the bars of the GPUs of a run; None where no GPU time is known."""
    times = [time for time in run.analysis.gpu_time if time.job_seconds > 0]
    if not times:
        return None
    alone, others = _split_gpus(times)
    longest = max(time.job_seconds for time in times)
    causes = seconds_by_cause(times)
    groups = [*([time] for time in alone), *([others] if others else [])]
    bars = [_build_bar(run, group, causes, is_rest=group is others and bool(alone)) for group in groups]
    return TimeSpent(
        caption=f"Each bar is the time of one GPU.{describe_pauses(bars)}",
        columns=("", "Mean power" if any(bar.beside for bar in bars) else ""),
        bars=_flag_losses(bars, [_lost_ratio(*group) for group in groups]),
        end=longest,
        ticks=place_time_ticks(0.0, longest),
        legend=list_legend(bars, causes, _NEGLIGIBLE * longest),
    )


def _split_gpus(times: Sequence[GpuTime]) -> tuple[list[GpuTime], list[GpuTime]]:
    """Return the GPUs that have a bar of their own, in their order, and those that share one."""
    if len(times) <= _MOST_BARS:
        alike = max((_find_alike(time, times) for time in times), key=len)
        if len(alike) < _FEWEST_ALIKE or len(alike) == len(times):
            return list(times), []
        return [time for time in times if time not in alike], alike
    lost = {time.device: _lost_ratio(time) for time in times}
    median = sorted(lost.values())[len(lost) // 2]
    worst = sorted(times, key=lambda time: -lost[time.device])[: _MOST_BARS - 1]
    apart = {time.device for time in worst if lost[time.device] > median + _APART}
    return [time for time in times if time.device in apart], [time for time in times if time.device not in apart]


def _find_alike(time: GpuTime, times: Sequence[GpuTime]) -> list[GpuTime]:
    """Return the GPUs that spent their time as one of them did, to the per cent."""
    return [other for other in times if _round_shares(other) == _round_shares(time)]


def _round_shares(time: GpuTime) -> dict[str, str]:
    shares = {name: amount / time.job_seconds for name, amount in time.seconds}
    return {name: display.percent(share) for name, share in shares.items() if share >= _NEGLIGIBLE}


def _lost_ratio(*times: GpuTime) -> float:
    lost = fsum(amount for time in times for name, amount in time.seconds if name in LOST_CLASSES)
    return lost / fsum(map(measure_own_seconds, times))


def _build_bar(run: ReportRun, times: Sequence[GpuTime], causes: Causes, *, is_rest: bool = False) -> SpentBar:
    """Return the bar of one GPU, or the mean of several."""
    held = fsum(time.job_seconds for time in times)
    classes = {name: amount / len(times) for name, amount in seconds_by_class(times).items()}
    whole, seen = held / len(times), fsum(map(measure_own_seconds, times)) / len(times)
    losses = sorted(((classes.get(name, 0.0) / seen, name) for name in LOST_CLASSES), reverse=True)
    devices = [time.device for time in times]
    count = len(devices)
    return SpentBar(
        label=_name_gpus(run, devices, is_rest=is_rest),
        small=_describe_range(times) if count > 1 else "",
        segments=build_segments(classes, lambda amount: display.percent(amount / whole), causes),
        total="",
        note=_describe_loss(losses[0], classes, causes),
        beside=_describe_power(run, devices),
    )


def _name_gpus(run: ReportRun, devices: Sequence[str], *, is_rest: bool) -> str:
    """Return the GPU of a bar, or the GPUs: by their numbers where these follow each other."""
    names = [run.device(device) for device in devices]
    count = len(names)
    if count == 1:
        return names[0]
    numbers = [int(number) for name in names if (number := name.removeprefix("GPU ")).isdigit()]
    if is_rest and count <= _MOST_BARS and numbers and numbers == list(range(numbers[0], numbers[0] + count)):
        return f"GPUs {numbers[0]} to {numbers[-1]}"
    return f"{count} other GPUs" if is_rest else f"All {count} GPUs"


def _describe_loss(largest: tuple[float, str], classes: Mapping[str, float], causes: Causes) -> str:
    """Return what most time was lost to, as a share of the whole; or how much of the time is not known."""
    share, name = largest
    unknown = classes.get("no_samples", 0.0) / fsum(classes.values())
    pauses = measure_excessive_short_pauses(classes)
    if share >= _NEGLIGIBLE:
        return f"{display.percent(share)} {display.lower_first(name_class(name, causes))}"
    if pauses is not None:
        return f"{display.percent(pauses)} short pauses"
    if unknown >= 1 - _NEGLIGIBLE:
        return "not recorded"
    return f"{display.percent(unknown)} not recorded" if unknown >= _MOST_UNKNOWN else "nothing lost"


def _describe_range(times: Sequence[GpuTime]) -> str:
    ratios = [dict(time.seconds).get("computing", 0.0) / time.job_seconds for time in times]
    low, high = (display.percent(ratio) for ratio in (min(ratios), max(ratios)))
    return f"{low} computing" if low == high else f"{low.rstrip(f'%{display.GAP}')} to {high} computing"


def _describe_power(run: ReportRun, devices: Sequence[str]) -> str:
    """Return the mean power of GPUs, with their limit where it is the same for all."""
    chosen = set(devices)
    figures = [each for each in run.analysis.statistics if each.device in chosen]
    means = [summary.mean for each in figures if (summary := each.metric("gpu_power_watts"))]
    limits = {summary.max for each in figures if (summary := each.metric("gpu_power_limit_watts"))}
    if not means:
        return ""
    mean = display.integer(fsum(means) / len(means))
    return f"{mean} of {display.integer(limits.pop())}{display.GAP}W" if len(limits) == 1 else f"{mean}{display.GAP}W"


def _flag_losses(bars: Sequence[SpentBar], losses: Sequence[float]) -> tuple[SpentBar, ...]:
    """Return the bars, those flagged that lost clearly more than the one that lost least, or a lone one much."""
    least = min(losses) if len(losses) > 1 else _MUCH - _WORTH_A_COLOUR
    return tuple(replace(bar, is_bad=lost >= least + _WORTH_A_COLOUR) for bar, lost in zip(bars, losses, strict=True))
