"""The command line: one command a module of `commands`, loaded when it is called.

`main` finds the command, and turns errors into a line and an exit code. `options` holds every option once, as the
fields of one class, which `values` read; `command` makes a command of a function that takes these options, and
`written` guards what is read against what is written. `messages` says things on standard error, `output` prints and
writes reports, `reading` leads from words to recordings and their analyses, `gate`, `nights` and `fleet` go on from
there.
"""

from gpureport.cli.main import main

__all__ = ["main"]
