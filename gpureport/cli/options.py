"""Every option once: what is typed, its help, and how it is read.

A field of `Options` is an option, and the order of the fields is the order of the help. An option may name what a
command `reads`, or a file or folder that it `writes`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpureport.cli import values as read
from gpureport.cli.table import COMMANDS, complete_files
from gpureport.importers import IMPORTERS
from gpureport.places import parse_place

if TYPE_CHECKING:
    from gpureport.comparison.factors import Factor
    from gpureport.comparison.training import QualityTarget
    from gpureport.places import Place

_GROUPS = {"@SELECT": ("where", "store"), "@ANALYSE": ("select", "config"), "@READ": ("host", "require_hardware")}
"""The first and the last option of a group."""
_SECTIONS = {
    "by": "Steps",
    "tagged": "Stored runs",
    "select": "Analysis",
    "host": "Logs",
    "param": "Labels",
    "start": "Part of a run",
    "run": "Trackers",
}
"""The first option of each section of a help; those before are its options."""


def one(typed: str, text: str, reader: Callable[..., Any] | None = None, *, default: Any = None, **more: Any) -> Any:
    """Declare an option with a value: what is typed, its help, what reads the text; `kind` is a type of click."""
    return field(default=default, metadata={"typed": typed, "help": text, "read": reader, **more})


def many(typed: str, text: str, reader: Callable[..., Any] | None = None, **more: Any) -> Any:
    return one(typed, text, reader, default=(), many=True, **more)


def once(typed: str, text: str) -> Any:
    """Declare an option of a text that click would let be given twice, the last winning in silence."""
    return one(typed, text, read.single, once=True)


def flag(typed: str, text: str) -> Any:
    return one(typed, text, default=False, flag=True)


def choice(typed: str, text: str, *choices: str) -> Any:
    """Declare an option with a few values, the first of which is usual."""
    return one(typed, text, default=choices[0], kind=click.Choice(choices))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """What a person asked for; a field that is not an option of the command has its default."""

    # single commands
    gpu_hours_per_month: float | None = one(
        "--gpu-hours-per-month HOURS",
        "GPU-hours per month, to state its losses.",
        kind=click.FloatRange(min=0, min_open=True),
    )
    group_by: tuple[str, ...] | None = one(
        "--by LABEL,…", "Group by these labels (default: user,project,job,node).", read.labels
    )
    engine: str = choice("--engine", "Where runs are analysed (default: local).", "local", "dask")
    scheduler: str | None = one(
        "--scheduler URL", "Dask scheduler, such as tcp://head:8786; without it a cluster is started here."
    )
    site: "Place" = one("--site DIR", "Folder for the pages.", parse_place, writes="folder")
    label: str = one("--label NAME", "Another name for the night, such as a commit or a build.", default="")
    night: str | None = one("--date DATE", "Date of the night, such as 2026-03-14 (default: today).", read.night)
    all_reports: bool = flag("--all-reports", "Write all missing reports, not only those of the last 7 nights.")
    force: bool = flag("--force", "Read a log again even if the store holds it.")
    listing: bool = flag("--list", "Print the runs that a tracker holds, and store nothing.")
    targets: tuple[str, ...] = many(
        "--to TARGET",
        "A folder, one of a bucket (s3://BUCKET/FOLDER), a run of MLflow (mlflow:STORE#RUN), or the store of compared "
        "runs (mlflow:STORE); repeatable.",
    )
    skip_missing: bool = flag("--skip-missing", "Leave out runs of the comparison that the store does not have.")
    follow_artifact_uri: bool = flag(
        "--follow-artifact-uri",
        "Write to the folder that a store of MLflow names for artifacts, even if it lies outside the store.",
    )
    # what comes out
    outputs: "tuple[Place, ...]" = many(
        "-o --output FILE", "File to write; its extension names the format (repeatable).", parse_place, writes="file"
    )
    output: "Place" = one("-o --output FILE", "Parquet file.", parse_place, writes="file")
    folder: Path | None = one(
        "-o --output DIR",
        "New folder for the logs; without it, recording-DATE-TIME is made here.",
        read.local_folder,
        writes="folder",
    )
    record_interval: float = one(
        "--interval SECONDS", "Time between two samples (default: 1).", default=1.0, kind=click.FloatRange(0.1, 60)
    )
    host_only: bool = flag("--host-only", "Record the machine without its GPUs.")
    title: str | None = one("--title TEXT", "Title (default: the names of the runs).")
    detail: int | None = one(
        "--detail FULL|AUTO|SECONDS",
        "full: everything in a PDF or text, every sample in a page; auto: what fits; N: means over N seconds.",
        read.detail,
    )
    opened: bool = flag("--open", "Open the page or PDF that was written.")
    anonymise: bool = flag("--anonymise", "Replace names of hosts, users, paths and GPUs in the output.")
    # what runs are held to
    baseline: str | None = one(
        "--baseline NAME|SOURCE", "Baseline to compare with (default: [baseline] of the settings)."
    )
    policy: Path | None = one(
        "--policy FILE", "File with the rules (default: [[policy]] of the settings).", Path, reads=True
    )
    form: str = choice("--format", "Text for people, or JSON.", "text", "json")
    list_form: str = choice("--format", "Text for people, JSON or CSV.", "text", "json", "csv")
    text_detail: str = choice("--detail", "One screen of text (short), or everything (full).", "short", "full")
    explained_detail: str = choice(
        "--detail", "A check on one page, or with all its limits, advice and steps.", "short", "full"
    )
    fail_on: tuple[str, ...] = many(
        "--fail-on RULE",
        "Exit with 1 if this rule is broken, such as 'idle_ratio <= 5%' or thermal_throttle (repeatable).",
    )
    junit: "Place | None" = one(
        "--junit FILE", "Write the outcome of each rule as JUnit XML.", parse_place, writes="file"
    )
    summary: "Place | None" = one(
        "--summary FILE", "Write the outcome of each rule as Markdown, for a job summary.", parse_place, writes="file"
    )
    fail_on_change: bool = flag("--fail-on-change", "Exit with 1 on the night that shows a change for the worse.")
    fail_on_standing_change: bool = flag(
        "--fail-on-standing-change", "Exit with 1 as long as a change for the worse lasts."
    )
    gate_form: str = choice("--format", "Text for people, JSON, or one line for a chat.", "text", "json", "line")
    exports: "tuple[Place, ...]" = many(
        "--export FORMAT=FILE", "Write figures as openmetrics=FILE.", read.export, writes="file"
    )
    # which runs make which step
    by: "tuple[Factor, ...]" = one(
        "--by step|folder|gpu|param:KEY|tag:KEY",
        "How to group runs into steps (default: by their step label); two settings with a comma: param:A,param:B.",
        read.grouping,
        default=(),
    )
    steps: Path | None = one("--steps FILE", "TOML file that lists the runs of each step.", Path, reads=True)
    # which stored runs
    tagged: tuple[tuple[str, str], ...] = many(
        "--tag KEY=VALUE", "Select stored runs with this tag: short for --where tag:KEY=VALUE (repeatable).", read.pair
    )
    where: tuple[str, ...] = many(
        "--where COMPARISON",
        "Select stored runs for which this is true: gpus>=8, model~*a100*, tag:user=ann (repeatable: all must hold).",
    )
    since: tuple[str, ...] = many(
        "--since TIME", "Select stored runs that ended within this time, such as 30d or 12h, or on this date or later."
    )
    store: "Place | None" = one(
        "--store DIR",
        "The store: a folder, or s3://BUCKET/FOLDER (default: .gpureport in this folder or above).",
        parse_place,
    )
    # what to look for
    select: tuple[str, ...] = many("--select CHECK", "Run only this check, such as idle_gap (repeatable).")
    ignore: tuple[str, ...] = many("--ignore CHECK", "Skip this check (repeatable).")
    gpu_hour_price: read.GpuHourPrice | None = one(
        "--gpu-hour-price PRICE",
        "Price of a GPU-hour, such as '2.49 EUR' (default: [prices] of the settings).",
        read.gpu_hour_price,
    )
    carbon_intensity: float | None = one(
        "--carbon-intensity G/KWH", "Grams of CO2 equivalent per kWh (default: [carbon] of the settings).", read.price
    )
    better: tuple[tuple[str, bool], ...] = many(
        "--better NAME=higher|lower",
        "Whether higher or lower is better, if the name of a training metric does not show it (repeatable).",
        read.direction,
    )
    target: "QualityTarget | None" = one(
        "--target NAME=VALUE",
        "Target of a training metric, such as val_accuracy=0.78; the time to reach it is compared.",
        read.target,
    )
    config: Path | None = one("--config FILE", "Settings (default: gpureport.toml in this folder).", Path, reads=True)
    # what belongs to a run
    host: tuple[Path, ...] = many("--host FILE", "CPU log to join by time (repeatable).", read.fetched, reads=True)
    training: tuple[Path, ...] = many(
        "--training FILE",
        "Metrics that the training loop wrote: CSV or JSON (repeatable; one per source).",
        read.fetched,
        reads=True,
    )
    source_kind: str | None = one(
        "--source-kind", "Read files as this kind, whatever they look like.", kind=click.Choice(IMPORTERS.kinds)
    )
    as_one_run: bool = flag("--as-one-run", "Read all logs as one run: rotated logs, or one for each GPU or node.")
    strict: bool = flag("--strict", "Fail if a line of a log is not understood.")
    tz: str | None = once("--tz ZONE", "Time zone of the log's stamps, such as Europe/Berlin.")
    gpus: tuple[int, ...] | None = one("--gpus 0,2,…", "Keep only these GPUs.", read.indices)
    columns: tuple[str, ...] | None = one(
        "--columns FIELD,…", "Columns of a log without a header: its --query-gpu fields.", read.fields
    )
    interval: float | None = one(
        "--interval SECONDS", "Seconds between samples of a log without time stamps, as given to -l.", read.seconds
    )
    gpus_per_tick: int | None = one(
        "--gpus-per-tick N",
        "Number of GPUs in a log without a column that distinguishes them.",
        kind=click.IntRange(1, 128),
    )
    map: Path | None = one(
        "--map FILE",
        "TOML file that says what the columns of an unknown table, or your own series in a tracker, mean.",
        Path,
        reads=True,
    )
    mlflow_raw_times: bool = flag(
        "--mlflow-raw-times", "Use the times MLflow logged for its system metrics, without correction."
    )
    # what runs are called
    param: tuple[tuple[str, str], ...] = many("--param KEY=VALUE", "Parameter of the run (repeatable).", read.pair)
    tag: tuple[tuple[str, str], ...] = many("--tag KEY=VALUE", "Label of the run (repeatable).", read.pair)
    work: tuple[tuple[float, str], ...] = many(
        "--work N:UNIT",
        "Work that each run did while recorded, such as 12000:steps (repeatable: one for each source, in order).",
        read.amount,
    )
    name: str | None = once("--name TEXT", "Name of the run.")
    step: tuple[str, ...] = many(
        "--step LABEL", "Optimization step of the run (repeatable: one for each source, in order)."
    )
    label_table: Path | None = one(
        "--labels FILE",
        "Table of jobs, such as sacct -P prints: user, account, job and node become labels of the runs.",
        read.fetched,
        reads=True,
    )
    gpu_model: str | None = one(
        "--gpu-model NAME", "Model of GPUs that the log does not name, such as 'A100 80GB'.", read.gpu_model
    )
    # which part
    start: str | None = once(
        "--from TIME",
        "Leave out what is earlier than this time since the start (90s, 1h30m, 0:10:00) or date (2026-03-14T09:26).",
    )
    end: str | None = once("--to TIME", "Leave out this time and later.")
    job: int | None = one("--job N|EACH", "Read only job N of a log, or each job as a run of its own.", read.job)
    # which runs of a tracker
    run: tuple[str, ...] = many("--run RUN", "Run of a tracker, by id or name (repeatable).")
    experiment: str | None = one("--experiment NAME", "Experiment of a tracker.")
    project: str | None = one("--project NAME", "Project of a tracker.")
    filter: str | None = one("--filter TEXT", "Filter for runs, in the tracker's own syntax.")
    latest: int | None = one("--latest N", "Read only the newest N runs of a tracker.", kind=click.IntRange(1))
    children: bool = flag("--children", "Also read runs nested in a run of a tracker.")
    stage: str | None = one("--stage NAME", "Keep one stage of a run, such as training.")
    group: str | None = one(
        "--group NAME", "Read local recordings of a tracker, all or those of --run, as one run of this name."
    )
    gpu_memory_total: float | None = one(
        "--gpu-memory-total GIB", "Memory of each GPU, if the tracker does not record it.", read.price
    )
    throughput: str | None = one("--throughput KEY", "Training metric that counts the work done.")
    require_hardware: bool = flag("--require-hardware", "Fail if a run of a tracker has no hardware series.")

    is_common: bool = False
    """Whether these are the options of one of several sources, and `work` was given once for all of them."""


FIELDS = {each.name: each for each in fields(Options) if each.metadata}


def list_fields(command: str) -> list[tuple[str, str, bool]]:
    """Return what a command takes in the order of its help: field, section, and whether it is usual."""
    usual, _, others = COMMANDS[command].takes.replace("!", "").partition("/")
    words, names = {*usual.split(), *others.split()}, list(FIELDS)
    for first, last in (_GROUPS[word] for word in words & _GROUPS.keys()):
        words |= {*names[names.index(first) : names.index(last) + 1]}
    section, found = "Options", []
    for name in names:
        section = _SECTIONS.get(name, section)
        if name in words:
            found.append((name, section, name in usual.split()))
    return found


def build_options(command: str) -> list[click.Parameter]:
    needed = re.findall(r"(\w+)!", COMMANDS[command].takes)
    found: list[click.Parameter] = []
    for name, _, _ in list_fields(command):
        about = FIELDS[name].metadata
        words: Sequence[str] = about["typed"].split()
        is_path = about["read"] is parse_place or {"reads", "writes"} & about.keys()
        option = click.Option(
            [name, *(word for word in words if word.startswith("-"))],
            help=about["help"],
            metavar=next((word for word in words if not word.startswith("-")), None),
            required=name in needed,
            callback=_read,
            is_flag="flag" in about or None,
            multiple="many" in about or "once" in about,
            type=about.get("kind"),
            shell_complete=complete_files if is_path else None,
        )
        found.append(option)
    return found


def _read(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    each = FIELDS[str(param.name)]
    reader = each.metadata["read"]
    if value is None or ctx.resilient_parsing:
        return each.default if value is None else value
    try:
        if reader is None:
            return value
        return tuple(read.read(reader, text) for text in value) if "many" in each.metadata else read.read(reader, value)
    except read.RefusedError as error:
        refused = click.BadParameter(str(error), ctx, param)
        refused.code = error.code  # type: ignore[attr-defined]  # beside what click knows of it
        raise refused from error
