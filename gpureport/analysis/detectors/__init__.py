"""The rules: one folder a family of ways to lose GPU time, one module a kind or a group of kinds with one computation.

A family imports `series`, `job`, `signals` and `rules`, never another family.
A new detector: one module in its family, one line in RULES below, one sample folder, one test.
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
from gpureport.analysis.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    IdleGap(),
    StartupIdle(),
    Throttling(),
    PowerLimits(),
    CpuBound(),
    IoBound(),
    CpuBoundSingle(),
    TransferBound(),
    HostMemory(),
    Underutilised(),
    LowUtilCauseUnknown(),
    Memory(),
    ClocksLocked(),
    EccError(),
    GpuLost(),
    MemLeak(),
    MonitoringEnded(),
    PcieDegraded(),
    LogGap(),
    NoProgress(),
    HollowUtil(),
    Imbalance(),
    UnusedGpu(),
    ZombieMemory(),
    FullPrecision(),
    OversizedGpu(),
)
"""Every rule; `analyze` runs them in the order their needs ask for."""
