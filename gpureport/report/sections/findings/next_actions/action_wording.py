"""What to do about each kind of finding, in a few words: a title, how to go about it, and what it brings."""

from collections.abc import Collection, Mapping

from gpureport.analysis.advice.step_choice import WORKERS
from gpureport.analysis.signals.job_load import BESIDE_OTHERS
from gpureport.analysis.signals.low_use import LOW_USE_KINDS
from gpureport.recording_advice import RECORD
from gpureport.report.sections.findings.next_actions.action_words import (
    PROFILE,
    TRY_WORKERS,
    UNKNOWN_GAIN,
    ActionWording,
)
from gpureport.report.sections.findings.next_actions.cause_wording import LOAD_AHEAD, MEASURE_ALONE, WORDING_BY_CAUSE

_BY_KIND: Mapping[str, ActionWording] = {
    "startup_idle": ActionWording(
        title="Shorten start-up",
        how="Cache compiled kernels and preprocessed data, import less, and load data and weights at the same time.",
    ),
    "tail_idle": ActionWording(
        title="Release the GPU after the work",
        how="End the process when training ends; upload, export and evaluate in a job without GPUs.",
    ),
    "idle_gap": ActionWording(
        title="Look into the idle gaps", how="See whether the job saves, evaluates or logs at these times."
    ),
    "periodic_stall": ActionWording(
        title="Look into the regular stalls",
        how="See whether the job saves, evaluates or logs at these times.",
    ),
    "thermal_throttle": ActionWording(title="Cool {gpus}", how="Check airflow, fans, filters and its slot."),
    "hw_throttle": ActionWording(
        title="Check the power supply of {gpus}", how="Check power supplies, cables and the power budget of the rack."
    ),
    "power_limited": ActionWording(
        title="Raise the power limit of {gpus}",
        how="Set it to the default, unless it was lowered on purpose.",
        gain=UNKNOWN_GAIN,
        command="nvidia-smi -i {index} -q -d POWER",
    ),
    "clocks_locked": ActionWording(
        title="Unlock the clock of {gpus}",
        how="Reset it, unless it was set to keep measurements steady.",
        gain=UNKNOWN_GAIN,
        command="nvidia-smi -i {index} -rgc",
    ),
    "cpu_bound": ActionWording(
        title="Take work off the CPU",
        how="Preprocess once before training or on the GPU, and profile the loader alone.",
    ),
    "cpu_bound_single": ActionWording(
        title="Spread the work over CPU cores",
        how="Find the busy thread with py-spy, then move loading into worker processes.",
    ),
    "io_bound": ActionWording(
        title="Read data faster",
        how="Copy the data to a local disk or keep it in host memory, in fewer and larger files.",
    ),
    "transfer_bound": ActionWording(
        title="Copy less to the GPU", how="Send smaller types, convert on the GPU, and keep there what every step uses."
    ),
    "underutilised": PROFILE,
    "low_util_cause_unknown": ActionWording(
        title="Record the CPU beside the GPU",
        how="Waiting for data, for storage or for one thread all look the same without it.",
        gain="May show the cause",
        command=RECORD,
    ),
    "hollow_util": ActionWording(
        title="Give the GPU more work at a time",
        how="Compile the model, raise the batch size, or replay steps as CUDA graphs.",
        gain=UNKNOWN_GAIN,
    ),
    "full_precision": ActionWording(
        title="Try mixed precision", how="Compute in BF16 and watch the loss curve.", gain=UNKNOWN_GAIN
    ),
    "mem_headroom": ActionWording(
        title="Use the free memory",
        how="Raise the batch size step by step.",
        gain=UNKNOWN_GAIN,
    ),
    "mem_pressure": ActionWording(
        title="Lower the memory peak",
        how="Use mixed precision, recompute activations, or accumulate gradients over smaller batches.",
        gain="Keeps the job from running out of memory",
    ),
    "mem_prealloc": ActionWording(
        title="Turn off memory preallocation for one run",
        how="Set XLA_PYTHON_CLIENT_PREALLOCATE=false (JAX) or TF_FORCE_GPU_ALLOW_GROWTH=true (TensorFlow).",
        gain="Shows how much memory the job needs",
    ),
    "mem_leak": ActionWording(
        title="Stop the growth of memory",
        how="Look for tensors kept over steps, such as losses added up with their graph.",
        gain="Keeps the job from running out of memory",
    ),
    "workers_headroom": ActionWording(
        title="Add loader workers",
        how="{workers} Go on while cores and host memory are free.",
        gain=UNKNOWN_GAIN,
    ),
    "host_memory_pressure": ActionWording(
        title="Free host memory",
        how="Use fewer workers, or let them share data that is only read.",
        gain="Keeps the job from being killed",
    ),
    "imbalance": ActionWording(
        title="Even out the GPUs", how="Give every rank as much data, and spread logging and saving over all."
    ),
    "unused_gpu": ActionWording(
        title="Release {gpus}", how="Ask only for the GPUs used, or start a process on this one."
    ),
    "zombie_memory": ActionWording(
        title="End the process on {gpus}",
        how="Find out what still holds the memory, and end it once its results are saved.",
        gain="Frees the memory for the next job",
        command="nvidia-smi -i {index} --query-compute-apps=pid,used_memory --format=csv",
    ),
    "oversized_gpu": ActionWording(
        title="Try a smaller GPU",
        how="Run the job there, on a MIG slice, or several jobs on one GPU.",
        gain=UNKNOWN_GAIN,
    ),
    "pcie_degraded": ActionWording(
        title="Check the PCIe slot of {gpus}",
        how="Reseat the card, and look at its riser and the slot's settings in the BIOS.",
        gain=UNKNOWN_GAIN,
    ),
    "ecc_error": ActionWording(
        title="Reset or replace {gpus}",
        how="Drain it, reset it, and have it replaced where errors come back.",
        gain="Protects the results",
        command="nvidia-smi -i {index} -q -d ECC,ROW_REMAPPER",
    ),
    "gpu_lost": ActionWording(
        title="Recover {gpus}",
        how="Read the Xid message in dmesg, drain the machine and reset the GPU.",
        gain="Brings the GPU back",
        command="dmesg | grep -i xid",
    ),
    "log_gap": ActionWording(
        title="Keep the recorder running",
        how="Run it outside the memory limit of the job, on a disk with room.",
        gain="Shows what is missing now",
    ),
    "monitoring_ended": ActionWording(
        title="Keep the recorder running",
        how="Start it before the job and end it after, on a disk with room.",
        gain="Shows what is missing now",
    ),
    "rate_falls": ActionWording(
        title="Find out why training slows", how="Profile some steps early and late in the job, and compare them."
    ),
    "slow_gpu": ActionWording(
        title="Check {gpus}", how="Compare clock event reasons, power limit, slot and cooling with the others."
    ),
    "unexplained_change": ActionWording(
        title="Find out what changed", how="See what the job and other programs did then, and record what shows it."
    ),
    "no_progress": ActionWording(
        title="Stop when nothing improves",
        how="Use early stopping on the validation metric, and keep the best checkpoint.",
    ),
}

