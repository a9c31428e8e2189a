"""The command line: `main` looks up a command in `table` and calls its function in `commands`.

`options` defines the options, `values` parses them; `sources` and `words` find logs and stored runs; `recordings` and
`steps` read them; `gate` checks rules; `messages` and `output` print.
"""

from gpureport.cli.main import main

__all__ = ["main"]
