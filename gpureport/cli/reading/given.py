"""The options of sources, as importers take them."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import click

from gpureport.cli.messages import count, list_names, print_details, print_note
from gpureport.cli.options import FIELDS, Options
from gpureport.errors import SettingsError
from gpureport.importers.labels import NO_ROW, SEVERAL, TIMES, LabelTable
from gpureport.importers.protocol import Labels, ReadOptions
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.time_window import Window
from gpureport.importers.tools.mapped import read_column_map
from gpureport.recording import Work

READING = (
    *("gpus", "tz", "host", "training", "columns", "interval", "gpus_per_tick", "map", "source_kind", "as_one_run"),
    "mlflow_raw_times",
)
"""Options that matter only while a log is read."""
_SHOWN = 3


def find_kind(options: Options) -> str | None:
    """Return the kind of file that the options name; None where the content tells."""
    return options.source_kind or ("mapped" if options.map else "nvidia_smi" if options.columns else None)


def find_given(options: Options, names: Sequence[str]) -> str:
    """Return the first of some options that was given, as it is typed; empty if none was."""
    given = (FIELDS[name] for name in names if getattr(options, name) != FIELDS[name].default)
    return next((each.metadata["typed"].split()[0] for each in given), "")


def build_read_options(options: Options, *, tracked: bool = False) -> ReadOptions:
    """Return which rows are kept, and how they get times and devices; a tracker reads the map itself."""
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


def build_window(options: Options) -> Window | None:
    return Window(start=options.start, end=options.end) if options.start or options.end else None


def build_tracker_selection(options: Options) -> Selection:
    """Return which runs of a tracker to read, with the file on the meaning of a person's own series."""
    memory = options.gpu_memory_total
    given = {each.name: getattr(options, each.name) for each in fields(Selection) if each.name != "runs"}
    return Selection(**given | {"runs": options.run, "gpu_memory_total": memory and round(memory * 2**30)})


def give_each(sources: Sequence[str], options: Options) -> list[tuple[str, Options]]:
    """Return every source with its options: of several step labels, amounts of work or training logs its own.

    Of several sources each has a training log of its own, for a log says nothing of another run.
    """
    several = len(sources) > 1
    parts: dict[str, Sequence[tuple[Any, ...]]] = {}
    for name, noun, most in (("step", "label", 1), ("work", "amount", 1), ("training", "training log", not several)):
        values = getattr(options, name)
        if len(values) <= most or (name == "training" and not several):
            parts[name] = [values] * len(sources)
        elif len(values) == len(sources):
            parts[name] = [(value,) for value in values]
        else:
            what = f"{count(len(values), noun)} for {count(len(sources), 'source')}"
            hint = f"give {'one, or ' if most else ''}one for each source in their order"
            raise SettingsError(f"--{name}", what, hint, code="wrong_count")
    common = options.is_common or (several and len(options.work) == 1)
    own = [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    return [(source, replace(options, **each, is_common=common)) for source, each in zip(sources, own, strict=True)]


def check_single_name(options: Options, runs: int) -> None:
    if options.name and runs > 1:
        raise SettingsError("--name", f"one name for {runs} runs", "name one source at a time", code="wrong_count")


def build_labels(options: Options) -> Labels:
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


def open_table(options: Options) -> LabelTable | None:
    """Return the table that a person names, if any, read once per command, whose end says what came of it."""
    path = options.label_table
    if path is None:
        return None
    context = click.get_current_context()
    known: dict[object, LabelTable] = context.meta.setdefault(f"{__name__}.tables", {})
    if path not in known:
        known[path] = table = LabelTable(path)
        context.call_on_close(lambda: _report_matches(table))
    return known[path]


def _report_matches(table: LabelTable) -> None:
    if table.matches:
        print_note(f"gpureport: {table.path}: {'; '.join(_describe_matches(table))}")
    for each in table.matches.values():
        lines = f": lines {', '.join(str(row.line) for row in each.rows)}" if each.rows else ""
        print_details([f"gpureport: {each.name}: {each.doubt}{lines}"] if each.doubt else [])


def _describe_matches(table: LabelTable) -> Iterator[str]:
    found = list(table.matches.values())
    labelled = [match.rows[0].line for match in found if not match.doubt]
    yield f"{len(labelled):,} of {count(len(found), 'run')} labelled"
    zones = ": give --tz, or print the table with SLURM_TIME_FORMAT=%FT%T%z"
    for doubt, text, hint in (
        (SEVERAL, "not, as several rows fit equally well", ""),
        (TIMES, "not, as its times and those of the table cannot be compared", zones),
        (NO_ROW, "without a row", ""),
    ):
        if names := [match.name for match in found if match.doubt == doubt]:
            yield f"{len(names):,} {text} ({list_names(names, _SHOWN)}){hint}"
    if unused := len(table.rows) - len({*labelled}):
        yield f"{unused:,} of {count(len(table.rows), 'row')} fit no run"
    if table.unread:
        lines = list_names((f"line {line}" for line in table.unread), _SHOWN)
        yield f"{count(len(table.unread), 'line')} not read ({lines})"
