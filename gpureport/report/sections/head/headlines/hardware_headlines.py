"""Headlines on the GPU itself: heat, clocks, power, memory, its link, and its loss."""

from gpureport.report.sections.head.headlines.finding_facts import FindingFacts, format_length
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_range

_CLOCK = "gpu_sm_clock_hertz"
_USED = "gpu_memory_used_bytes"
_LEAST_FALL = 0.005


def _clock_fall(facts: FindingFacts) -> str:
    """Return by how much the clock fell, in per cent; empty where it is not known."""
    falls = [1 - left for left in facts.list_observed(_CLOCK, "mean, of that")]
    return format_range(falls, display.percent) if falls and min(falls) >= _LEAST_FALL else ""


def write_heat(facts: FindingFacts) -> str:
    """Return how hot GPUs get, how far their clock falls, and for how long."""
    hottest = facts.format_observed("gpu_temperature_celsius", display.temperature, "max")
    fall = _clock_fall(facts)
    parts = [hottest] if hottest else []
    length = f"for {format_length(facts.seconds)}"
    parts.append(f"clock down {fall} {length}" if fall else f"slowed {length}")
    return f"{facts.gpus} {facts.verb('overheats', 'overheat')}: {', '.join(parts)}."


def write_hardware_slowdown(facts: FindingFacts) -> str:
    """Return what cuts the clock, by how much and for how long."""
    fall, length = _clock_fall(facts), format_length(facts.seconds)
    who = "A power brake" if facts.cause == "power brake" else "The hardware"
    of = f"the {'clocks' if facts.is_plural else 'clock'} of {facts.gpus}"
    return f"{who} cuts {of} by {fall} for {length}." if fall else f"{who} lowers {of} for {length}."


def write_lowered_power_limit(facts: FindingFacts) -> str:
    """Return how much of its default power a GPU may draw, or below its limit."""
    level, ratio = facts.observed("gpu_power_watts", "level at the cap"), facts.observed("gpu_power_watts", "median at")
    if level and ratio:
        return (
            f"{facts.gpus} {facts.verb('is', 'are')} capped at {level:.0f} W, below the limit of {level / ratio:.0f} W."
        )
    share = facts.format_observed("gpu_power_limit_watts", display.percent)
    part = f"{share} of" if share else "below"
    return f"{facts.gpus} {facts.verb('is', 'are')} capped at {part} the default power limit."


def write_locked_clock(facts: FindingFacts) -> str:
    """Return at how much of its highest clock a GPU is locked."""
    share = facts.format_observed(_CLOCK, display.percent)
    at = f" at {share} of the maximum" if share else ""
    return f"The {'clocks' if facts.is_plural else 'clock'} of {facts.gpus} {facts.verb('is', 'are')} locked{at}."


def write_lost_gpu(facts: FindingFacts) -> str:
    """Return when a GPU stopped responding, or that the driver reported errors."""
    if facts.cause == "xid":
        return f"The driver reports errors of {facts.gpus}."
    who = facts.gpus if facts.group.devices else "A GPU"
    spans = [span for found in facts.group.findings for span in found.intervals]
    end = facts.group.run.run.ended
    before = (end - min(span.start for span in spans)) / 1e6 if spans else 0.0
    is_last = bool(spans) and max(span.end for span in spans) >= end
    if is_last and before >= facts.group.run.seconds:
        events = facts.group.run.run.quality.log_events
        said = next((each.text.strip("[]") for each in events if each.device in facts.group.devices), "nothing")
        return f"{who} never {facts.verb('answers', 'answer')}: the log has “{said}” in place of values."
    when = f" {format_length(before)} before the end" if is_last else ""
    return f"{who} {'stop' if facts.is_plural and facts.group.devices else 'stops'} responding{when}."


def write_memory_errors(facts: FindingFacts) -> str:
    """Return how many errors of its memory a GPU counted."""
    evidence = (each for found in facts.group.findings for each in found.evidence)
    rises = (each.observed for each in evidence if each.statistic == "rise in the run")
    count = round(sum(rises))
    if not count:
        return f"{facts.gpus} {facts.verb('needs', 'need')} repair: a row of memory can't be remapped."
    what = "corrected" if facts.cause == "corrected" else "uncorrectable"
    return f"{facts.gpus} {facts.verb('has', 'have')} {display.plural(count, f'{what} memory error')}."


def write_slow_link(facts: FindingFacts) -> str:
    """Return at how much of its speed the PCIe link runs."""
    share = facts.format_observed("data rate of the link", display.percent)
    at = f"at {share} of its speed" if share else "below its speed"
    return f"The PCIe link of {facts.gpus} runs {at}."


def write_full_memory(facts: FindingFacts) -> str:
    """Return how full GPU memory is, and how much is left."""
    share = max(facts.list_observed(_USED, "max"), default=None)
    full = facts.format_observed(_USED, display.percent, "max")
    peaks = {each.device: each.memory_peak_bytes for each in facts.group.run.analysis.statistics}
    peak = max((size for name in facts.group.devices if (size := peaks.get(name))), default=None)
    whose = "GPU memory" if len(facts.group.run.run.gpus) == 1 else f"The memory of {facts.gpus}"
    if share is None:
        return f"{whose} is nearly full."
    left = f": only {display.memory(peak / share - peak)} left" if peak and 0 < share < 1 else ""
    return f"{whose} is {full} full{left}."


def write_growing_memory(facts: FindingFacts) -> str:
    """Return how fast memory grows, and when it would be full."""
    rate = facts.format_observed(_USED, lambda each: display.memory(60 * each), "growth a second")
    full = min(facts.list_observed("time until memory is full"), default=None)
    fast = f" by {rate} a minute" if rate else ""
    when = f"; it fills up in {format_length(full - full % 60 or full)}" if full else ""  # in whole minutes
    whose = f"The memory of {facts.gpus}" if facts.is_plural else f"{facts.gpus}'s memory"
    return f"{whose} grows{fast}{when}."


def write_full_host_memory(facts: FindingFacts) -> str:
    """Return how full host memory is while GPUs wait."""
    share = facts.observed("host_memory_used_ratio")
    return f"Host memory is {display.percent(share) if share is not None else 'nearly'} full while GPUs wait."


def write_kept_memory(facts: FindingFacts) -> str:
    """Return how much memory is still held how long after the last work."""
    held, times = facts.format_observed(_USED, display.memory, "last"), facts.list_observed("time without work")
    length = format_range(times, format_length) if times else ""
    when = f" {length} after the last work" if length else " after the last work"
    return f"{facts.gpus} still {facts.verb('holds', 'hold')} {held or facts.verb('its', 'their') + ' memory'}{when}."


MAKERS = {
    "thermal_throttle": write_heat,
    "hw_throttle": write_hardware_slowdown,
    "power_limited": write_lowered_power_limit,
    "clocks_locked": write_locked_clock,
    "gpu_lost": write_lost_gpu,
    "ecc_error": write_memory_errors,
    "pcie_degraded": write_slow_link,
    "mem_pressure": write_full_memory,
    "mem_leak": write_growing_memory,
    "host_memory_pressure": write_full_host_memory,
    "zombie_memory": write_kept_memory,
}
"""What writes the headline of each kind."""
