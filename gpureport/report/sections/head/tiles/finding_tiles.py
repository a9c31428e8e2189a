"""The tiles on the finding of the headline: its worst fact, then its effect."""

from collections.abc import Callable, Iterator

from gpureport.analysis import phrases
from gpureport.analysis.job.phases import UTILISATION
from gpureport.report.model.head import Change, Tile
from gpureport.report.model.pictures import SignalHistory, SignalPanel
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts, format_length
from gpureport.report.sections.pictures.signals import CLOCK, POWER, Signal, format_number
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_range

_USED = "gpu_memory_used_bytes"

_WAITED_FOR = {
    "cpu_bound": ("CPU use meanwhile", "cpu_utilization_ratio", "Median of all cores"),
    "cpu_bound_single": ("Busiest CPU core meanwhile", "cpu_busiest_core_ratio", "Median"),
    "io_bound": ("CPU waiting for storage", "cpu_iowait_ratio", "On average meanwhile"),
    "transfer_bound": ("PCIe bandwidth used", "PCIe traffic", "Of the busier direction"),
}
"""Of each kind the label of its second tile, the metric in its evidence, and what to know of it."""


def list_finding_tiles(facts: FindingFacts, history: SignalHistory | None) -> Iterator[Tile]:
    """Yield the worst fact of a finding and its effect, where evidence or pictures hold them; at most two.

    Args:
        facts: the findings that the headline tells of.
        history: the picture of the GPU concerned; None where there is none.
    """
    maker = _MAKERS.get(facts.finding.kind)
    if maker is not None:
        yield from (tile for tile in maker(facts, history) if tile is not None)


def _list_slowed(facts: FindingFacts, history: SignalHistory | None) -> Iterator[Tile | None]:
    """Yield the clock before and while slowed."""
    left, clock = facts.observed("gpu_sm_clock_hertz", "mean, of that"), _find_panel(history, CLOCK)
    if history is None or left is None or clock is None or clock.usual is None or clock.meanwhile is None:
        return
    if clock.meanwhile >= clock.usual:
        return
    when = "hot" if facts.finding.kind == "thermal_throttle" else "slowed"
    yield Tile(
        label=f"Clock of {history.gpu} while {when}",
        before=format_number(CLOCK, clock.usual),
        value=format_number(CLOCK, clock.meanwhile),
        unit=CLOCK.unit,
        change=Change(text=f"\N{MINUS SIGN}{display.percent(1 - left)}", arrow="down"),
        context=f"For {format_length(facts.seconds)}",
    )


def _list_waiting(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    """Yield how busy GPUs were, and how busy was what they waited for."""
    yield _build_use_tile(facts)
    label, metric, context = _WAITED_FOR[facts.finding.kind]
    busy = facts.format_observed(metric, display.percent)
    if busy:
        yield Tile(label=label, value=busy, context=context)


def _list_low_use(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    yield _build_use_tile(facts)


def _list_low_power(facts: FindingFacts, history: SignalHistory | None) -> Iterator[Tile | None]:
    """Yield how busy GPUs look, and the power that one of them draws meanwhile."""
    yield _build_use_tile(facts)
    power = _find_panel(history, POWER)
    if history is not None and power is not None and power.meanwhile is not None:
        yield Tile(
            label=f"Power of {history.gpu} meanwhile",
            value=format_number(POWER, power.meanwhile),
            unit=POWER.unit,
            context=phrases.capitalize(power.limit_text),
        )


def _list_full_memory(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    """Yield how full memory is, and what is left where it is fullest."""
    used = facts.format_observed(_USED, display.percent, "max")
    left = facts.list_observed(_USED, "free at the peak")
    if used and left:
        yield Tile(label="GPU memory used", value=used, unit=_name(facts), context="At its peak, reserved memory aside")
        free = display.memory(min(left))
        value, _gap, unit = free.partition(display.GAP)
        yield Tile(label="Memory left", value=value, unit=unit, context="At the peak")


def _list_growing_memory(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    rate = facts.format_observed(_USED, lambda each: display.memory(60 * each), "growth a second")
    full = facts.list_observed("time until memory is full")
    if rate and full:
        value, _gap, unit = rate.rpartition(display.GAP)
        yield Tile(label="Memory growth", value=value, unit=f"{unit} a minute", context=_name(facts))
        yield Tile(label="Time until it is full", value=format_length(min(full)), context="At this rate")


def _list_gaps(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    shares = facts.gap_shares
    spans = [span.seconds for found in facts.group.findings for span in found.intervals]
    if shares is not None and spans:
        value = format_range(shares[0], display.percent)
        yield Tile(label="Idle in gaps", value=value, unit=shares[1], context=_name(facts))
        context = f"Of {display.plural(len(spans), 'gap')}"
        yield Tile(label="Longest gap", value=display.duration(max(spans)), context=context)


def _list_stalls(facts: FindingFacts, _: SignalHistory | None) -> Iterator[Tile | None]:
    share = facts.format_observed("idle time", display.percent, "share of the job")
    idle = facts.format_observed("idle time", display.duration, "mean")
    period = facts.format_observed("period", format_length)
    if share and idle:
        yield Tile(label="Idle in stalls", value=share, unit="of the job", context=_name(facts))
        often = f"Every {period}" if period else "Again and again"
        yield Tile(label="One stall", value=idle, context=often)


def _build_use_tile(facts: FindingFacts) -> Tile | None:
    mean = facts.format_observed(UTILISATION, display.percent, "mean")
    if not mean:
        return None
    return Tile(label="GPU use", value=mean, unit=_name(facts), context=f"For {format_length(facts.seconds)}")


def _name(facts: FindingFacts) -> str:
    """Return the GPUs concerned, as in the headline."""
    return phrases.capitalize(facts.gpus)


def _find_panel(history: SignalHistory | None, signal: Signal) -> SignalPanel | None:
    """Return the panel of a quantity; None where the picture does not show it."""
    panels = history.panels if history is not None else ()
    return next((panel for panel in panels if panel.quantity == signal.label), None)


_MAKERS: dict[str, Callable[[FindingFacts, SignalHistory | None], Iterator[Tile | None]]] = {
    "thermal_throttle": _list_slowed,
    "hw_throttle": _list_slowed,
    **dict.fromkeys(_WAITED_FOR, _list_waiting),
    "underutilised": _list_low_use,
    "low_util_cause_unknown": _list_low_use,
    "hollow_util": _list_low_power,
    "mem_pressure": _list_full_memory,
    "mem_leak": _list_growing_memory,
    "idle_gap": _list_gaps,
    "periodic_stall": _list_stalls,
}
