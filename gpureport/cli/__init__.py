"""The command line: `main` finds the command of `table`, and has a module of `commands` do it.

`options` holds every option once, read by `values`; `sources` and `words` find what a person names, in logs and in
the store; `recordings` and `steps` read it, `gate` holds it against rules, and `messages` and `output` say the rest.
"""

from gpureport.cli.main import main

__all__ = ["main"]
