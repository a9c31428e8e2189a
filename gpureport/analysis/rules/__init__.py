"""The rules, one module a family of ways to lose GPU time: a rule is a function, and its section of `rules.toml`.

A new detector: the function, its sections of `rules.toml` and `kinds.toml`, one line in RULES below, one sample folder,
one row of a test table.
"""

from gpureport.analysis.rulebook import Rule
from gpureport.analysis.rules.balance import find_uneven_gpus
from gpureport.analysis.rules.clocks import find_locked_clocks, find_power_limits, find_throttling
from gpureport.analysis.rules.edges import find_edges
from gpureport.analysis.rules.health import (
    find_early_ends,
    find_gpu_lost,
    find_log_gaps,
    find_memory_errors,
    find_slow_links,
)
from gpureport.analysis.rules.hollow import find_hollow_work
from gpureport.analysis.rules.idle import find_idle_gaps
from gpureport.analysis.rules.levels import find_slow_gpus
from gpureport.analysis.rules.low_use import low_util_cause_unknown, underutilised, unused_gpu
from gpureport.analysis.rules.memory import find_growing_memory, find_kept_memory, find_memory_use, host_memory
from gpureport.analysis.rules.progress import find_rate_falls, find_unexplained_changes
from gpureport.analysis.rules.sizing import find_full_precision, find_no_progress, find_oversized_gpus
from gpureport.analysis.rules.waits import cpu_bound, cpu_bound_single, io_bound, transfer_bound

RULES: tuple[Rule, ...] = (
    find_idle_gaps,
    find_edges,
    find_throttling,
    find_power_limits,
    cpu_bound,
    io_bound,
    cpu_bound_single,
    transfer_bound,
    host_memory,
    underutilised,
    low_util_cause_unknown,
    find_memory_use,
    find_locked_clocks,
    find_memory_errors,
    find_gpu_lost,
    find_growing_memory,
    find_early_ends,
    find_slow_links,
    find_log_gaps,
    find_no_progress,
    find_hollow_work,
    find_uneven_gpus,
    unused_gpu,
    find_kept_memory,
    find_full_precision,
    find_oversized_gpus,
    find_rate_falls,
    find_slow_gpus,
    find_unexplained_changes,
)
"""Every rule; `analyze` runs them in the order their needs ask for."""
