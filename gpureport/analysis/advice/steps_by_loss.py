"""Which steps lead out of which kind of loss, the most promising first."""

from dataclasses import dataclass

_LOADING = (
    *("loader_workers", "offline_preprocessing", "gpu_preprocessing", "processes_not_threads", "faster_preprocessing"),
    *("prefetch", "pinned_memory", "overlapped_copies", "persistent_workers", "file_formats", "profile_step"),
)
_STORAGE = ("cache_near_compute", "file_formats", "prefetch", "loader_workers")
_CHECKPOINTS = ("asynchronous_checkpoints", "rarer_checkpoints")
_EPOCHS = ("persistent_workers", "overlap_evaluation", "prefetch")
_HANG = ("find_hung_rank", "balance_ranks", "recover_gpu")
_LAUNCHES = ("larger_batch", "compile", "cuda_graphs", "fewer_waits")
_PROBE = ("record_more", "profile_step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Steps for a kind: for some of its causes, or for any where none is named."""

    kind: str
    steps: tuple[str, ...]
    causes: tuple[str, ...] = ()


PATHS: tuple[Path, ...] = (
    Path(kind="idle_gap", causes=("checkpoint",), steps=_CHECKPOINTS),
    Path(kind="idle_gap", causes=("epoch",), steps=_EPOCHS),
    Path(kind="idle_gap", causes=("periodic",), steps=(*_CHECKPOINTS, *_EPOCHS, "profile_step")),
    Path(kind="idle_gap", causes=("data",), steps=_LOADING),
    Path(kind="idle_gap", causes=("io",), steps=_STORAGE),
    Path(kind="idle_gap", causes=("hang", "peers busy"), steps=_HANG),
    Path(kind="idle_gap", causes=("unused",), steps=("fewer_gpus",)),
    Path(kind="idle_gap", causes=("requests or input",), steps=_PROBE),
    Path(kind="idle_gap", causes=("no process",), steps=("record_more", "shorter_startup")),
    Path(kind="idle_gap", steps=("asynchronous_checkpoints", *_EPOCHS, *_PROBE)),
    Path(kind="periodic_stall", causes=("checkpoint",), steps=_CHECKPOINTS),
    Path(kind="periodic_stall", causes=("epoch",), steps=_EPOCHS),
    Path(kind="periodic_stall", steps=(*_CHECKPOINTS, *_EPOCHS, "profile_step")),
    Path(kind="startup_idle", causes=("no work",), steps=("release_gpus", "profile_step")),
    Path(kind="startup_idle", steps=("shorter_startup",)),
    Path(kind="tail_idle", causes=("no job",), steps=()),
    Path(kind="tail_idle", steps=("release_gpus",)),
    Path(kind="thermal_throttle", steps=("cooling", "lower_power_limit")),
    Path(kind="hw_throttle", causes=("power brake",), steps=("power_supply",)),
    Path(kind="hw_throttle", steps=("power_supply", "cooling")),
    Path(kind="power_cap", steps=("accept_power_cap",)),
    Path(kind="power_limited", steps=("raise_power_limit",)),
    Path(kind="clocks_locked", steps=("unlock_clocks",)),
    Path(kind="cpu_bound", steps=_LOADING),
    Path(
        kind="cpu_bound_single",
        steps=(
            "processes_not_threads",
            "loader_workers",
            "fewer_waits",
            "compile",
            "cuda_graphs",
            "faster_preprocessing",
        ),
    ),
    Path(kind="io_bound", steps=_STORAGE),
    Path(
        kind="transfer_bound",
        steps=("pinned_memory", "overlapped_copies", "smaller_transfers", "gpu_preprocessing", "reseat_card"),
    ),
    Path(kind="underutilised", causes=("requests or input",), steps=("profile_step",)),
    Path(
        kind="underutilised",
        steps=(
            "parallelise_code",
            "larger_batch",
            "fewer_waits",
            "loader_workers",
            "compile",
            "cuda_graphs",
            "profile_step",
        ),
    ),
    Path(kind="low_util_cause_unknown", causes=("requests or input",), steps=_PROBE),
    Path(kind="low_util_cause_unknown", steps=(*_PROBE, "loader_workers", "larger_batch")),
    Path(kind="hollow_util", causes=("hang",), steps=_HANG),
    Path(kind="hollow_util", causes=("straggler",), steps=("balance_ranks", "cooling", "find_hung_rank")),
    Path(kind="hollow_util", steps=(*_LAUNCHES, "parallelise_code", "profile_step")),
    Path(kind="full_precision", steps=("mixed_precision", "profile_step")),
    Path(kind="mem_headroom", steps=("larger_batch", "smaller_gpu")),
    Path(
        kind="mem_pressure",
        steps=("mixed_precision", "lower_peak", "gradient_accumulation", "split_model", "larger_gpu"),
    ),
    Path(kind="mem_prealloc", steps=("stop_preallocation",)),
    Path(kind="mem_leak", steps=("fix_leak",)),
    Path(kind="workers_headroom", steps=("loader_workers", "prefetch", "faster_preprocessing")),
    Path(kind="host_memory_pressure", steps=("fewer_workers", "file_formats")),
    Path(kind="imbalance", steps=("balance_ranks", "find_hung_rank", "cooling")),
    Path(kind="unused_gpu", steps=("fewer_gpus", "data_parallel")),
    Path(kind="zombie_memory", steps=("end_stale_process", "release_gpus")),
    Path(kind="oversized_gpu", steps=("smaller_gpu", "larger_batch")),
    Path(kind="pcie_degraded", steps=("reseat_card", "smaller_transfers")),
    Path(kind="ecc_error", steps=("replace_gpu",)),
    Path(kind="gpu_lost", steps=("recover_gpu",)),
    Path(kind="log_gap", steps=("keep_recording",)),
    Path(kind="monitoring_ended", steps=("keep_recording",)),
    Path(kind="no_progress", steps=("early_stopping", "tune_schedule")),
)
"""The steps of each kind; the first path that fits a finding is its own."""


def of_kind(kind: str, cause: str | None = None) -> tuple[str, ...]:
    """Return the names of the steps for a finding, the most promising first; none for a kind without any."""
    fitting = (path for path in PATHS if path.kind == kind and (not path.causes or cause in path.causes))
    return next((path.steps for path in fitting), ())


def causes(kind: str) -> tuple[Path, ...]:
    """Return the paths of a kind, one for each group of causes."""
    return tuple(path for path in PATHS if path.kind == kind)
