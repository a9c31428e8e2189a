"""Names of `tests.support.logs`, for the rooms that still take them from here."""

from tests.support.logs import (
    EPOCH,
    MAP,
    START,
    dmon_log,
    gpustat_document,
    gpustat_log,
    long_csv,
    nvitop_csv,
    prometheus_answer,
    wandb_csv,
    wandb_lines,
    wide_csv,
    wrapper_csv,
)
from tests.support.logs import iso_stamp as stamp

__all__ = [
    "EPOCH",
    "MAP",
    "START",
    "dmon_log",
    "gpustat_document",
    "gpustat_log",
    "long_csv",
    "nvitop_csv",
    "prometheus_answer",
    "stamp",
    "wandb_csv",
    "wandb_lines",
    "wide_csv",
    "wrapper_csv",
]
