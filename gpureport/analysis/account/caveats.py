"""What a recording cannot show, however it is analysed."""

from collections.abc import Iterator, Sequence

from gpureport.analysis import phrases
from gpureport.analysis.job.jobs import POINT_SAMPLE_SECONDS, SHORTEST_GAP
from gpureport.analysis.names import POWER, UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import CLOCKS
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.findings import Finding, Interval
from gpureport.metrics import find_gpu

_RESOLVED = 1.8
"""Intervals that a period must span where rows repeat readings: two, with room for jitter."""
_PART_TIME, _AVERAGING = {(8, 0), (9, 0)}, (8, 0)
"""Compute capability whose power sensor sees part of the time, and from which power is an average (NVML)."""


def list_caveats(context: Context, findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    known = [series for series in context.gpus().values() if series.observed_seconds > 0]
    has_gaps = any(context.full_series(series.device.id).gaps for series in known)
    slowed = (one for one in findings if one.kind in {"thermal_throttle", "hw_throttle"})
    unknown = {device for found in slowed if found.lost_gpu_seconds is None for device in found.devices}
    caveats = [*_describe_sampling(known), *_describe_power(known, has_gaps=has_gaps)]
    if unknown:
        clocked = all(any(context.series[device].is_recorded(name) for name in CLOCKS) for device in unknown)
        why = "the recording holds no clock to compare with" if clocked else "no clock was recorded"
        caveats.append(("unknown_throttling_loss", f"Time lost to throttling is not known: {why}."))
    return tuple(caveats)


def _describe_sampling(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    used = [series for series in known if series.is_recorded(UTILISATION)]
    if used:
        interval = max(series.interval for series in known)
        apart, shortest = f"samples {phrases.duration(interval)} apart", 2 * interval + 1
        unseen = f"shorter than {phrases.duration(shortest)} cannot be seen with {apart}"
        unsought = f"shorter than {SHORTEST_GAP:.0f} s are not looked for"
        yield "short_gaps", f"Idle gaps {unsought if shortest < SHORTEST_GAP else unseen}."
        if interval > POINT_SAMPLE_SECONDS:
            many = "waits that recur faster than the sampling show in the mean only"
            yield "point_samples", f"With {apart}, each utilisation value is a sample of at most 1 s: {many}."
    for series in [series for series in known if series.sampling_rate.denser is not None][:1]:
        usual, denser = phrases.duration(series.interval), phrases.duration(series.sampling_rate.denser or 0.0)
        yield "denser_part", f"Some samples are {denser} apart, most {usual}: shorter events are not reported there."
    sparse = [series for series in known if series.sampling_rate.slow]
    if sparse:
        slow = [intervals.to_spans(Interval(one.start, one.end) for one in each.sampling_rate.slow) for each in sparse]
        length = phrases.duration(max(map(intervals.total_seconds, slow)))
        lengths = sorted({each.interval for series in sparse for each in series.sampling_rate.slow})
        apart = f"{' or '.join(map(phrases.duration, lengths))} apart instead of {phrases.duration(sparse[0].interval)}"
        yield "sparser_part", f"For {length} samples are {apart}: idle gaps are looked for in the rest alone."
    repeated = [each for each in used if each.resolution(UTILISATION) > _RESOLVED * each.interval]
    if repeated:
        period = phrases.duration(max(series.resolution(UTILISATION) for series in repeated))
        often = f"The driver takes a new utilisation reading every {period} at most, by NVIDIA's documents"
        yield "slow_refresh", f"{often}: rows in between repeat it, and nothing shorter can be seen."


def _describe_power(known: Sequence[DeviceSeries], *, has_gaps: bool) -> Iterator[tuple[str, str]]:
    doubts = {series.device.id: series.explain_implausibility(POWER) for series in known}
    for doubt in dict.fromkeys(filter(None, doubts.values())):
        whose = phrases.gpu_names([device for device, said in doubts.items() if said == doubt], tuple(doubts))
        yield "implausible_power", f"The power of {whose} {doubt}: it cannot be right, so it is left out."
    metered = [series for series in known if series.is_recorded(POWER)]
    if not metered:
        return
    yield "energy_by_samples", "Energy is the integral of sampled power, good to several per cent at best."
    for text in dict.fromkeys(_describe_power_sensor(series.device.model) for series in metered):
        if text:
            yield "power_sensor", text
    if has_gaps:
        counted = any(series.is_recorded("gpu_energy_joules_total") for series in metered)
        more = ", and the driver's counter does not" if counted else ""
        yield "energy_without_gaps", f"The integral of power leaves out the time of log gaps{more}."


def _describe_power_sensor(model: str | None) -> str:
    known = find_gpu(model)
    if known is None or known.compute_capability is None:
        return ""
    if known.compute_capability in _PART_TIME:
        return f"The power sensor of the {known.model} sees a quarter of the time, as measured (arXiv 2312.02741)."
    if known.compute_capability < _AVERAGING:
        return f"A power reading of the {known.model} is that of a moment: what it draws between samples is not seen."
    return ""
