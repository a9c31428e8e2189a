"""What a recording cannot show, however it is analysed."""

from collections.abc import Iterator, Sequence

from gpureport import gpus
from gpureport.analysis import phrases
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, SHORTEST_GAP, UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_signals import CLOCKS
from gpureport.findings import Finding, Interval

_RESOLVED = 1.8
"""Intervals between samples that a period spans where rows repeat readings: twice, with room for jitter."""
_SHORT_ENERGY_SECONDS = 60.0
"""Recorded time below which an energy compares with no other: sensors that see a quarter of the time need many of their
windows to be right in the mean (arXiv 2312.02741); the minute itself is chosen, not measured."""
_PART_TIME = {(8, 0), (9, 0)}
"""Compute capability of GPUs whose power sensor sees part of the time: GA100 and GH100."""
_AVERAGING = (8, 0)
"""Compute capability from which on power is an average (NVML)."""
_THROTTLES = ("thermal_throttle", "hw_throttle")


def list_caveats(context: Context, findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """Return what this recording cannot show: of each the code and the sentence."""
    known = [series for series in context.gpus().values() if series.observed_seconds > 0]
    return (
        *_describe_sampling(known),
        *_describe_sampling_changes(known),
        *_describe_refresh(known),
        *_describe_implausible_power(known),
        *_describe_energy(known, gaps=any(context.full_series(series.device.id).gaps for series in known)),
        *_describe_missing_clocks(context, findings),
    )


def _describe_sampling(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    """Say what falls between samples, where the distance between them is known."""
    if not any(series.is_recorded(UTILISATION) for series in known):
        return
    interval = max(series.interval for series in known)
    sampled = f"samples {phrases.duration(interval)} apart"
    shortest = 2 * interval + 1
    if shortest < SHORTEST_GAP.value:
        yield "short_gaps", f"Idle gaps shorter than {SHORTEST_GAP.value:.0f} s are not looked for."
    else:
        yield "short_gaps", f"Idle gaps shorter than {phrases.duration(shortest)} cannot be seen with {sampled}."
    if interval > POINT_SAMPLE_SECONDS:
        text = (
            f"With {sampled}, each utilisation value is a sample of at most 1 s: waits that recur faster than the "
            "sampling show in the mean only."
        )
        yield "point_samples", text


def _describe_sampling_changes(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    """Say for how long samples are farther apart than elsewhere, or that they are nearer."""
    denser = next((series for series in known if series.sampling_rate.denser is not None), None)
    if denser is not None and denser.sampling_rate.denser is not None:
        text = (
            f"Most samples are {phrases.duration(denser.interval)} apart, some only "
            f"{phrases.duration(denser.sampling_rate.denser)}. The denser part is analysed as if it were sampled every "
            f"{phrases.duration(denser.interval)}, so shorter events there are not reported."
        )
        yield "denser_part", text
    changing = [series for series in known if series.sampling_rate.slow]
    if changing:
        stretches = [each for series in changing for each in series.sampling_rate.slow]
        apart = " or ".join(phrases.duration(each) for each in sorted({each.interval for each in stretches}))
        seconds = max(
            intervals.total_seconds(
                intervals.to_spans(Interval(each.start, each.end) for each in series.sampling_rate.slow)
            )
            for series in changing
        )
        text = (
            f"For {phrases.duration(seconds)} samples are {apart} apart instead of "
            f"{phrases.duration(changing[0].interval)}: each stands for the time to its neighbours there, and idle "
            "gaps are looked for in the rest alone."
        )
        yield "sparser_part", text


def _describe_refresh(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    """Say how often utilisation is new where rows repeat it."""
    recorded = [series for series in known if series.is_recorded(UTILISATION)]
    faster = [series for series in recorded if series.resolution(UTILISATION) > _RESOLVED * series.interval]
    if faster:
        period = phrases.duration(max(series.resolution(UTILISATION) for series in faster))
        often = f"The driver takes a new utilisation reading every {period} at most, by NVIDIA's documents"
        yield "slow_refresh", f"{often}: rows in between repeat it, and nothing shorter can be seen."


def _describe_implausible_power(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    everybody = tuple(series.device.id for series in known)
    alike: dict[str, list[str]] = {}
    for series in known:
        if doubt := series.explain_implausibility("gpu_power_watts"):
            alike.setdefault(doubt, []).append(series.device.id)
    for doubt, devices in alike.items():
        whose = phrases.gpu_names(tuple(devices), everybody)
        text = (
            f"The power of {whose} {doubt}: that cannot be right, so energy and all else that rests on power is left "
            "out."
        )
        yield "implausible_power", text


def _describe_energy(known: Sequence[DeviceSeries], *, gaps: bool) -> Iterator[tuple[str, str]]:
    metered = [series for series in known if series.is_recorded("gpu_power_watts")]
    if not metered:
        return
    brief = min(series.observed_seconds for series in known) < _SHORT_ENERGY_SECONDS
    yield "energy_by_samples", "Energy is the integral of sampled power, good to several per cent at best."
    if brief:
        text = (
            "A recording of less than a minute gives an energy to compare only together with repetitions that make up "
            "the minute."
        )
        yield "energy_of_short_run", text
    sensors = dict.fromkeys(_describe_power_sensor(series.device.model) for series in metered)
    yield from (("power_sensor", text) for text in sensors if text)
    if gaps:
        counted = any(series.is_recorded("gpu_energy_joules_total") for series in metered)
        more = ", and the driver's counter does not" if counted else ""
        yield "energy_without_gaps", f"The integral of power leaves out the time of log gaps{more}."
    if any(len(series.pause_rows) for series in metered):
        yield (
            "energy_over_pauses",
            "The integral of power bridges pauses between samples that are too short for a log gap.",
        )


def _describe_power_sensor(model: str | None) -> str:
    """Return what the power sensor of a model is known to miss; empty where nothing is known."""
    known = gpus.find_gpu(model)
    capability = known.compute_capability if known else None
    if known is None or capability is None:
        return ""
    if capability in _PART_TIME:
        return (
            f"The power sensor of the {known.model} sees a quarter of the runtime: what the GPU draws in the other "
            "three is not in its energy (measured on A100 and H100, arXiv 2312.02741)."
        )
    if capability < _AVERAGING:
        return (
            f"A power reading of the {known.model}, as of every GPU before Ampere, is that of a moment: what is drawn "
            "between samples is not in its energy."
        )
    return ""


def _describe_missing_clocks(context: Context, findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    unknown = {device for f in findings if f.kind in _THROTTLES and f.lost_gpu_seconds is None for device in f.devices}
    if unknown:
        clocked = all(any(context.series[device].is_recorded(name) for name in CLOCKS) for device in unknown)
        why = "the recording holds no clock to compare with" if clocked else "no clock was recorded"
        yield "unknown_throttling_loss", f"Time lost to throttling is not known: {why}."
