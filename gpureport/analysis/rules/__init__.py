"""The rules, one module a family of ways to lose GPU time: a rule is a function, and its section of `rules.toml`.

A new detector: the function, its sections of `rules.toml` and `kinds.toml`, one line in RULES below, one sample folder,
one row of a test table.
"""

from gpureport.analysis.detectors.balance.imbalance import Imbalance
from gpureport.analysis.detectors.hollow.busy_low_power import HollowUtil
from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.analysis.detectors.idle.startup_idle import StartupIdle
from gpureport.analysis.detectors.low_use.low_util_cause_unknown import LowUtilCauseUnknown
from gpureport.analysis.detectors.low_use.underutilised import Underutilised
from gpureport.analysis.detectors.low_use.unused_gpu import UnusedGpu
from gpureport.analysis.detectors.memory.mem_leak import MemLeak
from gpureport.analysis.detectors.memory.memory import Memory
from gpureport.analysis.detectors.memory.zombie_memory import ZombieMemory
from gpureport.analysis.detectors.waiting.cpu_bound import CpuBound
from gpureport.analysis.detectors.waiting.cpu_bound_single import CpuBoundSingle
from gpureport.analysis.detectors.waiting.host_memory import HostMemory
from gpureport.analysis.detectors.waiting.io_bound import IoBound
from gpureport.analysis.detectors.waiting.transfer_bound import TransferBound
from gpureport.analysis.rulebook import Rule, from_class
from gpureport.analysis.rules.clocks import find_locked_clocks, find_power_limits, find_throttling
from gpureport.analysis.rules.health import find_gpu_lost, find_memory_errors, find_slow_links
from gpureport.analysis.rules.log_ends import find_early_ends, find_log_gaps
from gpureport.analysis.rules.sizing import find_full_precision, find_no_progress, find_oversized_gpus

RULES: tuple[Rule, ...] = (
    from_class(IdleGap()),
    from_class(StartupIdle()),
    find_throttling,
    find_power_limits,
    from_class(CpuBound()),
    from_class(IoBound()),
    from_class(CpuBoundSingle()),
    from_class(TransferBound()),
    from_class(HostMemory()),
    from_class(Underutilised()),
    from_class(LowUtilCauseUnknown()),
    from_class(Memory()),
    find_locked_clocks,
    find_memory_errors,
    find_gpu_lost,
    from_class(MemLeak()),
    find_early_ends,
    find_slow_links,
    find_log_gaps,
    find_no_progress,
    from_class(HollowUtil()),
    from_class(Imbalance()),
    from_class(UnusedGpu()),
    from_class(ZombieMemory()),
    find_full_precision,
    find_oversized_gpus,
)
"""Every rule; `analyze` runs them in the order their needs ask for."""
