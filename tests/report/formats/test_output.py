"""Files: whole or not at all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.report import FORMATS, write
from gpureport.report.model.report_content import SCHEMA, Report


@pytest.mark.parametrize("extension", sorted(FORMATS))
def test_every_format_is_written_and_repeatable(extension: str, hostile: Report, tmp_path: Path) -> None:
    """Folders are made, nothing else is left behind, and a second time gives the same bytes."""
    first, second = tmp_path / "a" / "b" / f"r{extension}", tmp_path / "a" / "b" / f"s{extension}"
    write(hostile, first)
    write(hostile, second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, second.name]
    if extension not in {".pdf", ".png"}:  # whose bytes are packed
        assert b"\x1b" not in first.read_bytes()


def test_unknown_extension_names_the_known_ones(report: Report, tmp_path: Path) -> None:
    """The message says what could be asked for."""
    with pytest.raises(RenderError, match=r"\.docx: no report format has this extension; use one of \.html, \.json"):
        write(report, tmp_path / "report.docx")
    with pytest.raises(RenderError, match="report: no report format has this extension"):
        write(report, tmp_path / "report")


def test_failure_leaves_the_old_file(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full, what was there stays and no half is left."""
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RenderError, match="cannot be written"):
        write(report, target)
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


def test_a_folder_that_is_a_file(report: Report, tmp_path: Path) -> None:
    """A path that cannot be is an error a person can act on."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RenderError, match="cannot be written"):
        write(report, tmp_path / "file" / "report.html")


def test_minus_is_text_on_standard_output(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """`-` prints the plain text."""
    write(report, "-")
    assert report.title in capsys.readouterr().out


def test_json_is_the_model(report: Report, tmp_path: Path) -> None:
    """Names of the model, null for what was not recorded, no samples."""
    write(report, tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["schema"] == SCHEMA
    assert content["findings"][0]["fingerprints"] == list(report.findings[0].fingerprints)
    assert content["findings"][0]["lost_seconds"] == 120
    assert "recording" not in content["timeline"][0]
    assert len(content["timeline"][0]["strips"][0]["mean"]) == len(report.timeline[0].strips[0].mean)


def test_importing_the_package_is_cheap() -> None:
    """No library is loaded before a report is asked for."""
    heavy = ("numpy", "pyarrow", "matplotlib", "jinja2", "pandas")
    code = f"import sys, gpureport.report; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_renderers_load_no_pandas_and_no_pyplot() -> None:
    """What is slow to import stays out of a report."""
    code = (
        "import sys, gpureport.report.formats.html, gpureport.report.sections.builder;"
        "print([name for name in ('pandas', 'matplotlib.pyplot', 'scipy.stats') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
