"""The command line: `main` looks up a command in `table` and calls its function in `commands`.

`options` defines the options, and `values` parses their values. `sources` and `words` find logs and stored runs, and
`recordings` and `steps` read them. `gate` checks rules, and `messages` and `output` print text.
"""

from gpureport.cli.main import main

__all__ = ["main"]
