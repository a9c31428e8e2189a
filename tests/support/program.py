"""The program run in this process and any folder, where no fixture can be asked for."""

import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from gpureport.cli.main import main
from tests.cli.program import Outcome


def run_program(folder: Path, *arguments: str) -> Outcome:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main([*arguments])
        except SystemExit as left:
            code = int(left.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())
