"""Steps that bring data to the GPU faster."""

from gpureport.analysis.advice import applied_checks, conditions, references, setting_changes
from gpureport.analysis.advice.step import Step
from gpureport.analysis.job.framework import Framework

STEPS = (
    Step(
        name="loader_workers",
        title="More loader workers",
        do="Double the number of loader workers (DataLoader num_workers, tf.data num_parallel_calls), again as long as "
        "the throughput rises, to at most one a core where they keep cores busy.",
        when="The GPU waits for batches while cores and host memory are free.",
        risk="Each worker takes host memory and starts anew with each epoch unless it is kept; more busy workers "
        "than cores slow one another down.",
        check="Idle gaps and low phases go, CPU use rises, and the work done per GPU-hour goes up.",
        source=references.join_sources(references.NEPTUNE, references.CLUSTER, references.TORCH_DATA),
        conditions=(conditions.CORES_FREE, conditions.HOST_MEMORY_FREE),
        applied_check=applied_checks.WORKERS_MATCH_CORES,
        applied_by=(setting_changes.MORE_WORKERS,),
    ),
    Step(
        name="persistent_workers",
        title="Keep workers alive between epochs",
        do="Set persistent_workers=True (PyTorch), or build the input pipeline once outside the loop over epochs.",
        when="Gaps come back at the end of each epoch, where workers are ended and started again.",
        risk="Workers keep their memory, and a data set object that changes between epochs is not read again.",
        check="The gaps at the ends of epochs shrink or go.",
        source=references.TORCH_DATA,
        conditions=(conditions.HAS_WORKERS,),
        applied_check=applied_checks.PERSISTENT_WORKERS,
        applied_by=(setting_changes.PERSISTENT_WORKERS_ON,),
    ),
    Step(
        name="prefetch",
        title="Prefetch batches",
        do="Let the loader work ahead of the GPU: prefetch_factor of 4 with workers (PyTorch; its default is 2), "
        "dataset.prefetch(tf.data.AUTOTUNE) as the last stage (TensorFlow), a queue of your own elsewhere.",
        when="Batches take unequally long, so that the GPU waits now and then although loading is fast enough on the "
        "whole.",
        risk="Host memory for the batches that wait.",
        check="Short pauses and gaps go while mean CPU use stays as it was.",
        source=references.join_sources(references.NEPTUNE, references.CLOUD, references.TORCH_DATA),
        conditions=(conditions.HOST_MEMORY_FREE,),
        applied_check=applied_checks.PREFETCH,
        applied_by=(setting_changes.LARGER_PREFETCH_FACTOR, setting_changes.PREFETCH_ON),
    ),
    Step(
        name="pinned_memory",
        title="Pinned memory",
        do="Load batches into pinned host memory (pin_memory=True in PyTorch): copies from it are faster, and only "
        "they can overlap with other work.",
        when="The GPU pauses at the edges of steps, or copies to the GPU show in PCIe throughput.",
        risk="Pinned memory is locked: the operating system cannot give it to others.",
        check="The dips between steps shrink, and PCIe throughput rises while they last.",
        source=references.join_sources(references.NEPTUNE, references.TORCH_CUDA),
        conditions=(conditions.HOST_MEMORY_FREE,),
        frameworks=(Framework.PYTORCH, None),
        applied_check=applied_checks.PINNED_MEMORY,
        applied_by=(setting_changes.PINNED_MEMORY_ON,),
    ),
    Step(
        name="overlapped_copies",
        title="Overlapped copies",
        do="Copy from pinned memory without waiting (tensor.to(device, non_blocking=True)), best on a stream of its "
        "own and a batch ahead, so that the next batch travels while this one is computed.",
        when="Copies and steps take turns although memory is pinned.",
        risk="A second batch in GPU memory; a buffer must not be overwritten before its copy has ended.",
        check="The dips between steps disappear; PCIe throughput is spread over the step.",
        source=references.join_sources(references.NEPTUNE, references.TORCH_CUDA),
        conditions=(conditions.HOST_MEMORY_FREE,),
        frameworks=(Framework.PYTORCH, None),
        applied_check=applied_checks.OVERLAPPED_COPIES,
        applied_by=(setting_changes.NON_BLOCKING_ON,),
    ),
    Step(
        name="smaller_transfers",
        title="Send less to the GPU",
        do="Send data in its compact form (uint8 images, token ids of 32 bits) and convert and normalise on the GPU; "
        "send one large tensor instead of many small ones; keep what is used in every step on the GPU.",
        when="Copies fill the PCIe link.",
        risk="The conversion takes a little GPU time.",
        check="PCIe throughput falls and the work done per GPU-hour rises.",
        source=references.join_sources(references.NEPTUNE, references.TORCH_TUNING),
    ),
    Step(
        name="processes_not_threads",
        title="Processes instead of threads",
        do="Run preprocessing in processes (DataLoader workers, multiprocessing) instead of threads, which share one "
        "interpreter lock; give the main process nothing to do but feed the GPU.",
        when="One core is at its limit while others have nothing to do.",
        risk="Memory for each process, and the cost of handing data between them.",
        check="The load spreads over the cores, and GPU utilisation rises.",
        source=references.NEPTUNE,
        conditions=(conditions.ONE_CORE,),
    ),
    Step(
        name="faster_preprocessing",
        title="Cheaper preprocessing code",
        do="Profile the loader alone (iterate over it without a model), then vectorise what is slow, tokenise and "
        "decode in compiled libraries, and do per batch what is done per sample.",
        when="The CPU is the limit, and most of its time goes into your own code.",
        risk="Code to maintain; results must stay the same.",
        check="The loader alone yields more batches a second than the job uses up.",
        source=references.join_sources(references.NEPTUNE, references.CLUSTER),
    ),
    Step(
        name="input_pipeline",
        title="The input pipeline of your framework",
        do="PyTorch: give the DataLoader workers (num_workers; 0, its default, loads in the main process) and pinned "
        "memory. TensorFlow: end the pipeline with prefetch(tf.data.AUTOTUNE) and let map and interleave run in "
        "parallel. JAX: load with Grain's DataLoader (worker_count), tf.data or PyTorch's DataLoader.",
        when="The GPU waits for batches. Name the framework (--param framework=pytorch) to see what it offers.",
        risk="Host memory for workers and for batches loaded ahead.",
        check="The loader alone, without a model, yields more batches a second than the job uses up.",
        source=references.join_sources(
            references.TORCH_TUNING, references.TENSORFLOW_DATA, references.FLAX_LOADERS, references.GRAIN
        ),
        frameworks=(None,),
    ),
    Step(
        name="pytorch_input",
        title="PyTorch's input pipeline",
        do="Give the DataLoader workers (num_workers: 0, its default, loads in the main process while the GPU waits), "
        "then pin_memory=True with copies that do not block, persistent_workers=True, and a prefetch_factor above 2 "
        "where batches take unequally long. In a container raise the shared memory (--shm-size): workers hand batches "
        "over in it.",
        when="The GPU waits for batches of a DataLoader.",
        risk="Each worker copies what the data set holds as Python objects: keep arrays or files mapped into memory.",
        check="Iterating over the DataLoader alone yields more batches a second than the job uses up.",
        source=references.join_sources(references.TORCH_TUNING, references.TORCH_DATA),
        frameworks=(Framework.PYTORCH,),
    ),
    Step(
        name="tensorflow_input",
        title="TensorFlow's input pipeline",
        do="End the tf.data pipeline with prefetch(tf.data.AUTOTUNE); give map and interleave "
        "num_parallel_calls=tf.data.AUTOTUNE; cache() what is costly and the same in every epoch, before shuffling "
        "and augmentation; batch before a map that can work on whole batches.",
        when="The GPU waits for batches of tf.data.",
        risk="A cache() without a file holds the data in host memory; autotuning may take half of the free memory for "
        "buffers.",
        check="The tf.data analysis of the TensorFlow Profiler no longer calls the job input-bound.",
        source=references.join_sources(references.TENSORFLOW_DATA, references.TENSORFLOW_DATA_ANALYSIS),
        frameworks=(Framework.TENSORFLOW,),
    ),
    Step(
        name="jax_input",
        title="An input pipeline for JAX",
        do="JAX has no loader of its own: use Grain's DataLoader with a worker_count above 0, its default, tf.data "
        "or PyTorch's DataLoader, and put the next batch on the GPU (jax.device_put) before the current step's result "
        "is read.",
        when="The GPU waits for batches in a job that runs JAX.",
        risk="Worker processes must compute with NumPy: one that is forked after JAX has started threads may hang. A "
        "second batch in GPU memory.",
        check="Iterating over the loader alone yields more batches a second than the job uses up.",
        source=references.join_sources(references.FLAX_LOADERS, references.GRAIN),
        frameworks=(Framework.JAX,),
    ),
    Step(
        name="offline_preprocessing",
        title="Preprocess when the data are made",
        do="Do what is the same in every epoch (decoding, resizing, tokenising, filtering) once, and store the result.",
        when="The CPU is busy with transformations that do not depend on chance.",
        risk="It takes disk space. Fixed data lose the randomness that helps training: keep augmentation in the loop.",
        check="CPU use falls while GPU utilisation rises; the validation metric stays as it was.",
        source=references.NEPTUNE,
        conditions=(conditions.CPU_BUSY,),
    ),
    Step(
        name="gpu_preprocessing",
        title="Decode and augment on the GPU",
        do="Move decoding and augmentation to the GPU with NVIDIA DALI (hardware JPEG decoder from A100 on) or with "
        "the GPU transforms of the framework.",
        when="The CPU is busy and the GPU has time to spare; where the GPU is the limit, keep it on the CPU.",
        risk="GPU memory and time; results differ slightly from those of CPU libraries.",
        check="CPU use falls, GPU utilisation and the work done per GPU-hour rise.",
        source=references.join_sources(references.NEPTUNE, references.CENTML, references.NVIDIA_DALI),
        conditions=(conditions.CPU_BUSY, conditions.GPU_TIME_FREE),
    ),
    Step(
        name="cache_near_compute",
        title="Cache data near the GPU",
        do="Copy the data set to a local SSD before training, or cache it in host memory after the first epoch.",
        when="The CPU waits for storage, or the first epoch is slower than later ones.",
        risk="Disk space or host memory; copies grow stale when the source changes.",
        check="Waiting for I/O (iowait) falls, and the first epoch takes as long as the others.",
        source=references.join_sources(references.NEPTUNE, references.CLOUD, references.CLUSTER),
    ),
    Step(
        name="file_formats",
        title="Fewer and larger files",
        do="Store samples in files of 100 MB and more that are read from front to back: TFRecord, WebDataset tar "
        "files, Parquet; shuffle shards, then within a buffer.",
        when="The job reads many small files, for example from a network file system or an object store.",
        risk="Samples can no longer be fetched one by one at random; shuffling becomes coarser.",
        check="Waiting for I/O falls, read throughput rises.",
        source=references.join_sources(references.NEPTUNE, references.CLOUD, references.CLUSTER),
    ),
    Step(
        name="fewer_workers",
        title="Fewer loader workers",
        do="Lower the number of workers or prefetch_factor, share read-only data between workers, and hold arrays "
        "instead of lists of Python objects in the data set.",
        when="Host memory is nearly full, so that the page cache is lost or the job is about to be killed.",
        risk="Loading can become the limit.",
        check="Host memory in use falls below 90% and GPU utilisation does not.",
        source=references.TORCH_DATA,
        applied_check=applied_checks.FEWEST_WORKERS,
        applied_by=(setting_changes.FEWER_WORKERS,),
    ),
)
"""What helps a GPU that waits for input."""
