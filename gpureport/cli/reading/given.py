"""The options of sources, as importers take them."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from gpureport.cli.messages import count, list_names, print_details, print_note
from gpureport.cli.options import Options
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from gpureport.importers.labels import LabelMatch, LabelTable
    from gpureport.importers.protocol.importer import Labels, ReadOptions
    from gpureport.importers.protocol.tracker import Selection
    from gpureport.importers.time_window import Window

_READING = (
    "gpus",
    "tz",
    "host",
    "training",
    "columns",
    "interval",
    "gpus_per_tick",
    "map",
    "source_kind",
    "as_one_run",
)
"""Options that matter only while a log is read."""
_SHOWN = 3


def find_kind(options: Options) -> str | None:
    """Return the kind of file that the options name; None where the content tells."""
    return options.source_kind or ("mapped" if options.map else "nvidia_smi" if options.columns else None)


def find_reading_option(options: Options, *, is_cut: bool = False) -> str:
    """Return the first given option that matters only while a log is read; empty if none is given.

    Args:
        options: the options.
        is_cut: whether those that name a part of a log are among them.
    """
    names = [f"--{name.replace('_', '-')}" for name in (*_READING, "mlflow_raw_times") if getattr(options, name)]
    if is_cut:
        names += ["--from, --to"] * bool(build_window(options)) + ["--job"] * (options.job is not None)
    return next(iter(names), "")


def build_read_options(options: Options, *, tracked: bool = False) -> "ReadOptions":
    """Return which rows are kept, and how they get times and devices; a tracker reads the map itself.

    Raises:
        SettingsError: when the map cannot be read.
    """
    from gpureport.importers.protocol.importer import ReadOptions  # noqa: PLC0415 - as above
    from gpureport.importers.tools.mapped import read_column_map  # noqa: PLC0415 - importers load pyarrow

    mapping = read_column_map(options.map) if options.map and not tracked else None
    return ReadOptions(
        tz=options.tz or (mapping.zone if mapping else None),
        gpus=options.gpus,
        columns=options.columns,
        interval=options.interval,
        gpus_per_tick=options.gpus_per_tick,
        map=mapping,
        as_logged=options.mlflow_raw_times,
    )


def build_window(options: Options) -> "Window | None":
    """Return the part of a run to keep; None for all of it."""
    from gpureport.importers.time_window import Window  # noqa: PLC0415 - importers load pyarrow

    return Window(start=options.start, end=options.end) if options.start or options.end else None


def build_tracker_selection(options: Options) -> "Selection":
    """Return which runs of a tracker to read, with the file on the meaning of a person's own series."""
    from gpureport.importers.protocol.tracker import Selection  # noqa: PLC0415 - importers load pyarrow

    memory = options.gpu_memory_total
    given = {each.name: getattr(options, each.name) for each in fields(Selection) if each.name != "runs"}
    return Selection(**given | {"runs": options.run, "gpu_memory_total": memory and round(memory * 2**30)})


def give_each(sources: Sequence[str], options: Options) -> list[tuple[str, Options]]:
    """Return every source with its options: of several step labels, amounts of work or training logs its own.

    Of several sources each has a training log of its own, for a log says nothing of another run.

    Raises:
        SettingsError: when there are several, and not as many as sources.
    """
    several = len(sources) > 1
    common = options.is_common or (several and len(options.work) == 1)
    parts = [
        _spread("--step", options.step, "label", sources, most=1),
        _spread("--work", options.work, "amount", sources, most=1),
        _spread("--training", options.training, "training log", sources, most=0 if several else len(options.training)),
    ]
    return [
        (source, replace(options, step=step, work=work, training=training, is_common=common))
        for source, step, work, training in zip(sources, *parts, strict=True)
    ]


def _spread(
    option: str, values: tuple[Any, ...], noun: str, sources: Sequence[str], *, most: int
) -> list[tuple[Any, ...]]:
    """Return for each source all values where there are `most` at most, else one in their order."""
    if len(values) <= most or not values:
        return [values] * len(sources)
    if len(values) != len(sources):
        what = f"{count(len(values), noun)} for {count(len(sources), 'source')}"
        hint = f"give {'one, or ' if most else ''}one for each source in their order"
        raise SettingsError(option, what, hint, code="wrong_count")
    return [(value,) for value in values]


def check_single_name(options: Options, runs: int) -> None:
    """Refuse one name for several runs.

    Raises:
        SettingsError: when there are several.
    """
    if options.name and runs > 1:
        raise SettingsError("--name", f"one name for {runs} runs", "name one source at a time", code="wrong_count")


def build_labels(options: Options) -> "Labels":
    """Return what a person says about runs, with the table of `--labels`.

    Raises:
        SettingsError: when a key is given twice, one run gets several step labels, or the table cannot be read.
    """
    from gpureport.importers.protocol.importer import Labels  # noqa: PLC0415 - importers load pyarrow
    from gpureport.recording import Work  # noqa: PLC0415 - as above

    for option, pairs in (("--param", options.param), ("--tag", options.tag)):
        if len(dict(pairs)) < len(pairs):
            raise SettingsError(option, "a key is given twice", "give each key once", code="repeated_key")
    for option, values, noun in (("--step", options.step, "labels"), ("--work", options.work, "amounts")):
        if len(values) > 1:
            raise SettingsError(option, f"{len(values)} {noun} for one run", "give one", code="wrong_count")
    labels = Labels(
        name=options.name,
        step=next(iter(options.step), None),
        params=options.param,
        tags=options.tag,
        work=next((Work(amount=amount, unit=unit) for amount, unit in options.work), None),
        gpu_model=options.gpu_model,
        table=open_table(options),
    )
    return labels.of_several() if options.is_common else labels


def open_table(options: Options) -> "LabelTable | None":
    """Return the table that a person names, if any, read once per command, whose end says what came of it.

    Raises:
        SettingsError: when it cannot be read.
    """
    if options.label_table is None:
        return None
    from gpureport.importers.labels import LabelTable  # noqa: PLC0415 - loads pyarrow

    context = click.get_current_context()
    known: dict[object, LabelTable] = context.meta.setdefault(f"{__name__}.tables", {})
    if options.label_table not in known:
        known[options.label_table] = table = LabelTable(options.label_table)
        context.call_on_close(lambda: _report_matches(table))
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
    yield f"{len(labelled):,} of {count(len(found), 'run')} labelled"
    zones = "give --tz, or print the table with SLURM_TIME_FORMAT=%FT%T%z"
    for doubt, text in (
        (SEVERAL, "{} not, as several rows fit equally well ({})"),
        (TIMES, f"{{}} not, as its times and those of the table cannot be compared ({{}}): {zones}"),
        (NO_ROW, "{} without a row ({})"),
    ):
        if names := [match.name for match in found if match.doubt == doubt]:
            yield text.format(f"{len(names):,}", list_names(names, _SHOWN))
    if unused := len(table.rows) - len({*labelled}):
        yield f"{unused:,} of {count(len(table.rows), 'row')} fit no run"
    if table.unread:
        lines = list_names((f"line {line}" for line in table.unread), _SHOWN)
        yield f"{count(len(table.unread), 'line')} not read ({lines})"


def _doubt(match: "LabelMatch") -> str:
    """Return why a run has no labels."""
    lines = ", ".join(str(row.line) for row in match.rows)
    return f"{match.doubt}{f': lines {lines}' if lines else ''}"
