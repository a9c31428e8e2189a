"""What the command fleet prints and writes of a report on many runs."""

import json
from pathlib import Path

import pytest

from gpureport.cli.results import fleet_output
from gpureport.errors import RenderError
from gpureport.report.formats.branding import PLAIN
from tests.fleet.page import fleets


def test_text_is_printed_unless_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One screen, everything, JSON; files alone are named on standard error with what they say."""
    month = fleets.month()
    fleet_output.write_fleet(month, (), "text", brand=PLAIN)
    short = capsys.readouterr().out
    assert short.startswith("31% of 24,012 GPU-hours lost in October")
    fleet_output.write_fleet(month, (), "text", brand=PLAIN, full=True)
    assert len(capsys.readouterr().out) > 5 * len(short)
    fleet_output.write_fleet(month, (), "json", brand=PLAIN)
    assert json.loads(capsys.readouterr().out)["schema"] == "gpureport.fleet/1"
    target = tmp_path / "fleet.md"
    fleet_output.write_fleet(month, (target,), "text", brand=PLAIN)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"mainly waiting for data → {target}" in printed.err
    assert target.read_text(encoding="utf-8").startswith("# 31% of 24,012 GPU-hours")


def test_options_that_no_file_needs_are_refused(tmp_path: Path) -> None:
    """Nothing can be opened that is no page."""
    with pytest.raises(RenderError, match="no page and no PDF is written"):
        fleet_output.check_fleet_options([tmp_path / "fleet.md"], full=False, opened=True)
