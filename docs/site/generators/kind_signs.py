"""What a person sees of each kind of finding in nvidia-smi, and which series show it."""

from dataclasses import dataclass

UTILISATION = "gpu_utilization_ratio"
_POWER = "gpu_power_watts"
_CLOCK = "gpu_sm_clock_hertz"
_MEMORY = "gpu_memory_used_bytes"
_TEMPERATURE = "gpu_temperature_celsius"
_CPU = "cpu_utilization_ratio"


@dataclass(frozen=True, slots=True)
class Sign:
    """How a kind shows.

    Attributes:
        text: what `nvidia-smi` shows, in plain words.
        metrics: the series of its picture, from top to bottom.
    """

    text: str
    metrics: tuple[str, ...]


SIGNS = {
    "idle_gap": Sign(
        "GPU-Util drops to 0% for many seconds and comes back, while the memory stays in use.", (UTILISATION,)
    ),
    "periodic_stall": Sign("GPU-Util drops to 0% again and again, at the same distance each time.", (UTILISATION,)),
    "startup_idle": Sign(
        "GPU-Util stays at 0% at first, with little memory in use, until the first step.", (UTILISATION,)
    ),
    "tail_idle": Sign("GPU-Util is 0% to the end, while the memory or the process is still there.", (UTILISATION,)),
    "thermal_throttle": Sign(
        "Temp stands at the limit of the GPU, the SM clock falls, and GPU-Util stays high: the work only takes longer. "
        "`nvidia-smi -q -d PERFORMANCE` says SW or HW Thermal Slowdown.",
        (_CLOCK, _TEMPERATURE),
    ),
    "hw_throttle": Sign(
        "The SM clock falls to half or less at a normal temperature. `nvidia-smi -q -d PERFORMANCE` says HW Slowdown "
        "or HW Power Brake.",
        (_CLOCK, _TEMPERATURE),
    ),
    "power_cap": Sign(
        "Pwr:Usage equals Cap while the GPU is busy, and the SM clock varies below its highest.", (_POWER, _CLOCK)
    ),
    "power_limited": Sign("Cap is lower than the default limit in `nvidia-smi -q -d POWER`.", (_POWER, _CLOCK)),
    "cpu_bound": Sign(
        "GPU-Util jumps between high and low. Only the load of the CPU shows why: it is full.", (UTILISATION, _CPU)
    ),
    "io_bound": Sign(
        "GPU-Util is low or jumps. Only the machine shows why: its CPU waits for storage (`wa` in top).",
        (UTILISATION, "cpu_iowait_ratio"),
    ),
    "cpu_bound_single": Sign(
        "GPU-Util is steady and low, and the CPU as a whole looks free: one of its cores is full.",
        (UTILISATION, "cpu_busiest_core_ratio"),
    ),
    "transfer_bound": Sign(
        "GPU-Util is low while `nvidia-smi dmon -s t` shows gigabytes a second over PCIe.",
        (UTILISATION, "pcie_receive_bytes_per_second"),
    ),
    "workers_headroom": Sign(
        "GPU-Util is low or jumps, as in any wait for data. Only the machine shows that memory and cores are free.",
        (UTILISATION, "host_memory_used_ratio"),
    ),
    "host_memory_pressure": Sign(
        "GPU-Util is low or jumps. Only the machine shows that its memory is full.",
        (UTILISATION, "host_memory_used_ratio"),
    ),
    "underutilised": Sign(
        "GPU-Util stays in the middle, or below, for minutes, and the CPU is not full.", (UTILISATION, _CPU)
    ),
    "low_util_cause_unknown": Sign("GPU-Util stays in the middle, or below, for minutes.", (UTILISATION,)),
    "mem_headroom": Sign("Memory-Usage never comes near the memory of the GPU.", (_MEMORY, UTILISATION)),
    "mem_pressure": Sign("Memory-Usage is close to the memory of the GPU.", (_MEMORY, UTILISATION)),
    "mem_prealloc": Sign(
        "Memory-Usage jumps to most of the memory at once and never moves again.", (_MEMORY, UTILISATION)
    ),
    "mem_leak": Sign("Memory-Usage climbs for as long as the job runs.", (_MEMORY, UTILISATION)),
    "clocks_locked": Sign(
        "The SM clock of the busy GPU never leaves one value, which is below its highest.", (_CLOCK, UTILISATION)
    ),
    "ecc_error": Sign(
        "Volatile Uncorr. ECC shows a number other than 0.", ("ecc_uncorrected_volatile_total", UTILISATION)
    ),
    "gpu_lost": Sign("The row of the GPU says ERR!, or nvidia-smi ends with `GPU is lost`.", (UTILISATION, _POWER)),
    "monitoring_ended": Sign(
        "Nothing: the log ends while the job runs on, as the log of the machine shows.", (UTILISATION, _CPU)
    ),
    "pcie_degraded": Sign(
        "`nvidia-smi -q` shows a current link generation or width below the highest while the GPU is busy.",
        ("pcie_link_generation", UTILISATION),
    ),
    "log_gap": Sign("Nothing: rows are missing in the middle of the log.", (UTILISATION,)),
    "no_progress": Sign("Nothing: the GPU is as busy as before. The training metrics show it.", (UTILISATION, _POWER)),
    "hollow_util": Sign("GPU-Util is near 100%, yet Pwr:Usage is close to that of an idle GPU.", (UTILISATION, _POWER)),
    "imbalance": Sign("One row of GPU-Util or Pwr:Usage differs from the others all the time.", (UTILISATION, _POWER)),
    "unused_gpu": Sign("One GPU has 0% and no process, while the others work.", (UTILISATION, _MEMORY)),
    "zombie_memory": Sign("GPU-Util is 0% to the end, and Memory-Usage does not fall.", (_MEMORY, UTILISATION)),
    "full_precision": Sign(
        "Nothing: GPU-Util is high either way. The params of the run, or the activity of the tensor cores, show it.",
        (UTILISATION, _POWER),
    ),
    "rate_falls": Sign("Nothing: only the log of the training shows it.", (UTILISATION, _CLOCK)),
    "slow_gpu": Sign("The SM clock of one GPU stays below that of the others, at the same GPU-Util.", (_CLOCK,)),
    "unexplained_change": Sign(
        "The SM clock or Pwr:Usage stays at another level, at the same GPU-Util.", (_CLOCK, _POWER)
    ),
    "oversized_gpu": Sign("GPU-Util and Memory-Usage are low for the whole job.", (UTILISATION, _MEMORY)),
}
