"""A copy of what 0.2.0 wrote, and the program in it.

`0.2.0/` was written once, by that version, from logs made by a script: `git log --follow tests/golden/write_0_2_0.py`.
"""

import shutil
import tarfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from tests.support.logs import SAMPLES
from tests.support.program import Program, program

HERE = Path(__file__).parent / "0.2.0"


def night_result(place: Path, date: str) -> dict[str, object]:
    """Return what is left of a night: the outcome of each rule, and its rows of the history."""
    suite = ET.parse(place / "junit.xml").getroot()  # noqa: S314 - our own
    bad = ("failure", "error", "skipped")
    cases = [[case.get("name"), *(each.tag for each in case if each.tag in bad)] for case in suite.iter("testcase")]
    (file,) = (place / ".gpureport" / "history").glob(f"{date}*.parquet")
    rows = pq.read_table(file).to_pylist()
    made = ("recorded", "version", "command", "reason")
    return {"rules": cases, "rows": [{key: row[key] for key in row if key not in made} for row in rows]}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")
    monkeypatch.setenv("COLUMNS", "80")
    copy = tmp_path / "place"
    shutil.copytree(HERE / "place", copy)
    shutil.copytree(SAMPLES / "input_starved", copy / "input_starved")
    with tarfile.open(SAMPLES / "recorded" / "training_steps" / "mlruns.tar.gz") as archive:
        archive.extractall(copy, filter="data")
    return copy


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: Path) -> Program:
    return program(capsys, monkeypatch, place)
