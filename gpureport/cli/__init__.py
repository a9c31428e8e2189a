"""The command line: one command a module, loaded when it is called."""

from gpureport.cli.main import main

__all__ = ["main"]
