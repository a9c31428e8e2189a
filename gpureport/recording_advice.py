"""What to record, in the words used by all findings, checks, pages and error messages.

One `nvidia-smi --query-gpu` command records everything that an nvidia-smi log can show. `gpureport record` runs it with
the fields that the driver supports.
"""

import re
from collections.abc import Iterable

from gpureport.metrics import BY_NAME, Metric, Scope

_QUERY = (
    "timestamp,index,name,uuid,memory.total,pci.bus_id,mig.mode.current,driver_version,utilization.gpu,"
    "utilization.memory,memory.used,memory.reserved,power.draw,enforced.power.limit,power.default_limit,"
    "temperature.gpu,temperature.memory,temperature.gpu.tlimit,clocks.current.sm,clocks.max.sm,"
    "pcie.link.gen.gpucurrent,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,"
    "ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total,remapped_rows.correctable,"
    "remapped_rows.uncorrectable,retired_pages.single_bit_ecc.count,retired_pages.double_bit.count,"
    "remapped_rows.pending,remapped_rows.failure,retired_pages.pending,clocks_event_reasons.active"
)
GPU_FIELDS = tuple(_QUERY.split(","))
"""All useful fields, for drivers R530 and newer."""
IDENTITY_FIELDS = GPU_FIELDS[: GPU_FIELDS.index("memory.total") + 1]
"""Fields in every command: the time, and the GPU's index, model, uuid and memory."""
COUNTER_FIELDS = (
    "clocks_event_reasons_counters.sw_power_cap",
    "clocks_event_reasons_counters.sw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_power_brake_slowdown",
)
"""Fields that count how long the driver lowered a clock, for drivers R580 and newer."""
RECORD = "gpureport record -- COMMAND"  # Records a job, its GPUs and its machine.
RECORDS_ONE = f"{RECORD} records one"  # Advice for users whose file is not a log.
RECORDS_MISSING = f"{RECORD} records the GPU and host metrics that are missing here."
GPU_COMMAND = f"nvidia-smi --query-gpu={_QUERY} --format=csv -l 1 -f gpu.csv"
DMON_COMMAND = "nvidia-smi dmon -s t -o DT > dmon.log"  # logs PCIe traffic, which the query lacks
GPM_COMMAND = "nvidia-smi dmon --gpm-metrics 2,3,5,10 -o DT > gpm.log"
"""Logs how much of a GPU is active, on Hopper and newer GPUs."""
DCGM_COMMAND = "dcgmi dmon -e 203,155,150,140,252,1002,1004,1005 -d 1000 > dcgm.txt"
"""Logs GPU activity on older GPUs, with utilisation, power, temperatures and memory."""
HOST_COMMAND = "sar -u -r -b -P ALL 1 > host.txt"  # Logs the machine, in local time like nvidia-smi.
PROCESS_COMMAND = "pidstat -u -r -p PID 1 > process.txt"  # Logs one process.
_OF_HOST = {"psutil": HOST_COMMAND, "max(psutil": HOST_COMMAND, "sar": HOST_COMMAND, "pidstat": PROCESS_COMMAND}
"""Commands for host metrics, keyed by the first word of `recorded_by`."""


def find_raw_command(metric: Metric) -> str:
    """Return the command that logs a metric without gpureport, or an empty string."""
    if metric.recorded_by in {"dmon rxpci", "dmon txpci"}:
        return DMON_COMMAND
    if metric.scope is Scope.HOST:
        return _OF_HOST.get(re.split("[ .]", metric.recorded_by)[0], "")
    if metric.recorded_by.startswith("DCGM_"):
        return DCGM_COMMAND
    return GPU_COMMAND if {*metric.recorded_by.split(",")} <= {*GPU_FIELDS, *COUNTER_FIELDS} else ""


def is_recorded(metric: Metric) -> bool:
    return find_raw_command(metric) in {GPU_COMMAND, DMON_COMMAND, HOST_COMMAND, PROCESS_COMMAND}


def choose_recording(metrics: Iterable[str]) -> str:
    """Return the tools that record the metrics: `gpureport record`, and others for what it cannot record."""
    wanted = [BY_NAME[name] for name in metrics]
    ways = (RECORD if is_recorded(metric) else find_raw_command(metric) or metric.recorded_by for metric in wanted)
    return "; ".join(dict.fromkeys(ways))


def list_raw_commands(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the commands, at least one, that log the metrics without gpureport."""
    needed = {find_raw_command(BY_NAME[name]) for name in metrics} or {GPU_COMMAND}
    known = (GPU_COMMAND, DMON_COMMAND, DCGM_COMMAND, HOST_COMMAND, PROCESS_COMMAND)
    return tuple(command for command in known if command in needed)
