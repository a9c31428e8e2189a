"""`--open` shows what was written."""

import shutil
from pathlib import Path

import click
import pytest

from tests.api.test_startup import SAMPLE
from tests.cli.program import Program


@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
def test_a_page_or_pdf_is_opened(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """The system is asked to open the file that was written."""
    opened: list[str] = []

    def launch(path: str) -> int:
        opened.append(path)
        return 0

    monkeypatch.setattr(click, "launch", launch)
    monkeypatch.setenv("DISPLAY", ":0")
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    done = gpureport("report", "gpu.csv.gz", "-o", name, "--open")
    assert (done.code, opened) == (0, [name])
    assert "No browser" not in done.err


@pytest.mark.parametrize("display", ["", ":0"], ids=["no display", "no program"])
def test_a_machine_without_a_browser_says_so(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, display: str
) -> None:
    """The report is written, and the note says where it is."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(click, "launch", lambda _: 1)
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    done = gpureport("report", "gpu.csv.gz", "-o", "a.html", "--open")
    assert done.code == 0
    assert "No browser was found on this machine. Copy a.html" in done.err


@pytest.mark.parametrize("command", [("demo",), ("report", "gpu.csv")])
def test_nothing_to_open_is_refused(gpureport: Program, command: tuple[str, ...]) -> None:
    """A page or PDF must be written, before any work is done."""
    done = gpureport(*command, "-o", "a.md", "--open")
    assert done.code == 2
    assert "--open: no page and no PDF is written; add -o report.html" in done.err
