"""What click says of a command that is typed wrongly, each with a command that makes it say so, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageError:
    """A message about a command as it was typed.

    Attributes:
        text: the message, with … for what is only known when the program runs.
        cure: what to do.
        arguments: a command that ends with it.
    """

    text: str
    cure: str
    arguments: Sequence[str]


USAGE_ERRORS = (
    UsageError(
        text="No such option …",
        cure="No option of this command has this name, though one of another command may: the help lists those of "
        "this one. An option that is meant for the job belongs behind `--`: `gpureport record -- python train.py -v`.",
        arguments=["demo", "--gpu-hour-price", "2.49"],
    ),
    UsageError(
        text="No such command …",
        cure="`runs` and `baseline` have commands of their own, which their help lists.",
        arguments=["runs", "shw"],
    ),
    UsageError(
        text="Missing argument …",
        cure="Name it. `SOURCE...` is one log, folder of logs or stored run, or several.",
        arguments=["analyze"],
    ),
    UsageError(
        text="Missing option …",
        cure="Give it: the command cannot do without.",
        arguments=["publish", "report.html"],
    ),
    UsageError(
        text="Got unexpected extra argument …",
        cure="Leave it out. If it is part of a value with spaces, quote the value: `--fail-on 'idle_ratio <= 5%'`.",
        arguments=["demo", "gpu.csv"],
    ),
    UsageError(
        text="Option … requires an argument",
        cure="Write the value behind the option.",
        arguments=["analyze", "gpu.csv", "--tz"],
    ),
    UsageError(
        text="Option … does not take a value",
        cure="Leave out `=` and what follows it.",
        arguments=["report", "gpu.csv", "--open=yes"],
    ),
    UsageError(
        text="Invalid value for …: … is not one of …",
        cure="Take one of the values that the line lists.",
        arguments=["analyze", "gpu.csv", "--format", "xml"],
    ),
    UsageError(
        text="Invalid value for …: … is not in the range …",
        cure="Take a value within the range.",
        arguments=["analyze", "gpu.csv", "--gpus-per-tick", "500"],
    ),
    UsageError(
        text="Invalid value for …: … is not a valid …",
        cure="Write a number there, without a unit.",
        arguments=["analyze", "gpu.csv", "--gpus-per-tick", "many"],
    ),
    UsageError(
        text="Invalid value for …: …",
        cure="Any other text behind the colon is a message of [Commands and options](#commands-and-options).",
        arguments=["analyze", "gpu.csv", "--gpus", "first"],
    ),
)


def format_usage_errors() -> str:
    """Return the section of docs/reference/messages.md on commands that are typed wrongly."""
    rows = [f"| `{error.text}` | {error.cure} |" for error in USAGE_ERRORS]
    return "\n".join([_HEAD, *rows, ""])


_HEAD = """## Mistyped commands

A command that is typed wrongly ends with 2 before it reads anything. Its line ends with
`(see 'gpureport COMMAND --help')`, which prints every option and argument. Where a name is close to one that exists,
the line suggests that one.

| message | what to do |
| --- | --- |"""
