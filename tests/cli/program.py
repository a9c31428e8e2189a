"""The program run as a person runs it, in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpureport.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


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
