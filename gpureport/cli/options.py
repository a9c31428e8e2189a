"""Defines options in the order of the help (and of `_GROUPS`), and refuses outputs that would overwrite inputs."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from gpureport.cli import values as read
from gpureport.cli.table import COMMANDS, complete_files
from gpureport.errors import SettingsError
from gpureport.importers import IMPORTERS, TRACKERS
from gpureport.places import parse_place
from gpureport.places.written_paths import STORE_PARTS, ReadPath, WrittenPath, refuse_taken_paths
from gpureport.regular_files import name_by_url

if TYPE_CHECKING:
    from gpureport.comparison.factors import Factor
    from gpureport.comparison.training import QualityTarget
    from gpureport.places import Place

Texts: TypeAlias = tuple[str, ...]
Pairs: TypeAlias = tuple[tuple[str, str], ...]
_GROUPS = {"@PICK": ("where", "store"), "@ALL": ("select", "require_hardware"), "@READ": ("host", "require_hardware")}
_PAGES = frozenset((".html", ".md", ".pdf", ".png", ".svg"))
_RESULTS = _PAGES | {".json", ".prom", ".txt", ".xml"}
_OWN = (
    b'"schema": "gpureport.',
    b'"verdict": {',
    b"\nWHERE THE GPU TIME WENT",
    b'<testsuites name="gpureport',
    b" gpureport_",
)
"""Text near the start of gpureport's own JSON, text, JUnit and metrics files, which may look like logs."""
_SECTIONS = {
    "by": "Steps",
    "tagged": "Stored runs",
    "select": "Analysis",
    "host": "Logs",
    "param": "Labels",
    "start": "Part of a run",
    "run": "Trackers",
}


def one(
    typed: str, text: str, reader: Callable[..., Any] | None = None, *, default: Any = None, kind: Any = None
) -> Any:
    """Return an option. `typed` is its metavar, preceded by its flags if they differ from the field name."""
    return field(default=default, metadata={"typed": typed, "help": text, "read": reader, "kind": kind})


many, once = partial(one, default=()), partial(one, reader=read.single)
"""Options that may be repeated, and those that must not be (click would use only the last value)."""


def flag(text: str, typed: str = "") -> Any:
    return one(typed, text, default=False)


