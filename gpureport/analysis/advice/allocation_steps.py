"""Steps about the time a job holds its GPUs without using them, and about GPU memory."""

from gpureport.analysis.advice import applied_checks, conditions, references, setting_changes
from gpureport.analysis.advice.step import Step

STEPS = (
    Step(
        name="asynchronous_checkpoints",
        title="Asynchronous checkpoints",
        do="Copy the state to host memory and write it in the background (torch.distributed.checkpoint.async_save, or "
        "the asynchronous checkpointing of the trainer), to a local disk first.",
        when="GPUs stand still at regular intervals while a checkpoint is written.",
        risk="Host memory for a copy of the state; a crash while writing loses that checkpoint.",
        check="The periodic gaps get as short as the copy.",
        source=references.join_sources(references.CLUSTER, references.TORCH_CHECKPOINT),
        conditions=(conditions.HOST_MEMORY_FREE,),
        applied_check=applied_checks.ASYNCHRONOUS_CHECKPOINTS,
        applied_by=(setting_changes.ASYNCHRONOUS_CHECKPOINTS_ON,),
    ),
    Step(
        name="rarer_checkpoints",
        title="Fewer checkpoints",
        do="Write a checkpoint by time (each half hour) instead of every few steps, and keep optimizer state out of "
        "those that are only evaluated.",
        when="Writing checkpoints takes more than about 1% of the run.",
        risk="More work is lost in a crash.",
        check="Gaps come less often.",
        source=references.CLUSTER,
    ),
    Step(
        name="early_stopping",
        title="Early stopping",
        do="Stop when the validation metric has not improved over a set number of evaluations, and keep the best "
        "checkpoint.",
        when="The validation metric stopped improving long before the end.",
        risk="A metric that falls again late is missed.",
        check="GPU-hours after the best value fall; the best value stays as it was.",
        source=references.CLUSTER,
    ),
    Step(
        name="tune_schedule",
        title="Tune the learning rate",
        do="Search learning rate and schedule on short runs with a tuner that stops bad trials early (Optuna, "
        "Ray Tune).",
        when="The loss falls slowly, or not at all, for a large part of the run.",
        risk="GPU-hours of the search itself.",
        check="The same loss is reached in fewer GPU-hours.",
        source=references.CLUSTER,
    ),
    Step(
        name="pretrained_weights",
        title="Start from pre-trained weights",
        do="Fine-tune a model that was trained on similar data: first its new last layers with the others frozen, then "
        "all of them at a low learning rate.",
        when="The run trains from scratch, and a model trained on similar data exists.",
        risk="What it saves is not known beforehand. The weights need their own preprocessing, may not fit your "
        "domain, and come with a licence of their own.",
        check="The same validation value is reached in fewer GPU-hours.",
        source=references.join_sources(references.TORCH_TRANSFER, references.KERAS_TRANSFER),
        conditions=(conditions.FROM_SCRATCH,),
        applied_check=applied_checks.PRETRAINED_WEIGHTS,
        applied_by=(setting_changes.PRETRAINED_WEIGHTS_ON,),
    ),
    Step(
        name="overlap_evaluation",
        title="Evaluate beside training",
        do="Evaluate less often or on a part of the data, keep the evaluation loader's workers alive, and log and "
        "upload in the background.",
        when="GPUs stand still at the ends of epochs or around evaluations.",
        risk="A coarser view of progress.",
        check="The gaps at these times disappear.",
        source=references.join_sources(references.CLUSTER, references.TORCH_DATA),
    ),
    Step(
        name="shorter_startup",
        title="Shorter start-up",
        do="Stage data and build the index before GPUs are allocated, cache compiled kernels between runs "
        "(TORCHINDUCTOR_CACHE_DIR, JAX_COMPILATION_CACHE_DIR), and load checkpoints from a local disk.",
        when="GPUs wait for minutes before the first step.",
        risk="A stale cache.",
        check="The time before the first sustained work falls.",
        source=references.CLUSTER,
    ),
    Step(
        name="release_gpus",
        title="Give the GPUs back",
        do="End the process when training ends, and do uploads, exports and final evaluations in a job without GPUs.",
        when="GPUs stay reserved after the last step.",
        risk="None.",
        check="The run ends within a minute of the last work.",
        source=references.CLUSTER,
    ),
    Step(
        name="fewer_gpus",
        title="Ask only for the GPUs used",
        do="Check CUDA_VISIBLE_DEVICES, the launcher's number of processes and the GPUs chosen in the code; release "
        "the GPU, or start a process for it.",
        when="A GPU of the job never worked while others did.",
        risk="None, unless it was kept for another job on purpose.",
        check="Every GPU of the next run shows work.",
        source=references.NVIDIA_SMI,
        applied_by=(setting_changes.FEWER_GPUS,),
    ),
    Step(
        name="end_stale_process",
        title="End the process that keeps memory",
        do="Find it with nvidia-smi --query-compute-apps=pid,used_memory --format=csv, and end it once its results are "
        "saved.",
        when="Memory stays full although nothing has run for minutes.",
        risk="Work that was not saved is lost.",
        check="Memory in use falls to a few hundred MiB.",
        source=references.NVIDIA_SMI,
    ),
    Step(
        name="stop_preallocation",
        title="Turn preallocation off for one run",
        do="Set XLA_PYTHON_CLIENT_PREALLOCATE=false (JAX) or TF_FORCE_GPU_ALLOW_GROWTH=true (TensorFlow) for one run.",
        when="A framework took the memory at once, so that the log does not show what the job needs.",
        risk="Slower allocations and fragmentation in that run.",
        check="Memory in use grows over the first steps instead of in one.",
        source=references.JAX_MEMORY,
    ),
    Step(
        name="fix_leak",
        title="Release tensors",
        do="Look for tensors kept over steps: losses added up with their graph (use .item() or .detach()), lists of "
        "outputs, hooks, caches by shape. torch.cuda.memory._record_memory_history shows who allocated them.",
        when="Memory in use keeps growing over the run.",
        risk="None.",
        check="Memory in use stays level after the first epoch.",
        source=references.join_sources(references.CLUSTER, references.TORCH_CUDA),
    ),
    Step(
        name="lower_peak",
        title="Lower the peak of memory",
        do="Recompute activations (torch.utils.checkpoint), let the allocator grow segments "
        "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), and bound the length of inputs.",
        when="GPU memory is nearly full: a longer input or a larger workspace runs out.",
        risk="Recomputing costs about a third more time per step.",
        check="The peak falls below 95% of what a job can get.",
        source=references.join_sources(references.CLOUD, references.CLUSTER, references.TORCH_CUDA),
    ),
)
"""What helps where GPUs are held without use, and where memory is the matter."""
