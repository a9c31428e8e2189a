"""What to do about a finding whose cause says more than its kind."""

from collections.abc import Mapping

from gpureport.analysis.job.phases import LITTLE_WORK, NO_WORK
from gpureport.analysis.signals.load import BESIDE_OTHERS, COPYING
from gpureport.report.sections.findings.next_actions.action_words import (
    FIND_HANG,
    FIND_STOPPED,
    PROFILE,
    SAVE_IN_BACKGROUND,
    SHORTEN_EPOCH_PAUSES,
    TRY_BESIDE_OTHERS,
    UNKNOWN_GAIN,
    ActionWording,
)

_AHEAD = ActionWording(
    title="Load data ahead", how="Prefetch batches, and use more loader workers while cores are free. {workers}"
)
WORDING_BY_CAUSE: Mapping[tuple[str, str], ActionWording | None] = {
    ("cpu_bound", "other programs"): ActionWording(
        title="Free the CPU of other programs",
        how="They hold most cores: find them with top, or reserve cores for the job.",
    ),
    ("low_util_cause_unknown", BESIDE_OTHERS): TRY_BESIDE_OTHERS,
    ("low_util_cause_unknown", "data"): _AHEAD,
    ("cpu_bound_single", COPYING): ActionWording(
        title="Pin host memory",
        how="If host memory is not pinned, pin it (pin_memory=True): then copies need no CPU. Copy with "
        "non_blocking=True while the step before computes.",
    ),
    ("startup_idle", LITTLE_WORK): ActionWording(
        title="See why the GPU does so little",
        how="Profile some steps: either the work runs on the CPU, or in kernels too small for this GPU. Then try a "
        "larger batch, torch.compile or CUDA graphs.",
        gain=UNKNOWN_GAIN,
    ),
    ("startup_idle", NO_WORK): ActionWording(
        title="Use the GPU or release it", how="The job held it and never worked for long."
    ),
    ("tail_idle", "no job"): None,
    ("idle_gap", "checkpoint"): SAVE_IN_BACKGROUND,
    ("idle_gap", "epoch"): SHORTEN_EPOCH_PAUSES,
    ("idle_gap", "data"): _AHEAD,
    ("idle_gap", "io"): ActionWording(
        title="Read data faster", how="Copy the data to a local disk or keep it in host memory."
    ),
    ("idle_gap", "hang"): FIND_STOPPED,
    ("idle_gap", "peers busy"): FIND_STOPPED,
    ("idle_gap", "unused"): ActionWording(
        title="Release {gpus}", how="Ask only for the GPUs used, or start a process on this one."
    ),
    ("idle_gap", "requests or input"): PROFILE,
    ("hollow_util", "hang"): FIND_HANG,
    ("hollow_util", COPYING): ActionWording(
        title="Copy while the GPU computes",
        how="Send the next batch during this step (non_blocking=True from pinned memory), keep on the GPU what is used "
        "again, and send smaller types.",
        gain=UNKNOWN_GAIN,
    ),
    ("hollow_util", "spill"): ActionWording(
        title="Lower the memory peak",
        how="Use mixed precision, recompute activations, or accumulate gradients over smaller batches.",
        gain=UNKNOWN_GAIN,
    ),
    ("hollow_util", "straggler"): ActionWording(
        title="Even out the GPUs", how="Give every rank as much work, and check that the slow one is cool."
    ),
    ("periodic_stall", "checkpoint"): SAVE_IN_BACKGROUND,
    ("periodic_stall", "epoch"): SHORTEN_EPOCH_PAUSES,
}
"""What to do about a cause of a kind; None for a cause that asks for nothing."""

LOAD_AHEAD = ActionWording(title="Load data ahead", how="Prefetch batches, so that the next is ready in time.")
"""For gaps in which GPUs wait for input, where more loader workers are no advice."""

MEASURE_ALONE = ActionWording(
    title="Measure without other programs",
    how="Run some minutes while nothing else keeps the CPU busy: if the GPU still waits, the CPU isn't the cause.",
    gain="May show the cause",
)
"""For GPUs beside a CPU full with other programs, where more loader workers are no advice."""
