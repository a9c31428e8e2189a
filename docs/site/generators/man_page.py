"""Writes the manual page from the help texts of the command line (`make_pages.py --manual FILE`)."""

import inspect
import textwrap

import click

from gpureport.cli.main import COMMANDS, gpureport

_EXAMPLES = (
    (
        "Record a job with its GPUs and the machine, and write its report:",
        "gpureport record -o runs/base -- python train.py",
        "gpureport report runs/base -o report.html",
    ),
    ("Compare two runs:", "gpureport compare runs/base runs/more-workers"),
    ("Explain a check:", "gpureport explain idle_gap"),
)
_FILES = (
    ("gpureport.toml", "settings: limits, rules, prices, secrets, logo and colours"),
    (".gpureport/", "the store: runs, baselines and the history of nights"),
)


def man_page() -> str:
    """Return the manual page as roff."""
    context = click.Context(gpureport, info_name="gpureport", **gpureport.context_settings)
    first, *others = [" ".join(text.split()) for text in inspect.cleandoc(gpureport.help or "").split("\n\n")]
    options = [each.get_help_record(context) for each in gpureport.get_params(context)]
    codes = next(text for text in others if text.startswith("Exit codes: ")).removeprefix("Exit codes: ")
    lines = [
        '.\\" Made from the code by docs/site/make_pages.py.',
        ".TH GPUREPORT 1",
        ".nh",
        ".ad l",
        ".SH NAME",
        f"gpureport \\- {_escape(first[0].lower() + first[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B gpureport",
        ".RI [ options ]",
        ".RI [ command ]",
        ".RI [ arguments ...]",
        ".SH DESCRIPTION",
        *(_escape(text) for text in others if not text.startswith("Exit codes")),
        ".B gpureport",
        ".I command",
        ".B \\-\\-help",
        "lists the options of a command.",
        *_heading("OPTIONS"),
        *(line for record in options if record for line in _entry(*record)),
        *_heading("COMMANDS"),
        *(line for command in COMMANDS.items() for line in _entry(*command)),
        *_heading("EXIT STATUS"),
        *(line for code in codes.rstrip(".").split("; ") for line in _entry(*code.split(" ", 1))),
        *_heading("FILES"),
        *(line for file in _FILES for line in _entry(*file)),
        *_heading("EXAMPLES"),
        *(line for example in _EXAMPLES for line in _example(*example)),
    ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Return a text with roff commands escaped, in lines of screen width."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = f"\\&{text}" if text.startswith(".") else text
    return textwrap.fill(text, 79, break_long_words=False, break_on_hyphens=False)


def _heading(title: str) -> tuple[str, ...]:
    """Return a heading with the usual space above it and no space between the entries below."""
    return ".PD", f".SH {title}", ".PD 0"


def _entry(term: str, meaning: str) -> tuple[str, str, str]:
    return ".TP 16", f".B {_escape(term)}", _escape(meaning)


def _example(text: str, *commands: str) -> tuple[str, ...]:
    return _escape(text), ".nf", ".RS", *(_escape(command) for command in commands), ".RE", ".fi"
