"""The program, and what it refuses to publish."""

from pathlib import Path

import pytest

from tests.importers.trackers.mlflow.real import environment
from tests.importers.trackers.mlflow.stores import HARDWARE, START, Made, monitored, run_id
from tests.importers.trackers.tracked import state
from tests.support.program import Program, program

NAMES = ("base", "workers", "amp")


def made(place: int) -> Made:
    begun = 400_000 * place
    ticks = [begun + 10_000 * (tick + 1) for tick in range(30)]
    hardware = monitored(ticks, HARDWARE | {"gpu_0_utilization_percentage": 30.0 + 20 * place})
    speed = {"samples_per_second": [(START + tick, 100.0 * (place + 1), tick) for tick in ticks]}
    start, end = START + begun, START + begun + 310_000
    return Made(id=run_id(place + 1), name=NAMES[place], series=hardware | speed, start=start, end=end)


RUNS = [made(place) for place in range(3)]


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    for name, value in environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="2").items():
        monkeypatch.setenv(name, value)
    return program(capsys, monkeypatch, tmp_path)


def refuse(gpureport: Program, root: Path, *words: str) -> str:
    """Return the code with which `publish` is refused, which changes no file and prints one line."""
    before = state(root)
    done = gpureport("publish", *words)
    assert (done.out, done.err.count("\n"), done.code in {2, 3}) == ("", 1, True), (words, done)
    assert state(root) == before, words
    return gpureport("--debug", "publish", *words).error
