"""Neptune's own client recording a stand-in for a GPU whose load is known, and what is read of it."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpureport.testing import Recording
from tests.importers.trackers.neptune.schedule import GIB
from tests.importers.trackers.tracked import column, recording, state, times

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.skipif(find_spec("neptune") is None, reason="the extra neptune is not installed"),
]
NATIVE = Path(__file__).parents[3] / "native" / "nvml.c"
BUSY, REST = 20, 15
SECONDS = 75
_JOB = """
import time, neptune
run = neptune.init_run(mode="offline", name="known load", monitoring_namespace="monitoring/training",
                       capture_stdout=False, capture_stderr=False, capture_traceback=False, source_files=[])
run["params/batch_size"] = 64
start = time.time()
while time.time() - start < {seconds}:
    run["train/loss"].append(1.0 / (1 + time.time() - start))
    time.sleep(1)
run.stop()
"""


def job(folder: Path, **settings: object) -> None:
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([str(shutil.which("cc")), "-shared", "-fPIC", "-O1", "-o", str(library), str(NATIVE)], check=True)
    said = {name: str(value) for name, value in settings.items()}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "STANDIN_GPUS": "2", **said}
    program = _JOB.format(seconds=SECONDS)
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Recording]:
    folder = tmp_path_factory.mktemp("client")
    job(folder, STANDIN_BUSY=BUSY, STANDIN_REST=REST)
    before = state(folder / ".neptune")
    found = recording(folder / ".neptune")
    assert state(folder / ".neptune") == before
    return folder, found


def truth(found: Recording) -> list[float]:
    start = times(found, "gpu:0")[0]
    return [97.0 if (at - start) / 1e6 % (BUSY + REST) < BUSY else 0.0 for at in times(found, "gpu:0")]


@pytest.mark.slow
@pytest.mark.smoke
def test_the_schedule_comes_back(recorded: tuple[Path, Recording]) -> None:
    _, found = recorded
    expected = truth(found)
    assert len(expected) in {8, 9}
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in expected]
    assert column(found, "gpu:0", "imputed") == [value == 0 for value in expected]
    assert column(found, "gpu:1", "gpu_utilization_ratio") == [0.35] * len(expected)
    assert column(found, "gpu:0", "gpu_memory_used_bytes") == [12 * GIB] * len(expected)
    assert column(found, "gpu:0", "gpu_power_watts") == [60 + 2 * value for value in expected]
    assert (found.run.gpus[0].memory_total_bytes, found.run.gpus[0].power_limit_watts) == (16 * GIB, 300.0)
    assert dict(found.run.params) == {"params/batch_size": "64"}
    assert len(found.training) > SECONDS // 2
    assert found.run.interval == pytest.approx(10.0, abs=0.2)
