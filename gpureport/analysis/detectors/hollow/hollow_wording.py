"""Sentences on hollow work: which GPUs, why it counts, what to do."""

from collections.abc import Sequence

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.detectors.hollow.hollow_causes import HANG, LAUNCH, STRAGGLER, HollowSigns
from gpureport.analysis.detectors.hollow.hollow_episodes import STILL
from gpureport.analysis.signals.load import COPYING


def describe_episodes(
    devices: Sequence[str], everybody: Sequence[str], seconds: float, signs: HollowSigns, cause: str | None
) -> str:
    """Return which GPUs were busy in name only, how long, at which power or activity, and why."""
    whose = phrases.capitalize(phrases.gpu_names(devices, everybody))
    return (
        f"{whose} looked busy {_describe_signs(signs)} for {phrases.duration(seconds)}; "
        f"{_describe_cause(signs, cause, everybody)}."
    )


def _describe_signs(signs: HollowSigns) -> str:
    if np.isnan(signs.power_share) or (not np.isnan(signs.active) and signs.power_share >= STILL):
        return f"with {phrases.percent(signs.active)} of the multiprocessors active"
    return "at near-idle power" if signs.power_share < STILL else "at low power"


def _describe_cause(signs: HollowSigns, cause: str | None, everybody: Sequence[str]) -> str:
    if cause == HANG and signs.dead_peers:
        odd = phrases.gpu_names(signs.dead_peers, everybody)
        return f"{odd} did nothing meanwhile"
    if cause == HANG:
        return "it probably hung in a collective"
    if cause == STRAGGLER:
        return f"{phrases.gpu_names(signs.working_peers, everybody)} worked meanwhile"
    if cause == COPYING:
        return f"meanwhile {signs.received / 1e9:.0f} GB/s came over PCIe: it probably waited for copies"
    if cause == LAUNCH:
        return "its kernels probably did little work each"
    return "the log doesn't show whether it hung or its kernels did little"


def list_ruled_out(signs: HollowSigns, *, clock_known: bool) -> tuple[str, ...]:
    """Return which other explanations were excluded."""
    explanations = ["heat, hardware and the power cap, which lower clock and power"]
    if clock_known:
        explanations.append("a low clock: it was at 75% of the highest or above, or power no higher than idle")
    if not np.isnan(signs.memory_traffic) and not np.isnan(signs.power_share):
        explanations.append("work bound by memory, where DCGM counted its activity")
    return tuple(explanations)
