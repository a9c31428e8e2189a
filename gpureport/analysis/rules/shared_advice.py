"""Steps of the advice catalogue that detectors of several families give, the most promising first."""

INPUT_PIPELINES = ("pytorch_input", "tensorflow_input", "jax_input", "input_pipeline")
"""The input pipeline of each framework, and of one that the run does not name: a finding gets one of them."""
LOADING = (
    *("loader_workers", "offline_preprocessing", "gpu_preprocessing", "processes_not_threads", "faster_preprocessing"),
    *INPUT_PIPELINES,
    *("prefetch", "pinned_memory", "overlapped_copies", "persistent_workers", "file_formats", "profile_step"),
)
"""For GPUs that wait for the CPU to load data."""
STORAGE = ("cache_near_compute", "file_formats", "prefetch", "loader_workers", *INPUT_PIPELINES)
"""For GPUs that wait for disks."""
HANG = ("find_hung_rank", "balance_ranks", "recover_gpu")
"""For ranks that wait for one that stands still."""
PROBE = ("record_more", "profile_step")
"""For losses without a known cause."""
