"""The program run as a person runs it, in this process and any folder."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gpureport.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The code of the error, which --debug prints."""
        return next((line[6:] for line in self.err.splitlines() if line.startswith("code: ")), "")


Program = Callable[..., Outcome]


def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Program:
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr("sys.argv", ["gpureport", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return Outcome(int(left.value.code or 0), captured.out, captured.err)

    return run


def analysed(gpureport: Program, *words: str) -> list[dict[str, Any]]:
    """Return the runs that the JSON of an analysis holds."""
    runs: list[dict[str, Any]] = json.loads(gpureport("analyze", *words, "--format", "json").out)["runs"]
    return runs


def run_program(folder: Path, *arguments: str) -> Outcome:
    """Run the program where no fixture can be asked for."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    called = patch.object(sys, "argv", ["gpureport", *arguments])
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), called:
        try:
            main()
        except SystemExit as left:
            code = int(left.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())
