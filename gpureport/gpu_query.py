"""The one `nvidia-smi --query-gpu` command whose log answers what a log of nvidia-smi can answer.

`gpureport record` runs it with the fields that the driver knows; every page that says what to record prints it.
"""

from collections.abc import Iterable

IDENTITY_FIELDS = ("timestamp", "index", "name", "uuid", "memory.total")
"""Fields that every command holds: they say when, which GPU, what it is and how much memory it has."""

GPU_FIELDS = (
    *IDENTITY_FIELDS,
    "pci.bus_id",
    "mig.mode.current",
    "driver_version",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.reserved",
    "power.draw",
    "enforced.power.limit",
    "power.default_limit",
    "temperature.gpu",
    "temperature.memory",
    "temperature.gpu.tlimit",
    "clocks.current.sm",
    "clocks.max.sm",
    "pcie.link.gen.gpucurrent",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.volatile.total",
    "remapped_rows.correctable",
    "remapped_rows.uncorrectable",
    "retired_pages.single_bit_ecc.count",
    "retired_pages.double_bit.count",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "retired_pages.pending",
    "clocks_event_reasons.active",
)
"""Fields that answer what a log of nvidia-smi can answer, with R530 and newer."""

COUNTER_FIELDS = (
    "clocks_event_reasons_counters.sw_power_cap",
    "clocks_event_reasons_counters.sw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_power_brake_slowdown",
)
"""Time the driver counted a clock held down; R580 and newer have them."""


def query_command(fields: Iterable[str], seconds: int = 1) -> str:
    """Return the nvidia-smi command that logs fields, and always the identity of each row, into `gpu.csv`."""
    names = ",".join(dict.fromkeys((*IDENTITY_FIELDS, *fields)))
    return f"nvidia-smi --query-gpu={names} --format=csv -l {seconds} -f gpu.csv"
