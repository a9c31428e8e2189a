"""Text for a terminal."""

import re
import shutil
import sys
import textwrap

import click

from gpureport.fetched_copies import name_by_url
from gpureport.redaction import redact_text

_TABLE = re.compile(r"\S {2,}\S")
"""Columns of a table."""
_NARROW = 40


def make_printable(text: str) -> str:
    """Return text on one line, without secrets and control characters, with URLs for copies."""
    spaced = (" " if character.isspace() else character for character in redact_text(name_by_url(text)))
    return "".join(character for character in spaced if character.isprintable())


def print_error(message: str, aside: str = "") -> None:
    """Say what went wrong on one line of standard error, and lines to save on standard output."""
    click.echo(f"gpureport: {make_printable(' '.join(message.split()))}", err=True)
    for line in aside.splitlines():
        click.echo(make_printable(line))


def wrap_for_terminal(line: str) -> str:
    """Return a line as printed: on a terminal in several, with the later ones indented by two more.

    What goes to a file or another program, and a line of a table, stays one line.
    """
    if not sys.stdout.isatty() or _TABLE.search(line):
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    width = max(shutil.get_terminal_size((80, 24)).columns, _NARROW)
    parts = textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(parts)