def choice(choices: str, text: str, typed: str = "") -> Any:
    named = choices.split()
    return one(typed, text, default=named[0], kind=click.Choice(named))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    # single commands
    gpu_hours_per_month: float | None = one(
        "HOURS", "Your site's GPU-hours per month, to project losses.", kind=click.FloatRange(min=0, min_open=True)
    )
    group_by: Texts | None = one("--by LABEL,…", "Group by these labels (default: user,project,job,node).", read.labels)
    engine: str = choice("local dask", "Where to analyse runs (default: local).")
    scheduler: str | None = one("URL", "Dask scheduler, such as tcp://head:8786 (default: start a local cluster).")
    site: "Place" = one("DIR", "Folder for the pages.", parse_place)
    label: str = one("NAME", "Another name for the night, such as a commit or a build.", default="")
    night: str | None = one("--date DATE", "Date of the night, such as 2026-03-14 (default: today).", read.night)
    all_reports: bool = flag("Write all missing reports, not only those of the last 7 nights.")
    force: bool = flag("Read a log again even if it is already in the store.")
    listing: bool = flag("List the runs in a tracker without storing them.", "--list")
    targets: Texts = many(
        "--to TARGET",
        "A folder, a folder in a bucket (s3://BUCKET/FOLDER), a run in MLflow (mlflow:STORE#RUN), or the MLflow "
        "store with the compared runs (mlflow:STORE); repeatable.",
    )
    skip_missing: bool = flag("Leave out compared runs that are not in the MLflow store.")
    follow_artifact_uri: bool = flag("Write to an MLflow store's artifact folder, even if it is outside the store.")
    basis: str | None = one("--suggest SOURCE", "Print a trial of the settings that the advice on a run would change.")
    sets: Pairs = many("--set NAME=VALUE,…", "Values of a setting, the current one first (repeatable).", read.pair)
    repeat: int = one("N", "Number of rounds (default: 3).", default=3, kind=click.IntRange(2, 20))
    budget: str | None = one("TIME", "Begin no run that would exceed this total running time, such as 8h.")
    design: str = choice("one-at-a-time all", "Change one setting at a time (default), or try all combinations.")
    # outputs
    outputs: "tuple[Place, ...]" = many(
        "-o --output FILE", "Output file; its extension determines the format (repeatable).", parse_place
    )
    output: "Place" = one("-o --output FILE", "Parquet file.", parse_place)
    folder: Path | None = one("-o --output DIR", "Folder (default: recording-DATE-TIME or trial).", read.local_folder)
    record_interval: float = one(
        "--interval SECONDS", "Time between samples (default: 1).", default=1.0, kind=click.FloatRange(0.1, 60)
    )
    host_only: bool = flag("Record the machine without its GPUs.")
    title: str | None = one("TEXT", "Title (default: the names of the runs).")
    detail: int | None = one(
        "FULL|AUTO|SECONDS",
        "full: everything in a PDF or text, every sample on a page; auto: as much as fits; N: means over N seconds.",
        read.detail,
    )
    opened: bool = flag("Open the page or PDF after writing it.", "--open")
    anonymise: bool = flag("Replace host names, user names, absolute paths and GPU ids in the output.")
    # rules for runs
    baseline: str | None = one("NAME|SOURCE", "Baseline to compare with (default: [baseline] in the settings).")
    policy: Path | None = one("FILE", "File with the rules (default: [[policy]] in the settings).", Path)
    form: str = choice("text json", "Readable text, or JSON.", "--format")
    list_form: str = choice("text json csv", "Readable text, JSON or CSV.", "--format")
    text_detail: str = choice("short full", "One screen of text (short), or everything (full).", "--detail")
    explained_detail: str = choice("short full", "One page on a check, or all that is known of it.", "--detail")
    fail_on: Texts = many(
        "RULE", "Exit with 1 if this rule is broken: 'idle_ratio <= 5%', thermal_throttle (repeatable)."
    )
    junit: "Place | None" = one("FILE", "Write the outcome of each rule as JUnit XML.", parse_place)
    summary: "Place | None" = one("FILE", "Write the outcome of each rule as Markdown, for a job summary.", parse_place)
    fail_on_change: bool = flag("Exit with 1 on the night that first shows a change for the worse.")
    fail_on_standing_change: bool = flag("Exit with 1 as long as a change for the worse lasts.")
    gate_form: str = choice("text json line", "Readable text, JSON, or one line for a chat message.", "--format")
    exports: "tuple[Place, ...]" = many("--export FORMAT=FILE", "Export the figures (openmetrics=FILE).", read.export)
    # how runs form steps
    by: "tuple[Factor, ...] | None" = one(
        "step|folder|gpu|param:KEY|tag:KEY",
        "How to group runs into steps (default: by step label); a comma separates two settings: param:A,param:B.",
        read.grouping,
    )
    steps: Path | None = one("FILE", "TOML file that lists the runs of each step.", Path)
    # which stored runs
    tagged: Pairs = many("--tag KEY=VALUE", "Select stored runs with this tag (repeatable).", read.pair)
    where: Texts = many(
        "COMPARISON",
        "Select stored runs with gpus>=8, model~*a100*, tag:user=ann, param:lr=0.1 (repeatable: all must match).",
    )
    since: Texts = many("TIME", "Select stored runs that ended within this time (30d, 12h) or since a date.")
    store: "Place | None" = one(
        "DIR", "The store: a folder, or s3://BUCKET/FOLDER (default: .gpureport here or in a parent).", parse_place
    )
    # what to look for
    select: Texts = many("CHECK", "Show only this check, such as idle_gap (repeatable).")
    ignore: Texts = many("CHECK", "Hide this check (repeatable).")
    gpu_hour_price: tuple[float, str] | None = one(
        "PRICE", "Price of a GPU-hour, such as '2.49 EUR' (default: [prices] in the settings).", read.gpu_hour_price
    )
    carbon_intensity: float | None = one(
        "G/KWH", "Grams of CO2 equivalent per kWh (default: [carbon] in the settings).", read.price
    )
    better: tuple[tuple[str, bool], ...] = many(
        "NAME=higher|lower",
        "Whether higher or lower is better for a training metric whose name does not show it (repeatable).",
        read.direction,
    )
    target: "QualityTarget | None" = one("NAME=VALUE", "Target for a metric, such as val_loss=2.", read.target)
    config: Path | None = one("FILE", "Settings (default: gpureport.toml in this folder).", Path)
    # files that belong to a run
    host: tuple[Path, ...] = many("FILE", "CPU log to join by time (repeatable).", read.fetched)
    training: tuple[Path, ...] = many(
        "FILE", "Training metrics that the job logged, as CSV or JSON (repeatable: one per source).", read.fetched
    )
    source_kind: str | None = one("", "Read every file as this kind.", kind=click.Choice(IMPORTERS.kinds))
    as_one_run: bool = flag("Treat all logs, such as rotated logs or one log per GPU or node, as one run.")
    strict: bool = flag("Fail if a line in a log is not understood.")
    tz: str | None = once("ZONE", "Time zone of the log, such as Europe/Berlin.")
    gpus: tuple[int, ...] | None = one("0,2,…", "Keep only these GPUs.", read.indices)
    columns: Texts | None = one("FIELD,…", "Columns of a log without a header, as given to --query-gpu.", read.fields)
    interval: float | None = one(
        "SECONDS", "Seconds between samples in a log without timestamps, as given to nvidia-smi -l.", read.seconds
    )
    gpus_per_tick: int | None = one("N", "GPUs in a log without a column for them.", kind=click.IntRange(1, 128))
    map: Path | None = one("FILE", "TOML file that describes an unknown table, or your series in a tracker.", Path)
    mlflow_raw_times: bool = flag("Use the times that MLflow logged for its system metrics, without correction.")
    # names and labels of runs
    param: Pairs = many("KEY=VALUE", "Parameter of the run (repeatable).", read.pair)
    tag: Pairs = many("KEY=VALUE", "Label of the run (repeatable).", read.pair)
    work: tuple[tuple[float, str], ...] = many(
        "N:UNIT",
        "Work that each run did during the recording, such as 12000:steps (repeatable: one per source, in order).",
        read.amount,
    )
    name: str | None = once("TEXT", "Name of the run.")
    step: Texts = many("LABEL", "Optimisation step of the run (repeatable: one per source, in order).")
    label_table: Path | None = one(
        "--labels FILE",
        "Table of jobs, such as the output of sacct -P; its user, account, job and node become run labels.",
        read.fetched,
    )
    gpu_model: str | None = one("NAME", "GPU model, such as 'A100 80GB', if the log does not name it.", read.gpu_model)
    # which part of a run
    start: str | None = once(
        "--from TIME",
        "Leave out samples before this time: time since the start (90s, 1h30m, 0:10:00) or a date (2026-03-14T09:26).",
    )
    end: str | None = once("--to TIME", "Leave out samples at or after this time.")
    job: int | None = one("N|EACH", "Read only job N in a log, or each job as a separate run.", read.job)
    # which runs of a tracker
    run: Texts = many("RUN", "Run in a tracker, by id or name (repeatable).")
    experiment: str | None = one("NAME", "Experiment in a tracker.")
    project: str | None = one("NAME", "Project in a tracker.")
    filter: str | None = one("TEXT", "Filter for runs, in the tracker's own syntax.")
    latest: int | None = one("N", "Read only the newest N runs in a tracker.", kind=click.IntRange(1))
    children: bool = flag("Also read nested runs in a tracker.")
    stage: str | None = one("NAME", "Keep one stage of a run, such as training.")
    group: str | None = one("NAME", "Read local recordings of a tracker (all, or each --run) as one run of this name.")
    gpu_memory_total: float | None = one("GIB", "Memory of each GPU, if the tracker does not record it.", read.price)
    throughput: str | None = one("KEY", "Training metric that counts the work done.")
    require_hardware: bool = flag("Fail if a run in a tracker has no hardware series.")

    is_common: bool = False
    trial: "dict[str, Any]" = field(default_factory=dict)


