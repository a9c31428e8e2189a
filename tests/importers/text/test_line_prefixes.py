"""Logs whose lines another program labelled."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import find_runs
from gpureport.importers.text.line_prefixes import HINT
from tests.importers.written_logs import log


@pytest.mark.parametrize(
    "label", ["0: ", "[2026-03-14 09:00:00,123] INFO gpu: ", "2026-03-14T09:00:00.123456789Z stdout F ", "node-7 | "]
)
def test_what_stands_before_each_line_is_named_and_can_be_taken_away(tmp_path: Path, label: str) -> None:
    """The command in the message makes the log again."""
    path, text = tmp_path / "log.csv", log(3)
    path.write_text("".join(f"{label}{line}\n" for line in text.splitlines()))
    with pytest.raises(SourceError, match=re.escape(f"another program put {label!r} before")) as refused:
        find_runs(path)
    if sed := shutil.which("sed"):
        command = re.search(r"'(.*)'", refused.value.hint)
        assert command
        made = subprocess.run([sed, "-E", command[1], path], capture_output=True, text=True, check=True)
        assert made.stdout == text


def test_other_headers_have_no_label(tmp_path: Path) -> None:
    """A column before the time is none."""
    path = tmp_path / "log.csv"
    path.write_text("host, timestamp, load\na, 1, 2\n")
    with pytest.raises(SourceError) as refused:
        find_runs(path)
    assert refused.value.hint != HINT
