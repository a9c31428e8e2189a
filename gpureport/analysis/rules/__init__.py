"""The rules, one module a family of ways to lose GPU time: a rule is a function, and its section of `rules.toml`.

A new detector: the function, its sections of `rules.toml` and `kinds.toml`, one line in RULES below, one sample folder,
one row of a test table.
"""

from gpureport.analysis.detectors.balance.imbalance import Imbalance
from gpureport.analysis.detectors.health.ecc_error import EccError
from gpureport.analysis.detectors.health.gpu_lost import GpuLost
from gpureport.analysis.detectors.health.log_gap import LogGap
from gpureport.analysis.detectors.health.monitoring_ended import MonitoringEnded
from gpureport.analysis.detectors.health.pcie_degraded import PcieDegraded
from gpureport.analysis.detectors.hollow.busy_low_power import HollowUtil
from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.analysis.detectors.idle.startup_idle import StartupIdle
from gpureport.analysis.detectors.low_use.low_util_cause_unknown import LowUtilCauseUnknown
from gpureport.analysis.detectors.low_use.underutilised import Underutilised
from gpureport.analysis.detectors.low_use.unused_gpu import UnusedGpu
from gpureport.analysis.detectors.memory.mem_leak import MemLeak
from gpureport.analysis.detectors.memory.memory import Memory
from gpureport.analysis.detectors.memory.zombie_memory import ZombieMemory
from gpureport.analysis.detectors.sizing.oversized_gpu import OversizedGpu
from gpureport.analysis.detectors.throttling.clocks_locked import ClocksLocked
from gpureport.analysis.detectors.throttling.power_limits import PowerLimits
from gpureport.analysis.detectors.throttling.throttling import Throttling
from gpureport.analysis.detectors.training.full_precision import FullPrecision
from gpureport.analysis.detectors.training.no_progress import NoProgress
from gpureport.analysis.detectors.waiting.cpu_bound import CpuBound
from gpureport.analysis.detectors.waiting.cpu_bound_single import CpuBoundSingle
from gpureport.analysis.detectors.waiting.host_memory import HostMemory
from gpureport.analysis.detectors.waiting.io_bound import IoBound
from gpureport.analysis.detectors.waiting.transfer_bound import TransferBound
from gpureport.analysis.rulebook import Rule, from_class
from gpureport.analysis.rules.peers import find_slow_gpus
from gpureport.analysis.rules.progress import find_rate_falls, find_unexplained_changes

RULES: tuple[Rule, ...] = (
    from_class(IdleGap()),
    from_class(StartupIdle()),
    from_class(Throttling()),
    from_class(PowerLimits()),
    from_class(CpuBound()),
    from_class(IoBound()),
    from_class(CpuBoundSingle()),
    from_class(TransferBound()),
    from_class(HostMemory()),
    from_class(Underutilised()),
    from_class(LowUtilCauseUnknown()),
    from_class(Memory()),
    from_class(ClocksLocked()),
    from_class(EccError()),
    from_class(GpuLost()),
    from_class(MemLeak()),
    from_class(MonitoringEnded()),
    from_class(PcieDegraded()),
    from_class(LogGap()),
    from_class(NoProgress()),
    from_class(HollowUtil()),
    from_class(Imbalance()),
    from_class(UnusedGpu()),
    from_class(ZombieMemory()),
    from_class(FullPrecision()),
    from_class(OversizedGpu()),
    find_rate_falls,
    find_slow_gpus,
    find_unexplained_changes,
)
"""Every rule; `analyze` runs them in the order their needs ask for."""