FIELDS = {each.name: each for each in fields(Options) if each.metadata}
READ = (Path, read.fetched)
WRITTEN = (parse_place, read.export, read.local_folder)


class Option(click.Option):
    def __init__(self, name: str, section: str, *, is_usual: bool, required: bool) -> None:
        about, default = FIELDS[name].metadata, FIELDS[name].default
        self.section, self.is_usual, self.reader = section, is_usual, about["read"]
        super().__init__(
            [name, *list_flags(name)],
            help=about["help"],
            metavar=next((word for word in about["typed"].split() if not word.startswith("-")), None),
            required=required,
            callback=self._read,
            is_flag=default is False or None,
            multiple=default == () or self.reader is read.single,
            type=about["kind"],
            shell_complete=complete_files if self.reader in (*READ, *WRITTEN) else None,
        )

    def _read(self, ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        default = FIELDS[str(self.name)].default
        if value is None or self.reader is None or ctx.resilient_parsing:
            return default if value is None else value
        return tuple(read.read(self.reader, each) for each in value) if default == () else read.read(self.reader, value)


def list_flags(name: str) -> list[str]:
    flags = [word for word in FIELDS[name].metadata["typed"].split() if word.startswith("-")]
    return flags or [f"--{name.replace('_', '-')}"]


def build_options(command: str) -> list[click.Parameter]:
    takes, names = COMMANDS[command].takes, list(FIELDS)
    for group, (first, last) in _GROUPS.items():
        takes = takes.replace(group, " ".join(names[names.index(first) : names.index(last) + 1]))
    usual, words, section = takes.partition("/")[0].split(), takes.split(), "Options"
    found: list[click.Parameter] = []
    for name in names:
        section = _SECTIONS.get(name, section)
        found += [
            Option(name, section, is_usual=word in usual, required=word != name)
            for word in (name, f"{name}!")
            if word in words
        ]
    return found


def refuse_taken(ctx: click.Context) -> None:
    """Refuse outputs that would overwrite inputs."""
    written, read = list[WrittenPath](), list[ReadPath]()
    suffixes = _PAGES if any(ctx.params.get(name) for name in ("map", "source_kind", "columns")) else _RESULTS
    for param in ctx.command.params:
        name, reader, value = str(param.name), getattr(param, "reader", None), ctx.params.get(str(param.name))
        for each in value if isinstance(value, tuple) else [] if value is None else [value]:
            if name in {"source", "baseline"}:
                read += _list_source(str(each), suffixes)
            elif name == "store":
                read += (ReadPath(place=each / part, name="the --store folder", is_closed=True) for part in STORE_PARTS)
            elif reader in READ:
                # check the original, not its local copy
                read.append(ReadPath(place=parse_place(name_by_url(str(each))), name=f"the {param.opts[-1]} file"))
            elif reader in WRITTEN:
                written.append(WrittenPath(place=each, is_folder=param.metavar == "DIR"))
            if name == "site":
                from gpureport.nightly import site

                written += (WrittenPath(place=each / file) for file in (site.INDEX, site.MARKER))
                folders = (each / folder for folder in (site.REPORTS, site.FIGURES))
                read += (ReadPath(place=folder, name="the --site folder", is_closed=True) for folder in folders)
    if ctx.params.get("config") is None:
        read.append(ReadPath(place=Path("gpureport.toml"), name="the settings file"))
    if written:
        refuse_taken_paths(written, read, _holds_data)


def _list_source(text: str, suffixes: frozenset[str]) -> Iterator[ReadPath]:
    scheme, _, rest = text.partition(":")
    path = rest if scheme in TRACKERS.kinds else text
    for name in filter(None, {text, path, path.rpartition("#")[0]}):
        with suppress(SettingsError, OSError):
            place = parse_place(name.removeprefix("sqlite:///").removeprefix("file://"))
            from gpureport.importers.sources import find_tracker

            is_closed = isinstance(place, Path) and place.is_dir() and find_tracker(str(place)) is not None
            if not isinstance(place, Path) or place.exists():
                yield ReadPath(place=place, name="a source", is_closed=is_closed, suffixes=suffixes)


def _holds_data(path: Path) -> bool:
    from gpureport.importers.sources import is_readable

    is_summary = str(path) == os.environ.get("GITHUB_STEP_SUMMARY")
    try:
        return not is_summary and not is_own_output(path) and is_readable(path)
    except OSError as error:
        what = f"cannot be read, so it may be a log ({error.strerror})"
        raise SettingsError(str(path), what, "name another file", code="cannot_read") from error


def is_own_output(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4096)
    return any(words in head for words in _OWN)
