"""The table that `--labels` names: read once per command, with a line on what came of it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.verbosity import print_details, print_note
from gpureport.cli.options.label_options import LabelOptions

if TYPE_CHECKING:
    from gpureport.importers.labels import LabelMatch, LabelTable
    from gpureport.importers.protocol.importer import Labels

_SHOWN = 3
_ZONES = "give --tz, or print the table with SLURM_TIME_FORMAT=%FT%T%z"
_KEY = "gpureport.label_tables"


def build_labels(options: LabelOptions) -> "Labels":
    """Return the labels that a person gives, with the table that they name.

    Raises:
        SettingsError: when the options contradict each other, or the table cannot be read.
    """
    return options.labels(open_table(options))


def open_table(options: LabelOptions) -> "LabelTable | None":
    """Return the table that a person names, if any, read once per command.

    Raises:
        SettingsError: when it cannot be read.
    """
    if options.label_table is None:
        return None
    from gpureport.importers.labels import LabelTable  # noqa: PLC0415 - loads pyarrow

    context = click.get_current_context()
    known: dict[object, LabelTable] = context.meta.setdefault(_KEY, {})
    if options.label_table not in known:
        known[options.label_table] = LabelTable(options.label_table)
        context.call_on_close(lambda: _report_matches(known[options.label_table]))
    return known[options.label_table]


def _report_matches(table: "LabelTable") -> None:
    if table.matches:
        print_note(f"gpureport: {table.path}: {'; '.join(_describe_matches(table))}")
        print_details(f"gpureport: {each.name}: {_doubt(each)}" for each in table.matches.values() if each.doubt)


def _describe_matches(table: "LabelTable") -> Iterator[str]:
    """Yield how many runs were labelled, why others were not, and what was unused."""
    from gpureport.importers.labels import NO_ROW, SEVERAL, TIMES  # noqa: PLC0415 - as above

    found = list(table.matches.values())
    labelled = [match.rows[0].line for match in found if not match.doubt]
    yield f"{len(labelled):,} of {_count(len(found), 'run')} labelled"
    reasons = (
        (SEVERAL, "{} not, as several rows fit equally well ({})"),
        (TIMES, f"{{}} not, as its times and those of the table cannot be compared ({{}}): {_ZONES}"),
        (NO_ROW, "{} without a row ({})"),
    )
    for doubt, text in reasons:
        names = [match.name for match in found if match.doubt == doubt]
        if names:
            yield text.format(f"{len(names):,}", _list_some(names))
    unused = len(table.rows) - len({*labelled})
    if unused:
        yield f"{unused:,} of {_count(len(table.rows), 'row')} fit no run"
    if table.unread:
        yield f"{_count(len(table.unread), 'line')} not read ({_list_some([f'line {line}' for line in table.unread])})"


def _doubt(match: "LabelMatch") -> str:
    """Return why a run has no labels."""
    lines = ", ".join(str(row.line) for row in match.rows)
    return f"{match.doubt}{f': lines {lines}' if lines else ''}"


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
