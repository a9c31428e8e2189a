"""The stand-in answers as the driver's own program does, so that tests with it mean something."""

import subprocess
from pathlib import Path

import pytest

from tests.recorder.stand_in import read_ticks

_LOG = Path(__file__).resolve().parents[2] / "sample_logs/imbalance/nvidia-smi.csv.gz"
_FORM = Path(__file__).resolve().parents[2] / "sample_logs/recorded/forms/dmon-gpm-DT.txt"


def _call(driver: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([driver, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_query_plays_rows_of_the_log(stand_in_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_LOG", str(_LOG))
    code, lines = _call(stand_in_driver, "--query-gpu=timestamp,gpu_uuid,utilization.gpu,clocks.sm", "--format=csv")
    tick = read_ticks(_LOG)[0]
    assert code == 0
    assert lines[0] == "timestamp, uuid, utilization.gpu [%], clocks.current.sm [MHz]"
    assert [line.split(", ")[2] for line in lines[1:]] == [f"{row['utilization.gpu']} %" for row in tick]


def test_dmon_header_has_the_recorded_form(stand_in_driver: Path) -> None:
    metrics = "1,2,3,4,5,6,7,8,9,10,11,12,13,20,21,60,61"
    _, lines = _call(stand_in_driver, "dmon", "-s", "puc", "-o", "DT", "-d", "1", "-c", "1", "--gpm-metrics", metrics)
    real = _FORM.read_text().splitlines()
    assert lines[0].index("pclk") == real[0].index("pclk")
    assert lines[0].index("smutil") == real[0].index("smutil")
    assert lines[1] == real[1].replace("GPM:MiB/s", "    GPM:%")
    assert len(lines[2]) == len(real[2])
