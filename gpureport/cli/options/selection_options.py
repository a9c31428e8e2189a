"""Which stored runs a command takes: `--where`, `--since`, and `--tag` where it is no label."""

from collections.abc import Sequence
from typing import Any

import click

from gpureport.cli.options.night_date import now
from gpureport.cli.options.option_groups import Command, add_options
from gpureport.cli.options.option_values import Pair
from gpureport.store.run_selection import Condition, RunSelection, parse_condition, parse_since

_WHERE = click.option(
    "--where",
    metavar="COMPARISON",
    multiple=True,
    help="Take stored runs for which this holds: gpus>=8, model~*a100*, tag:user=ann (repeatable: all must hold).",
)
_SINCE = click.option(
    "--since",
    metavar="TIME",
    multiple=True,
    help="Take stored runs that ended within this time, such as 30d or 12h, or on this date or later.",
)
_TAG = click.option(
    "--tag",
    type=Pair(),
    multiple=True,
    help="Take stored runs with this tag: short for --where tag:KEY=VALUE (repeatable).",
)


def selection_options(command: Command) -> Command:
    """Add `--where` and `--since`; the command gets them as one `selection`."""
    return add_options(command, (_WHERE, _SINCE), "selection", _build)


def tag_selection_options(command: Command) -> Command:
    """Add `--tag` as well, for a command that reads no logs."""
    return add_options(command, (_TAG, _WHERE, _SINCE), "selection", _build_with_tags)


def _build(values: dict[str, Any]) -> RunSelection:
    return _parse((), values.pop("where"), values.pop("since"))


def _build_with_tags(values: dict[str, Any]) -> RunSelection:
    return _parse(values.pop("tag"), values.pop("where"), values.pop("since"))


def _parse(tags: Sequence[tuple[str, str]], where: Sequence[str], since: Sequence[str]) -> RunSelection:
    """Return the selection that the options ask for.

    Raises:
        SettingsError: when a comparison or the time is not understood.
    """
    conditions = [Condition(key=f"tag:{key}", operator="=", value=value) for key, value in tags]
    conditions += [parse_condition(text) for text in where]
    conditions += [parse_since(text, now()) for text in since]
    return tuple(conditions)
