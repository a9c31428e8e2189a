"""One run seen through nvidia-smi, MLflow and Neptune: the same figures, within what each recorder resolves.

What a recorder that looks every h seconds can be wrong by: NVML averages over the second before a reading, so a
stretch without work of L seconds reads as 0 for about L - 1 of them. Of k h + f seconds a recorder sees k or k + 1
readings, by the phase it happens to have, and so is wrong by a standard deviation of sqrt(f (h - f)), h / 2 at most.
Stretches are independent, so these add up in squares, and three times the sum is allowed: about 50 s of 350 s idle
here, far less than the interval for each transition that no phase can exceed. The first and the last reading speak for
half an interval beyond them, and MLflow loses its last one, so the time that is covered differs by up to two intervals.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import gpureport
from gpureport.testing import Analysis, DeviceStatistics, Floats, Interval, Recording
from tests.importers import one_run

UTILISATION = "gpu_utilization_ratio"
SMI, MLFLOW, EXPORT, LOG = "nvidia-smi", "mlflow", "neptune export", "neptune log"
WRITERS = {
    SMI: one_run.nvidia_smi,
    MLFLOW: one_run.mlflow,
    EXPORT: one_run.neptune_export,
    LOG: one_run.neptune_log,
}
SECONDS = {
    SMI: 1.0,
    MLFLOW: one_run.MLFLOW_SECONDS,
    EXPORT: one_run.NEPTUNE_SECONDS,
    LOG: one_run.NEPTUNE_SECONDS,
}
TRACKERS = (MLFLOW, EXPORT, LOG)
GPUS = ("gpu:0", "gpu:1")
_MACHINE = {"cpu_bound_single", "io_bound", "transfer_bound", "rate_falls"}
"""Kinds that take single cores, waiting for storage, PCIe traffic, or the rate of the training."""
_HOST_MEMORY = {"workers_headroom", "host_memory_pressure"}
_LINK = {"pcie_degraded", "ecc_error"}
_CLOCKS = {"thermal_throttle", "hw_throttle", "power_limited", "clocks_locked", "full_precision", "oversized_gpu"}
"""Kinds that take clocks, limits, or what a GPU is."""
NEVER_RECORDED = {
    SMI: {"cpu_bound", "underutilised", "full_precision", *_MACHINE, *_HOST_MEMORY, *_LINK},
    MLFLOW: {*_CLOCKS, *_MACHINE, *_HOST_MEMORY, *_LINK},
    EXPORT: {
        *("mem_headroom", "mem_pressure", "mem_prealloc", "mem_leak", "hollow_util", "power_cap"),
        *_CLOCKS,
        *_MACHINE,
        *_LINK,
    },
    LOG: {*_CLOCKS, *_MACHINE, *_LINK},
}
"""Kinds each recorder leaves open: neither tracker records clocks, nor an export what a GPU has."""


@dataclass(frozen=True)
class Seen:
    """The run as one recorder wrote it down, read and judged."""

    seconds: float
    recording: Recording
    analysis: Analysis

    def statistics(self, gpu: str) -> DeviceStatistics:
        return next(each for each in self.analysis.statistics if each.device == gpu)

    def mean(self, gpu: str, metric: str) -> float:
        summary = self.statistics(gpu).metric(metric)
        assert summary is not None
        return summary.mean

    def idle(self, gpu: str) -> float:
        seconds = self.statistics(gpu).idle_seconds
        assert seconds is not None
        return seconds

    def gaps(self, gpu: str) -> list[Interval]:
        found = (finding for finding in self.analysis.findings if finding.kind == "idle_gap")
        return sorted(part for finding in found if gpu in finding.devices for part in finding.intervals)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    for write in WRITERS.values():
        write(place)
    return place


def _source(folder: Path, name: str) -> Path:
    return folder / {SMI: "gpu.csv", MLFLOW: "mlflow.db", EXPORT: "dump", LOG: ".neptune"}[name]


def _read(source: Path, *, tz: str | None = None, mlflow_raw_times: bool = False) -> Recording:
    (recording,) = gpureport.read(source, tz=tz, mlflow_raw_times=mlflow_raw_times)
    return recording


@pytest.fixture(scope="module")
def seen(folder: Path) -> dict[str, Seen]:
    """Return the run as each recorder has it, by its name; only nvidia-smi needs to be told a time zone."""
    made = {}
    for name in WRITERS:
        recording = _read(_source(folder, name), tz=one_run.ZONE if name == SMI else None)
        made[name] = Seen(SECONDS[name], recording, gpureport.analyze(recording))
    return made


def _idle_error(gpu: int, seconds: float) -> float:
    """Return by how much idle seconds may differ from those of another recorder, as the head of this file derives."""
    parts = [max(length - 1, 0) % seconds for _, length in one_run.IDLE[gpu]]
    deviation = float(np.sqrt(sum(part * (seconds - part) for part in parts)))
    # the first reading, when the GPU is idle, speaks for half an interval before it
    return 3 * deviation + seconds / 2


@pytest.mark.parametrize("gpu", range(len(GPUS)))
def test_a_reading_a_second_has_the_run_as_it_was(seen: dict[str, Seen], gpu: int) -> None:
    truth = sum(length for _, length in one_run.IDLE[gpu])
    assert seen[SMI].idle(GPUS[gpu]) == pytest.approx(truth, abs=len(one_run.IDLE[gpu]))
    share = 1 - truth / one_run.SECONDS
    assert seen[SMI].mean(GPUS[gpu], UTILISATION) == pytest.approx(one_run.BUSY / 100 * share, abs=0.002)


@pytest.mark.parametrize("gpu", range(len(GPUS)))
@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_has_the_same_means(seen: dict[str, Seen], name: str, gpu: int) -> None:
    device, one, other = GPUS[gpu], seen[SMI], seen[name]
    error = (_idle_error(gpu, other.seconds) + 2 * other.seconds) / one_run.SECONDS
    assert error < 0.05
    assert other.idle(device) == pytest.approx(one.idle(device), abs=_idle_error(gpu, other.seconds))
    work = one.mean(device, UTILISATION)
    assert other.mean(device, UTILISATION) == pytest.approx(work, abs=one_run.BUSY / 100 * error)
    power = one.mean(device, "gpu_power_watts")
    swing = one_run.BUSY_WATTS - one_run.IDLE_WATTS
    assert other.mean(device, "gpu_power_watts") == pytest.approx(power, abs=swing * error)


@pytest.mark.parametrize("gpu", range(len(GPUS)))
@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_has_the_same_peak_of_memory(seen: dict[str, Seen], name: str, gpu: int) -> None:
    """It is higher by what the driver reserves, which is said; MLflow rounds to 0.1 MB, nvidia-smi up to a MiB."""
    peak, whole = (seen[each].statistics(GPUS[gpu]).memory_peak_bytes for each in (SMI, name))
    assert peak is not None
    assert whole is not None
    assert whole == pytest.approx(peak + one_run.RESERVED, abs=0.05e6 + 2**20 if name == MLFLOW else 2**20)
    assert seen[SMI].recording.run.gpus[gpu].memory_reserved_bytes == one_run.RESERVED


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_has_the_same_long_gaps(seen: dict[str, Seen], name: str, gpu: str) -> None:
    step = SECONDS[name]
    long = [gap for gap in seen[SMI].gaps(gpu) if gap.seconds > 3 * step]
    found = seen[name].gaps(gpu)
    assert len(long) >= 4
    assert len(found) == len(long) < len(seen[SMI].gaps(gpu))
    for one, other in zip(long, found, strict=True):
        assert other.start / 1e6 == pytest.approx(one.start / 1e6, abs=step)
        assert other.end / 1e6 == pytest.approx(one.end / 1e6, abs=step)


def _series(recording: Recording, gpu: str) -> tuple[Floats, Floats]:
    table = recording.rows_of(gpu)
    times = (table.column("timestamp").to_numpy().astype(np.int64) - one_run.START) / 1e6
    return times, table.column(UTILISATION).to_numpy().astype(float)


def _late(one: Recording, other: Recording, gpu: str) -> float:
    """Return by how many seconds the second must be moved back to agree best with the first."""
    times, values = _series(one, gpu)
    asked, found = _series(other, gpu)
    moves = np.arange(-30, 30.5, 0.5)
    differences = [float(np.abs(np.interp(asked - move, times, values) - found).mean()) for move in moves]
    return float(moves[int(np.argmin(differences))])


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_is_not_late(seen: dict[str, Seen], name: str, gpu: str) -> None:
    assert abs(_late(seen[SMI].recording, seen[name].recording, gpu)) <= 1


def test_mlflow_as_it_logged_is_late(folder: Path, seen: dict[str, Seen]) -> None:
    logged = _read(_source(folder, MLFLOW), mlflow_raw_times=True)
    assert _late(seen[SMI].recording, logged, "gpu:0") == pytest.approx(one_run.MLFLOW_SECONDS, abs=0.6)


@pytest.mark.parametrize("name", WRITERS)
def test_values_that_were_put_back_are_counted(seen: dict[str, Seen], name: str) -> None:
    """Neptune's client drops every 0, and no other recorder drops any; without them the mean would be of work alone."""
    recording = seen[name].recording
    zeros = [int((_series(recording, gpu)[1] == 0).sum()) for gpu in GPUS]
    assert min(zeros) > 20
    assert recording.run.quality.imputed_points == (sum(zeros) if name in {EXPORT, LOG} else 0)


@pytest.mark.parametrize("name", WRITERS)
def test_what_was_not_recorded_is_not_judged(seen: dict[str, Seen], name: str) -> None:
    entries = seen[name].analysis.not_judged
    # nor did any of them record how well the model did
    assert {entry.kind for entry in entries} == NEVER_RECORDED[name] | {"no_progress"}
    assert all(entry.recording for entry in entries if entry.metrics)
    assert not {finding.kind for finding in seen[name].analysis.findings} & NEVER_RECORDED[name]
