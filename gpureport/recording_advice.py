"""What to record: the one answer of every finding, check, page and error message."""

import re
from collections.abc import Iterable

from gpureport.gpu_query import COUNTER_FIELDS, GPU_FIELDS, query_command
from gpureport.metrics import BY_NAME, Metric, Scope

RECORD = "gpureport record -- COMMAND"
"""What records a job, its GPUs and its machine."""
RECORDS_ONE = f"{RECORD} records one"
"""The same for a person who gave something that is no log."""
RECORDS_MISSING = f"{RECORD} records the GPU and host metrics that are missing here."
"""The same at the end of a list of what was not recorded."""

GPU_COMMAND = query_command(GPU_FIELDS)
"""What logs GPUs where gpureport cannot be installed."""
DMON_COMMAND = "nvidia-smi dmon -s t -o DT > dmon.log"
"""What logs copies over PCIe, for which --query-gpu has no field."""
GPM_COMMAND = "nvidia-smi dmon --gpm-metrics 2,3,5,10 -o DT > gpm.log"
"""What logs how much of a GPU works, on Hopper and newer: multiprocessors, tensor cores, memory."""
DCGM_COMMAND = "dcgmi dmon -e 203,155,150,140,252,1002,1004,1005 -d 1000 > dcgm.txt"
"""What logs the same on older GPUs, with utilisation, power, temperatures and memory."""
HOST_COMMAND = "sar -u -r -b -P ALL 1 > host.txt"
"""What logs the machine, in local time, as nvidia-smi does."""
PROCESS_COMMAND = "pidstat -u -r -p PID 1 > process.txt"
"""What logs one process."""

_DMON = {"dmon rxpci", "dmon txpci"}
_OF_HOST = {"psutil": HOST_COMMAND, "max(psutil": HOST_COMMAND, "sar": HOST_COMMAND, "pidstat": PROCESS_COMMAND}
"""Command by the first word of what yields a metric of the machine."""


def find_raw_command(metric: Metric) -> str:
    """Return the command that logs a metric where gpureport cannot be installed; empty when it takes another tool."""
    if metric.recorded_by in _DMON:
        return DMON_COMMAND
    if metric.scope is Scope.HOST:
        return _OF_HOST.get(re.split("[ .]", metric.recorded_by)[0], "")
    if metric.recorded_by.startswith("DCGM_"):
        return DCGM_COMMAND
    return GPU_COMMAND if {*metric.recorded_by.split(",")} <= {*GPU_FIELDS, *COUNTER_FIELDS} else ""


def is_recorded(metric: Metric) -> bool:
    """Return whether `gpureport record` logs a metric, whatever the GPU is."""
    return find_raw_command(metric) in {GPU_COMMAND, DMON_COMMAND, HOST_COMMAND, PROCESS_COMMAND}


def choose_recording(metrics: Iterable[str]) -> str:
    """Return what records metrics: the one command, and beside it those of tools for what it does not log."""
    wanted = [BY_NAME[name] for name in metrics]
    ways = (RECORD if is_recorded(metric) else find_raw_command(metric) or metric.recorded_by for metric in wanted)
    return "; ".join(dict.fromkeys(ways))


def list_raw_commands(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the commands that log metrics where gpureport cannot be installed; at least one."""
    needed = {find_raw_command(BY_NAME[name]) for name in metrics} or {GPU_COMMAND}
    known = (GPU_COMMAND, DMON_COMMAND, DCGM_COMMAND, HOST_COMMAND, PROCESS_COMMAND)
    return tuple(command for command in known if command in needed)
