"""Headlines on GPUs that work less than they could: waiting, little used, busy in name only, uneven."""

from gpureport.analysis import phrases
from gpureport.analysis.job import events
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.signals.load import COPYING
from gpureport.findings import Confidence
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts, format_length, name_gpus
from gpureport.report.sections.head.low_use_sentences import (
    describe_computing_mid_job,
    measure_computing_ratio_mid_job,
)
from gpureport.report.wording import display

_LITTLE = 0.5
"""Share of the time below which a whole run is said to compute little."""
_MOST = 0.8
"""Share of the run below which the length of a stretch is said."""


def _busy(facts: FindingFacts) -> str:
    mean = facts.format_observed(UTILISATION, display.percent, "mean")
    return f"{mean} busy" if mean else "little used"


def write_cpu_wait(facts: FindingFacts) -> str:
    """Return that GPUs wait for data while the CPU is saturated."""
    return f"{facts.gpus} {facts.verb('waits', 'wait')} for data: {_busy(facts)}, while the CPU is saturated."


def write_core_wait(facts: FindingFacts) -> str:
    """Return that GPUs wait for data, or probably for copies, while one thread is busy all the time."""
    if facts.cause == COPYING:
        waits = facts.verb("waits", "wait")
        return f"{facts.gpus} probably {waits} for copies: {_busy(facts)}, and one thread is at its limit."
    is_process = facts.observed("process_cpu_cores") is not None
    why = "one process uses a whole core" if is_process else "one CPU core is saturated"
    return f"{facts.gpus} {facts.verb('waits', 'wait')} for data: {_busy(facts)}, while {why}."


def write_storage_wait(facts: FindingFacts) -> str:
    """Return that GPUs wait for data while the host waits for storage."""
    return f"{facts.gpus} {facts.verb('waits', 'wait')} for data: {_busy(facts)}, while the host waits for storage."


def write_copy_wait(facts: FindingFacts) -> str:
    """Return that GPUs wait for copies, and how full the link is."""
    used = facts.format_observed("PCIe traffic", display.percent)
    link = f", while copies use {used} of the PCIe bandwidth" if used else ""
    return f"{facts.gpus} {facts.verb('waits', 'wait')} for copies: {_busy(facts)}{link}."


def write_low_use(facts: FindingFacts) -> str:
    """Return that GPUs are little used, and what of the host is known not to hold them back."""
    recorded = facts.observed("cpu_iowait_ratio") is not None and facts.observed("cpu_busiest_core_ratio") is not None
    # confidence is low where a recorded cause was not ruled out
    is_known = recorded and facts.finding.confidence is not Confidence.LOW
    host = "CPU and storage have room to spare" if is_known else "the CPU as a whole is not saturated"
    return f"{facts.gpus} {facts.verb('is', 'are')} only {_busy(facts)}; {host}."


def write_low_use_without_host(facts: FindingFacts) -> str:
    """Return that GPUs are little used, and that the log does not show why."""
    if waited := facts.format_observed(events.WAITING, display.percent):
        waits = facts.verb("waits", "wait")
        return f"{facts.gpus} {waits} for data: {_busy(facts)}; the training log says {waited} of each iteration."
    run = facts.group.run
    computing = measure_computing_ratio_mid_job([run.analysis])
    if len(run.run.gpus) == 1 and computing < _LITTLE:
        return f"{describe_computing_mid_job([run.analysis])}; the log doesn't show why."
    length = f" for {format_length(facts.seconds)}" if facts.seconds < _MOST * run.seconds else ""
    return f"{facts.gpus} {facts.verb('is', 'are')} only {_busy(facts)}{length}; the log doesn't show why."


def write_busy_low_power(facts: FindingFacts) -> str:
    """Return that GPUs look busy at low power, and which one stands still meanwhile."""
    if facts.cause == COPYING:
        looks, waits = facts.verb("looks", "look"), facts.verb("waits", "wait")
        return f"{facts.gpus} {looks} busy for {format_length(facts.seconds)}, but probably {waits} for copies."
    if facts.cause == "spill":
        looks, spills = facts.verb("looks", "look"), facts.verb("spills", "spill")
        return f"{facts.gpus} {looks} busy for {format_length(facts.seconds)}, but probably {spills} to host memory."
    still = next((group for group in facts.followers if group.worst.kind == "idle_gap" and group.devices), None)
    low = "near-idle power" if facts.cause == "hang" else "low power"
    start = f"{facts.gpus} {facts.verb('looks', 'look')} busy at {low}"
    if still is None:
        drawn = facts.format_observed("gpu_power_watts", display.power, "drawn")
        return f"{start}{f', {drawn},' if drawn else ''} for {format_length(facts.seconds)}."
    return f"{start}; {name_gpus(still)} {'stand' if len(still.devices) > 1 else 'stands'} still."


def write_imbalance(facts: FindingFacts) -> str:
    """Return what one GPU does beside the others."""
    if facts.cause == "power":
        own = facts.format_observed("gpu_power_watts", display.power, "mean")
        others = facts.format_observed("gpu_power_watts", display.power, phrases.PEERS_MEAN)
        if own and others:
            return f"{facts.gpus} {facts.verb('draws', 'draw')} {own}, the others {others}, equally busy."
    own = facts.format_observed(UTILISATION, display.percent, "mean")
    others = facts.format_observed(UTILISATION, display.percent, phrases.PEERS_MEAN)
    if not own or not others:
        return f"{facts.gpus} {facts.verb('works', 'work')} unlike the others."
    return f"{facts.gpus} {facts.verb('is', 'are')} only {own} busy, the others {others}."


MAKERS = {
    "cpu_bound": write_cpu_wait,
    "cpu_bound_single": write_core_wait,
    "io_bound": write_storage_wait,
    "transfer_bound": write_copy_wait,
    "underutilised": write_low_use,
    "low_util_cause_unknown": write_low_use_without_host,
    "hollow_util": write_busy_low_power,
    "imbalance": write_imbalance,
}
"""What writes the headline of each kind."""
