"""Steps that let a GPU do more in the time it has."""

from gpureport.analysis.advice import applied_checks, conditions, references, setting_changes
from gpureport.analysis.advice.step import Step
from gpureport.analysis.job.framework import Framework

STEPS = (
    Step(
        name="larger_batch",
        title="Larger batch",
        do="Raise the batch size in steps (by half, or to the next multiple of 8) up to about 90% of GPU memory, and "
        "scale the learning rate with it (linearly with warm-up, or LARS/LAMB for very large batches).",
        when="GPU memory is free and the GPU is not busy all the time.",
        risk="Out of memory; slower convergence and worse generalisation where the learning rate is not adapted.",
        check="Samples per GPU-hour and peak memory rise, and the loss per sample seen stays as it was.",
        source=references.join_sources(references.NEPTUNE, references.CENTML, references.CLOUD),
        conditions=(conditions.GPU_MEMORY_FREE,),
        applied_check=applied_checks.LARGE_BATCH,
        applied_by=(setting_changes.LARGER_BATCH,),
    ),
    Step(
        name="gradient_accumulation",
        title="Gradient accumulation",
        do="Accumulate the gradients of several small batches, divided by their number, before each optimizer step "
        "(gradient_accumulation_steps, accumulate_grad_batches).",
        when="A larger effective batch is wanted and GPU memory is full.",
        risk="It is no faster by itself; batch normalisation still sees the small batches.",
        check="The loss curve is that of the larger batch while peak memory stays as it was.",
        source=references.join_sources(references.CLOUD, references.CLUSTER),
        conditions=(conditions.GPU_MEMORY_FULL,),
        applied_check=applied_checks.GRADIENT_ACCUMULATION,
        applied_by=(setting_changes.MORE_ACCUMULATION,),
    ),
    Step(
        name="mixed_precision",
        title="Mixed precision",
        do="Compute in BF16 (compute capability 8.0 and newer) or in FP16 with loss scaling (7.0 and newer): "
        "torch.autocast, Keras mixed_precision, or the precision setting of the trainer; let FP32 matrix products use "
        "TF32.",
        when="The GPU has tensor cores and the model is matrix work in full precision.",
        risk="Numerical stability: watch the loss for NaN. The idle share may rise, since the input pipeline becomes "
        "the limit.",
        check="Time per step and memory fall; the loss curve stays as it was.",
        source=references.join_sources(references.NEPTUNE, references.CENTML, references.NVIDIA_PRECISION),
        conditions=(conditions.TENSOR_CORES, conditions.FULL_PRECISION),
        applied_check=applied_checks.REDUCED_PRECISION,
        applied_by=(setting_changes.REDUCED_PRECISION_ON,),
    ),
    Step(
        name="compile",
        title="Compile the model",
        do="Wrap the model in torch.compile, tf.function(jit_compile=True) or jax.jit, so that many small kernels "
        "become few large ones.",
        when="Power is low at high utilisation, or one CPU core is busy launching kernels.",
        risk="Minutes of compilation at the start, and again for every new input shape: pad to few shapes.",
        check="Time per step falls, power rises; start-up is longer.",
        source=references.join_sources(references.CLOUD, references.CLUSTER, references.TORCH_COMPILE),
        applied_check=applied_checks.COMPILED_MODEL,
        applied_by=(setting_changes.COMPILED_ON,),
    ),
    Step(
        name="cuda_graphs",
        title="CUDA graphs",
        do="Record a step as a CUDA graph and replay it (torch.compile(mode='reduce-overhead'), torch.cuda.graph).",
        when="Steps are short and all alike, and launching kernels takes longer than running them.",
        risk="Shapes and addresses are fixed, and code on the CPU within the step does not run again.",
        check="CPU use of the main process falls, time per step falls.",
        source=references.TORCH_CUDA,
        frameworks=(Framework.PYTORCH, None),
        applied_check=applied_checks.CUDA_GRAPHS,
        applied_by=(setting_changes.CUDA_GRAPHS_ON,),
    ),
    Step(
        name="cudnn_autotuning",
        title="cuDNN autotuning",
        do="Set torch.backends.cudnn.benchmark = True before the training loop (benchmark=True in Lightning's "
        "Trainer): cuDNN then times its convolution algorithms for each input shape and keeps the fastest.",
        when="The model is convolutional, is not compiled, and sees inputs of one shape or few.",
        risk="The first iterations of each shape are slower, so that shapes which keep changing make the job slower. "
        "Algorithms may differ from run to run, and results in their last digits.",
        check="Iterations after the first are shorter; the longer start is made up for within the run.",
        source=references.TORCH_TUNING,
        conditions=(conditions.FIXED_SHAPES, conditions.NOT_COMPILED),
        frameworks=(Framework.PYTORCH, None),
        applied_check=applied_checks.CUDNN_AUTOTUNING,
        applied_by=(setting_changes.CUDNN_AUTOTUNING_ON,),
    ),
    Step(
        name="explore_framework",
        title="Explore your framework",
        do="Work through the tuning guide of the framework, one change at a time: PyTorch's Performance Tuning Guide "
        "(fused optimizer and attention, channels_last for convolutions), TensorFlow's guide on GPU performance with "
        "its Profiler (XLA, CPU and GPU in balance), JAX's GPU performance tips (XLA flags).",
        when="The other steps are done, or the cause is not known.",
        risk="Settings that help one model slow another down: measure each.",
        check="Work per GPU-hour rises with each change that is kept, and the loss curve stays as it was.",
        source=references.join_sources(references.TORCH_TUNING, references.TENSORFLOW_GPU, references.JAX_GPU),
    ),
    Step(
        name="fewer_waits",
        title="No needless waiting for the GPU",
        do="Take .item(), .cpu(), print and checks for NaN out of the step, or do them every 100 steps: each makes the "
        "CPU wait for the GPU and the GPU then for the CPU.",
        when="GPU and CPU are both low although data are at hand.",
        risk="Logged values come later.",
        check="Short pauses fall, GPU utilisation rises.",
        source=references.TORCH_TUNING,
    ),
    Step(
        name="profile_step",
        title="Profile some steps",
        do="Trace ten steps after warm-up with the profiler of the framework or Nsight Systems (nsys profile), and "
        "look for the longest stretch without a kernel and for what the CPU does then.",
        when="The cause is not known: the samples of a log do not show single kernels.",
        risk="The traced steps are slower.",
        check="The trace names the operation that the GPU waits for.",
        source=references.join_sources(references.TORCH_TUNING, references.CLUSTER),
    ),
    Step(
        name="parallelise_code",
        title="Vectorise and parallelise the code",
        do="Replace loops over samples or layers by batched operations, and use the fused optimizer and attention of "
        "the framework.",
        when="GPU and CPU are both low: the code does not use the machine.",
        risk="Results must stay the same; memory for the larger operations.",
        check="GPU utilisation and power rise.",
        source=references.join_sources(references.NEPTUNE, references.TORCH_TUNING),
    ),
    Step(
        name="data_parallel",
        title="Data parallelism",
        do="Run one process a GPU with DistributedDataParallel (not DataParallel), or the strategy of the framework; "
        "keep the batch of each GPU as it was.",
        when="One GPU is busy all the time and more are at hand.",
        risk="Communication; synchronous steps wait for the slowest GPU; the effective batch grows.",
        check="Work per second grows nearly with the number of GPUs, and the work per GPU-hour hardly falls.",
        source=references.join_sources(references.CLOUD, references.CLUSTER),
    ),
    Step(
        name="balance_ranks",
        title="Give every GPU the same work",
        do="Split data by the amount of work (length of sequences, number of images), drop or pad the last batch, move "
        "what only rank 0 does (logging, evaluation, checkpoints) off the step, and use GPUs of one "
        "model with the same clocks and links.",
        when="GPUs of one job differ, so that the others wait for the slowest in each step.",
        risk="Less randomness in how samples meet.",
        check="Utilisation and power of the GPUs agree; time per step falls.",
        source=references.CLUSTER,
        conditions=(conditions.SEVERAL_GPUS,),
    ),
    Step(
        name="split_model",
        title="Split the model over GPUs",
        do="Shard parameters and optimizer state (FSDP, ZeRO), or split the model into tensor or pipeline stages.",
        when="The model, or one with a useful batch, is larger than one GPU.",
        risk="Communication, and idle time of pipeline stages.",
        check="Peak memory of each GPU falls; work per GPU-hour does not fall more than accepted.",
        source=references.CLUSTER,
        conditions=(conditions.GPU_MEMORY_FULL,),
    ),
    Step(
        name="find_hung_rank",
        title="Find the rank that hangs",
        do="Look at the log and stack (py-spy dump) of the process on the GPU that differs, set NCCL_DEBUG=INFO and a "
        "time-out for collectives, and end the job when it fires.",
        when="GPUs show full utilisation at low power: they wait in a collective for one that does not come.",
        risk="A time-out that is too short ends a job that is only slow.",
        check="The job ends with an error instead of blocking its GPUs.",
        source=references.NCCL,
    ),
    Step(
        name="other_framework",
        title="Compare frameworks",
        do="Run the same model in another framework or with another implementation, for a few hundred steps.",
        when="Everything else is done; frameworks differ in how they use a GPU, without a winner in general.",
        risk="The cost of porting.",
        check="A grouped comparison shows more work per GPU-hour at the same loss.",
        source=references.NEPTUNE,
    ),
)
"""What helps a GPU that has work but does too little of it."""
