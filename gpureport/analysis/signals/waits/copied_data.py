"""How much data a GPU and its host exchange, and from when on copies explain a full core."""

from collections.abc import Iterator, Mapping

import numpy as np

from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Evidence, Threshold

COPYING = "copying"
"""Cause of a wait for data on its way between host and GPU."""

RECEIVED = "pcie_receive_bytes_per_second"
SENT = "pcie_transmit_bytes_per_second"

FILLS_A_CORE = pragmatic(
    4e9, "By/s", "an H100 fed from memory that is not pinned received 7.3e9; 3,500 images a second of float32 are 2.1e9"
)
"""Data a second from which a thread that is busy all the time is likely to copy it, if half as much or less is sent."""
KEEPS_GPU_WAITING = pragmatic(
    1e10, "By/s", "an H100 that copied from pinned memory for 70% of its time received 4.2e10; training on images < 1e9"
)
"""Data a second from which a GPU that does little and sends less than half as much waits for copies."""


def measure_copies(gpus: Mapping[str, DeviceSeries], spans: Spans) -> float:
    """Return the mean data rate of the GPU that receives most; NaN where none was recorded that sends half or less.

    What peers exchange goes both ways.
    """
    rates = [[one.find_values(name, spans) for name in (RECEIVED, SENT)] for one in gpus.values()]
    means = [(float(np.mean(got)), float(np.mean(sent))) for got, sent in rates if len(got) and len(sent)]
    return max((got for got, sent in means if sent <= got / 2), default=float("nan"))


def build_copy_evidence(rate: float, limit: Threshold) -> Iterator[Evidence]:
    """Yield the data rate against the limit from which copies are the cause; nothing where it was not recorded."""
    if not np.isnan(rate):
        evidence = compare_with_limit(RECEIVED, "mean", rate, ">=", limit)
        yield evidence if evidence.meets_limit else evidence.as_context()


def describe_copies(rate: float) -> str:
    """Return that data went over PCIe meanwhile, as a further sentence."""
    return f" Meanwhile {rate / 1e9:.1f} GB/s came over PCIe: the thread is probably copying."
