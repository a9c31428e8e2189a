"""Logs that were played in real time are recorded as they were: the values of every row, in order."""

import time
from pathlib import Path

import pytest

from tests.genuine import CORPUS
from tests.recorder.recorded import count_rejected, count_rows, read_run_file, start_record, wait_until
from tests.recorder.stand_in import FIELDS, read_ticks
from tests.support.logs import SAMPLES

pytestmark = pytest.mark.slow
_PLAYED = [
    SAMPLES / "healthy/nvidia-smi.csv",
    SAMPLES / "thermal_throttle/nvidia-smi.csv.gz",
    SAMPLES / "faulty_hardware/nvidia-smi.csv.gz",
    SAMPLES / "recorded/phases/query.csv.gz",
    CORPUS / "corpus/AkshayRoyal-gpu-usage__gpu_usage1.csv",
    CORPUS / "corpus/AndyZzzZzzZzz-miris__gpu_log.csv",
    CORPUS / "corpus/eobo0530-vlm_optimization__gpu_log.csv",
    CORPUS / "corpus/microsoft-VirtualClient__query-gpu-8xH100.csv",
    CORPUS / "corpus/yqg9651-cuda_test__random_gemm_fp16_half.csv",
]


@pytest.mark.parametrize("log", _PLAYED, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.usefixtures("stand_in_driver")
def test_recorded_rows_are_those_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    if not log.exists():
        pytest.skip("GPUREPORT_CORPUS names no folder with this log")
    monkeypatch.setenv("STAND_IN_LOG", str(log))
    folder = tmp_path / "rec"
    ticks = read_ticks(log)
    wanted = min(50, len(ticks)) * len(ticks[0])  # ten ticks a second
    recorder = start_record("-o", folder, "--interval", "0.1", "--", "sleep", "600")
    wait_until(lambda: count_rows(folder / "gpu.csv") >= wanted)
    recorder.terminate()
    recorder.communicate()
    assert read_run_file(folder)["exit_code"] == 128 + 15
    header, *rows = (line.split(", ") for line in (folder / "gpu.csv").read_text().splitlines())
    names = [name.split(" [")[0] for name in header]
    played = [row for tick in ticks * 10 for row in tick]
    for row, original in zip(rows, played, strict=False):
        for name, cell in zip(names, row, strict=True):
            if name in original and name != "timestamp":
                unit = FIELDS[name][1]
                assert cell.removesuffix(f" {unit}") == original[name].removesuffix(f" {unit}")
    stamps = [time.strptime(row[0][:19], "%Y/%m/%d %H:%M:%S") for row in rows]
    assert stamps == sorted(stamps)
    assert count_rejected(folder) == 0
