"""Runs of any length on any number of GPUs, made without a log: eight GPUs a node, idle gaps at a fixed distance.

As a `ReadableRun`, one is written into a store device by device, so that a run larger than memory can be made.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.series_table import METRIC_TYPES, empty_training
from gpureport.testing import GIB, START, Device, Quality, Run

GPUS_PER_NODE = 8
_GAP_SECONDS = 65.0
_STARTUP_SECONDS = 30.0
_SEED = 20_261_125
_BATCH_ROWS = 100_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """A training run that pauses again and again, on nodes with a host each.

    Attributes:
        gpus: number of GPUs.
        hours: length.
        interval: seconds between two samples of a device.
        gap_every: seconds from one idle gap of a GPU to its next; none without.
        together: whether all GPUs pause at once, for a checkpoint; else one after the other, beside busy ones.
        name: what the run is called.
    """

    gpus: int = 8
    hours: float = 168.0
    interval: float = 1.0
    gap_every: float | None = 600.0
    together: bool = False
    name: str = "long"

    @property
    def run_id(self) -> str:
        """An id of its own for each size."""
        sizes = (
            self.gpus,
            round(self.hours * 60),
            round(self.interval * 10),
            round(self.gap_every or 0),
            self.together,
        )
        return "".join(f"{size:06x}" for size in sizes)

    @property
    def source_state(self) -> None:
        """Nothing that could change."""
        return

    @property
    def rows(self) -> int:
        """Samples of a device."""
        return round(self.hours * 3600 / self.interval)

    def devices(self) -> tuple[Device, ...]:
        """Return the GPUs of all nodes, then their hosts."""
        nodes = [f"node_{1 + gpu // GPUS_PER_NODE}" if self.gpus > GPUS_PER_NODE else None for gpu in range(self.gpus)]
        gpus = [
            Device(
                id=f"{node}/gpu:{gpu % GPUS_PER_NODE}" if node else f"gpu:{gpu}",
                index=gpu % GPUS_PER_NODE,
                node=node,
                model="NVIDIA A100-SXM4-80GB",
                uuid=f"GPU-{gpu:08x}",
                memory_total_bytes=80 * GIB,
                power_limit_watts=400.0,
                power_window="instant",
            )
            for gpu, node in enumerate(nodes)
        ]
        hosts = [Device(id=f"{node}/host" if node else "host", node=node) for node in dict.fromkeys(nodes)]
        return (*gpus, *hosts)

    def run(self) -> Run:
        """Return what is known of the run."""
        seconds = (self.rows - 1) * self.interval
        return Run(
            id=self.run_id,
            name=self.name,
            started=START,
            ended=START + round(seconds * 1e6),
            sources=(),
            devices=self.devices(),
            quality=Quality(),
            interval=self.interval,
        )

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows of each device, in its order."""
        for place, device in enumerate(self.devices()):
            chance = np.random.default_rng([_SEED, place])
            for start in range(0, self.rows, _BATCH_ROWS):
                seconds: Floats = (
                    np.arange(start, min(start + _BATCH_ROWS, self.rows), dtype=np.float64) * self.interval
                )
                yield _build_batch(device, seconds, self._find_idle_rows(device, seconds), chance)

    def _find_idle_rows(self, device: Device, seconds: Floats) -> npt.NDArray[np.bool_]:
        idle = seconds < _STARTUP_SECONDS
        if self.gap_every is None:
            return idle
        place = 0 if self.together else device.index or 0
        return idle | (
            (seconds + place * self.gap_every / GPUS_PER_NODE) % self.gap_every > self.gap_every - _GAP_SECONDS
        )

    def training(self) -> pa.Table:
        """Return no training metrics."""
        return empty_training()

    def renamed(self) -> Mapping[str, str]:
        """Return no device that has another name in the end."""
        return {}


def _build_batch(device: Device, seconds: Floats, idle: npt.NDArray[np.bool_], chance: np.random.Generator) -> pa.Table:
    """Return some rows of a device, times in seconds since the start."""
    values = _make_host_values if device.index is None else _make_gpu_values
    rows = len(seconds)
    table: dict[str, Any] = {
        "device": columns.category(device.id, rows),
        "timestamp": columns.to_arrow(START + np.round(seconds * 1e6).astype(np.int64), pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(rows, dtype=np.bool_), pa.bool_()),
    }
    for name, column in values(idle, chance).items():
        table[name] = columns.nan_to_null(np.broadcast_to(column, rows).astype(np.float64), METRIC_TYPES[name])
    return pa.Table.from_arrays(list(table.values()), names=list(table))


def _make_gpu_values(idle: npt.NDArray[np.bool_], chance: np.random.Generator) -> dict[str, npt.ArrayLike]:
    """Return columns of a GPU that trains at its power limit at times, and rests where it is idle."""
    rows = len(idle)
    power = np.where(idle, 62.0, np.minimum(chance.normal(372, 18, rows), 400)).round(2)
    return {
        "gpu_utilization_ratio": np.where(idle, 0, chance.integers(92, 101, rows)) / 100,
        "gpu_memory_controller_ratio": np.where(idle, 0, chance.integers(40, 60, rows)) / 100,
        "gpu_memory_used_bytes": 61 * GIB,
        "gpu_memory_total_bytes": 80 * GIB,
        "gpu_power_watts": power,
        "gpu_power_limit_watts": 400.0,
        "gpu_temperature_celsius": np.where(idle, 41, chance.integers(61, 66, rows)),
        "gpu_sm_clock_hertz": np.where(idle, 1410, chance.integers(93, 95, rows) * 15) * 1e6,
        "gpu_sm_clock_max_hertz": 1410e6,
        "gpu_performance_state": 0,
        "clock_event_gpu_idle": idle,
        "clock_event_sw_power_cap": power >= 400,
        "clock_event_hw_slowdown": False,
        "clock_event_sw_thermal_slowdown": False,
        "clock_event_hw_thermal_slowdown": False,
    }


def _make_host_values(idle: npt.NDArray[np.bool_], chance: np.random.Generator) -> dict[str, npt.ArrayLike]:
    """Return columns of a host that writes its checkpoints while the GPUs are idle."""
    rows = len(idle)
    return {
        "cpu_utilization_ratio": np.where(idle, 6, chance.integers(20, 40, rows)) / 100,
        "cpu_iowait_ratio": np.where(idle, 4, chance.integers(0, 2, rows)) / 100,
        "host_memory_used_ratio": 0.4,
        "host_disk_read_bytes_per_second": chance.integers(20, 60, rows) * 1e6,
        "host_disk_write_bytes_per_second": np.where(idle, 900e6, 1e5),
    }
