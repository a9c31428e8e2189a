"""The program, and what it refuses to publish."""

from pathlib import Path

import pytest

from tests.importers.trackers.mlflow.real import environment
from tests.importers.trackers.tracked import state
from tests.support.program import Program, program


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
    told = gpureport("--debug", "publish", *words).err.splitlines()
    return next((line.removeprefix("code: ") for line in told if line.startswith("code: ")), "")
