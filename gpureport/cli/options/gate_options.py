"""The rules of runs, what they are compared with, and the files of results."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.option_groups import Command, add_options, take_values
from gpureport.cli.options.written_paths import OUTPUT

if TYPE_CHECKING:
    from gpureport.places import Place

_FILE = click.Path(path_type=Path)

fail_on_option = click.option(
    "--fail-on",
    multiple=True,
    metavar="RULE",
    help="Exit with 1 if this rule is broken, such as 'idle_ratio <= 5%' or thermal_throttle (repeatable).",
)
"""The option that states a rule."""

_OPTIONS = (
    click.option(
        "--baseline",
        metavar="NAME|SOURCE",
        help="Baseline to compare with (default: [baseline] of the settings).",
    ),
    click.option(
        "--policy", type=_FILE, metavar="FILE", help="File with the rules (default: [[policy]] of the settings)."
    ),
    fail_on_option,
    click.option("--junit", type=OUTPUT, metavar="FILE", help="Write what became of each rule as JUnit XML."),
    click.option(
        "--summary", type=OUTPUT, metavar="FILE", help="Write what became of each rule as Markdown, for a job summary."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """Rules, baseline and result files of a gate; None is as in the settings, or no file."""

    baseline: str | None = None
    policy: Path | None = None
    fail_on: tuple[str, ...] = ()
    junit: "Place | None" = None
    summary: "Place | None" = None


def gate_options(command: Command) -> Command:
    """Add the options of a gate; the command gets them as one `gate`."""
    return add_options(command, _OPTIONS, "gate", lambda values: take_values(GateOptions, values))