BATCH_OR_SMALLER_GPU = ActionWording(
    title="Use the free memory or a smaller GPU",
    how="Either keep this GPU and raise the batch size step by step, or keep the batch size and try a smaller GPU.",
    gain=UNKNOWN_GAIN,
)
"""For unused memory of a GPU that is larger than needed: a larger batch may need that GPU."""

NO_ACTION = {"power_cap"}
"""Kinds that ask for nothing: a GPU at its default power limit is as it should be."""

COOLING_LATER = ActionWording(
    title="Until then, cap its power",
    how="",
    gain=UNKNOWN_GAIN,
    command="nvidia-smi -i {index} -pl {watts}",
)


def find_wording(kind: str, cause: str | None, steps: Collection[str] = ()) -> ActionWording | None:
    """Return the words of an action; None for a kind or a cause that asks for nothing.

    Args:
        kind: kind of the finding.
        cause: its cause.
        steps: names of the steps that it is given.
    """
    if kind in NO_ACTION:
        return None
    may_want_workers = WORKERS in steps
    if cause == BESIDE_OTHERS and not may_want_workers:
        return MEASURE_ALONE
    if (kind, cause) == ("idle_gap", "data") and steps and not may_want_workers:
        return LOAD_AHEAD
    if kind in LOW_USE_KINDS and cause is None and may_want_workers:
        return TRY_WORKERS
    return WORDING_BY_CAUSE.get((kind, cause or ""), _BY_KIND.get(kind))
