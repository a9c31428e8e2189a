"""Sentences on idle gaps: advice by cause, and what was ruled out."""

from gpureport.analysis.detectors.idle.gap_causes import NO_PROCESS
from gpureport.analysis.job import jobs, training_signs
from gpureport.analysis.rules import phrases
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.findings import Interval

CHECKPOINT_STEPS = ("asynchronous_checkpoints", "rarer_checkpoints")
EPOCH_STEPS = ("persistent_workers", "overlap_evaluation", "prefetch")
PERIODIC_STEPS = (*CHECKPOINT_STEPS, *EPOCH_STEPS, "profile_step")
"""Steps of the advice catalogue for GPUs that stand still during checkpoints, between epochs, or at either."""

_DATA = (
    "The GPU waits for input: add loader workers, prefetch and pin memory, move preprocessing offline or onto the GPU."
)
_UNKNOWN = (
    "See what the job does at this time. If it writes checkpoints, do so asynchronously and less often; between "
    "epochs, keep loader workers alive and prefetch; overlap evaluation and logging with training."
)
_PERIODIC = (
    "See what the job does at this pace (checkpoints, ends of epochs, evaluation, logging): write checkpoints "
    "asynchronously and less often, keep loader workers alive, and log the stage or a metric that shows the cause."
)
_CHECKPOINT = (
    "Write checkpoints asynchronously (copy to host memory, write in the background), to local disk first, sharded "
    "over the ranks, or less often."
)
_EPOCH = (
    "Keep loader workers alive between epochs (persistent workers), prefetch the first batches of the next one, and "
    "overlap or thin out evaluation."
)
_IO = (
    "Storage holds the job up: cache the data on a local SSD, pack it into larger files (TFRecord, Parquet), prefetch "
    "further ahead."
)
_PEERS = (
    "The other GPUs went on: look for a dead or waiting rank on this one (its process, its log, the collective it "
    "waits in)."
)
_HANG = (
    "The other GPUs spin, as ranks do that wait in a collective: look for the rank of this GPU (its process, a stack "
    "by py-spy, NCCL_DEBUG=INFO) and set a timeout for collectives so that the job ends instead of blocking the GPUs."
)
_UNUSED = "This GPU was never used: release it or check CUDA_VISIBLE_DEVICES."
_NO_PROCESS = (
    "No process used the GPU for most of this time: start the next one sooner, or let one process do the work of both."
)
ADVICE_BY_CAUSE = {
    NO_PROCESS: _NO_PROCESS,
    training_signs.REQUESTS: training_signs.REQUESTS_ADVICE,
    "data": _DATA,
    "io": _IO,
    "checkpoint": _CHECKPOINT,
    "epoch": _EPOCH,
    "periodic": _PERIODIC,
    "hang": _HANG,
    "peers busy": _PEERS,
    "unused": _UNUSED,
    "unknown": _UNKNOWN,
}
"""Advice on an idle gap of each cause."""

RECURRING_ADVICE = (_PERIODIC, _CHECKPOINT, _EPOCH, _IO)
"""All that may be recommended against what recurs."""


def describe_gap(series: DeviceSeries, gap: Interval, cause: str) -> str:
    """Return a gap as a sentence; it calls the job running only if the log shows that one held the GPU."""
    idle = f"{phrases.gpu_name(series.device.id)} sat idle for {phrases.duration(gap.seconds)}"
    if cause == NO_PROCESS:
        return f"{idle}; its memory was empty for most of that, as between two processes."
    # of several GPUs one may begin to work later than others, or never work again
    if gap.start <= series.times[0]:
        return f"{idle} from the first sample on, while other GPUs worked."
    if gap.end + series.shift >= series.times[-1]:
        return f"{idle} to the last sample, while other GPUs worked."
    if gap.seconds >= jobs.FREE_BETWEEN_JOBS and not jobs.records_occupancy(series):
        return f"{idle} between two stretches of work; whether a job used it is not known."
    return f"{idle} mid-job."


def list_ruled_out(run: IdleRun, *, several: bool) -> tuple[str, ...]:
    """Return which other explanations of a gap were excluded; `several` if there are other GPUs."""
    explanations = ["missing samples: a stretch without samples is a log gap"]
    if run.samples < run.needed:
        explanations.append(
            "chance: power was that of a GPU at rest at every sample, and it also covers the time between samples"
        )
    elif run.needed > 1:
        explanations.append(
            f"chance: {run.samples} low samples in a row; {run.needed} would already be unlikely by chance"
        )
    if several:
        explanations.append("start-up and tail of the job, which are counted over all GPUs")
    return tuple(explanations)
