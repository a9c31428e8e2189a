"""The command line: `table` has an entry a command, and a module of `commands` does it, loaded when it is called.

`main` finds the command, and turns errors into a line and an exit code. `options` holds every option once, as the
fields of one class, which `values` read, and `written` guards what is read against what is written. `messages` says
things on standard error, `output` prints and writes reports, `account` says what was read of a run, `reading` leads
from words to recordings and their analyses, and `gate` goes on from there.
"""

from gpureport.cli.main import main

__all__ = ["main"]
