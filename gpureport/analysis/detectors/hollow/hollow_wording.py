"""Sentences on hollow work: which GPUs, why it counts, what to do."""

from collections.abc import Sequence

import numpy as np

from gpureport.analysis.detectors.hollow.hollow_causes import HANG, LAUNCH, STRAGGLER, HollowSigns
from gpureport.analysis.detectors.hollow.hollow_episodes import STILL
from gpureport.analysis.rules import phrases
from gpureport.analysis.signals.waits.copied_data import COPYING

ADVICE: dict[str | None, str] = {
    HANG: (
        "Kernels wait for a rank that does not answer: look at the log and the stack (py-spy dump) of the rank that "
        "does not take part, set a timeout for collectives (TORCH_NCCL_ASYNC_ERROR_HANDLING, NCCL_DEBUG=INFO) so that "
        "the job ends instead of waiting, and restart from the last checkpoint."
    ),
    STRAGGLER: (
        "The others wait inside a collective for the GPU that works: give all ranks the same amount of work (batch, "
        "sequence length, shards, pipeline stages), or repair what slows that one down."
    ),
    LAUNCH: (
        "Give each kernel more to do: a larger batch, fused operations (torch.compile, XLA), CUDA graphs instead of "
        "launching kernels one by one, fewer synchronising calls (.item(), printing a loss) in the loop. In a job of "
        "several GPUs, a wait for data ends inside a collective and looks the same: look at the input pipeline too."
    ),
    COPYING: (
        "Copies over PCIe probably keep the GPU waiting, though they count as busy: copy during the step before "
        "(non_blocking=True, a stream of its own), keep on the GPU what is used again, and send smaller types (uint8 "
        "images, bfloat16)."
    ),
    None: (
        "Tell a hang from kernels that are too small: see whether the job still makes steps; if not, look at the stack "
        "of each rank (py-spy dump); if so, use a larger batch, fused operations or CUDA graphs."
    ),
}
"""What to do, by cause."""


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
