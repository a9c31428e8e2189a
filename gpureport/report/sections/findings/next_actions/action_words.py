"""The words of an action, and those that several kinds or causes share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionWording:
    """The words of an action.

    Braces hold `gpus`, the GPUs concerned, `index`, their numbers, and `workers`, how many loader workers to try.

    Attributes:
        title: what to do.
        how: how to go about it, in one sentence.
        gain: what it brings; empty where that is the GPU time that the finding lost.
        command: a command to copy; empty where none helps.
    """

    title: str
    how: str
    gain: str = ""
    command: str = ""


UNKNOWN_GAIN = "Gain not known"
"""Of what nobody has measured."""
PROFILE = ActionWording(
    title="Profile ten iterations",
    how="Trace them with a profiler, and look for the longest stretch without a kernel.",
    gain="Shows where the time goes",
)
"""For GPUs that are little used for a cause that a log does not show."""
TRY_WORKERS = ActionWording(
    title="Try more loader workers",
    how="{workers} That is a cheap trial while CPU cores are free. If it changes nothing, profile ten iterations.",
    gain=UNKNOWN_GAIN,
)
"""For GPUs that are little used for no known reason, in a job that may want more workers."""
TRY_BESIDE_OTHERS = ActionWording(
    title=TRY_WORKERS.title,
    how="A loader that waits for storage needs hardly any CPU. {workers} If that changes nothing, measure without the "
    "other programs.",
    gain=UNKNOWN_GAIN,
)
"""The same where other programs fill the CPU and the job hardly uses it."""
FIND_HANG = ActionWording(
    title="Find the rank that hangs",
    how="When it hangs again, dump the stacks of all ranks and look for the one outside the collective.",
    command="py-spy dump --pid PID",
)
"""For a hang in which no GPU stands out."""
FIND_STOPPED = ActionWording(
    title="Find out why {gpus} stopped",
    how="When it happens again, dump the stacks of all ranks, and look for the one outside the collective.",
    command="py-spy dump --pid PID",
)
"""For a hang in which GPUs that stopped are known."""
SAVE_IN_BACKGROUND = ActionWording(
    title="Write checkpoints in the background", how="Save asynchronously, less often, and to a local disk first."
)
"""For pauses in which a checkpoint is written, one or many."""
SHORTEN_EPOCH_PAUSES = ActionWording(
    title="Shorten the pauses between epochs", how="Keep loader workers alive, and evaluate less often."
)
"""For pauses between epochs, one or many."""
