"""Steps of the advice catalogue that detectors of several families give, the most promising first."""

LOADING = (
    *("loader_workers", "offline_preprocessing", "gpu_preprocessing", "processes_not_threads", "faster_preprocessing"),
    *("prefetch", "pinned_memory", "overlapped_copies", "persistent_workers", "file_formats", "profile_step"),
)
"""For GPUs that wait for the CPU to load data."""
STORAGE = ("cache_near_compute", "file_formats", "prefetch", "loader_workers")
"""For GPUs that wait for disks."""
HANG = ("find_hung_rank", "balance_ranks", "recover_gpu")
"""For ranks that wait for one that stands still."""
PROBE = ("record_more", "profile_step")
"""For losses without a known cause."""
