"""Options that several commands share, and what they mean."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpureport.cli.options.option_values import Amount, Fields, Indices, JobNumber, Pair, Price, Seconds
from gpureport.errors import SettingsError
from gpureport.importers.protocol.registry import IMPORTERS

if TYPE_CHECKING:
    from gpureport.importers import Labels, ReadOptions, Selection, Window

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How sources that are not in the store are read.

    Attributes:
        host: CPU logs to join.
        training: logs of training metrics.
        param: `KEY=VALUE` pairs.
        tag: `KEY=VALUE` pairs.
        work: `N:UNIT`.
        name: name of the run.
        step: label of its optimization step: one for all sources, or one for each.
        tz: zone of the stamps.
        gpus: GPU indices, comma-separated.
        columns: query fields of a log without a header.
        interval: seconds between ticks of a log without time stamps.
        gpus_per_tick: rows a tick of a log in which no column tells GPUs apart.
        map: file that says what the columns of a table are that no importer knows, or what series of a tracker mean
            that have names of a person's own.
        source_kind: how a file is read, whatever its content looks like.
        as_one_run: whether all sources are one run.
        strict: whether a rejected line is an error.
        store: the store's folder.
        anonymise: whether names of hosts, users, paths and GPUs are replaced in what is printed.
        start: where the part of a run begins that is wanted.
        end: where it ends.
        job: number of the job wanted of a log with several, 0 for each as a run of its own.
        run: runs of a tracker: ids, their beginnings, or names.
        experiment: experiment of a tracker, by name or id.
        project: project of a tracker.
        filter: filter in the tracker's own words.
        latest: how many runs of a tracker at most, the newest first.
        children: whether nested runs of a tracker are read as well.
        stage: stage of a run to keep.
        group: name under which several local recordings of a tracker are one run.
        gpu_memory_total: GiB of memory of each GPU, where a tracker does not say.
        throughput: training metric that counts work.
        require_hardware: whether a run of a tracker without hardware series is an error.
        mlflow_raw_times: whether system metrics of MLflow stay where they were logged.
    """

    host: tuple[Path, ...]
    training: tuple[Path, ...]
    param: tuple[tuple[str, str], ...]
    tag: tuple[tuple[str, str], ...]
    work: tuple[float, str] | None
    name: str | None
    step: tuple[str, ...]
    tz: str | None
    gpus: tuple[int, ...] | None
    columns: tuple[str, ...] | None
    interval: float | None
    gpus_per_tick: int | None
    map: Path | None
    source_kind: str | None
    as_one_run: bool
    strict: bool
    store: Path | None
    anonymise: bool = False
    start: str | None = None
    end: str | None = None
    job: int | None = None
    run: tuple[str, ...] = ()
    experiment: str | None = None
    project: str | None = None
    filter: str | None = None
    latest: int | None = None
    children: bool = False
    stage: str | None = None
    group: str | None = None
    gpu_memory_total: float | None = None
    throughput: str | None = None
    require_hardware: bool = False
    mlflow_raw_times: bool = False

    @property
    def window(self) -> "Window | None":
        """The part of a run that is wanted, None when it is all of it."""
        from gpureport.importers import Window  # noqa: PLC0415 - importers load pyarrow

        return Window(start=self.start, end=self.end) if self.start or self.end else None

    def selection(self) -> "Selection":
        """Return which runs of a tracker are meant."""
        from gpureport.importers import Selection  # noqa: PLC0415 - importers load pyarrow

        gibibytes = self.gpu_memory_total
        return Selection(
            runs=self.run,
            experiment=self.experiment,
            project=self.project,
            filter=self.filter,
            latest=self.latest,
            children=self.children,
            stage=self.stage,
            group=self.group,
            gpu_memory_total=None if gibibytes is None else round(gibibytes * 2**30),
            throughput=self.throughput,
            require_hardware=self.require_hardware,
            map=self.map,
        )

    def placement(self, *, tracked: bool = False) -> "ReadOptions":
        """Return the options that select or place rows.

        Args:
            tracked: whether they are for runs of a tracker, which reads a map itself.

        Raises:
            SettingsError: when the map cannot be read.
        """
        from gpureport.importers import ReadOptions  # noqa: PLC0415 - importers load pyarrow

        mapping = None
        if self.map and not tracked:
            from gpureport.importers.protocol.column_map import read  # noqa: PLC0415 - as above

            mapping = read(self.map)
        return ReadOptions(
            tz=self.tz or (mapping.zone if mapping else None),
            gpus=self.gpus,
            columns=self.columns,
            interval=self.interval,
            gpus_per_tick=self.gpus_per_tick,
            map=mapping,
            as_logged=self.mlflow_raw_times,
        )

    @property
    def kind(self) -> str | None:
        """How files are read whatever they look like: as named, by a map, or as nvidia-smi's when their columns are."""
        return self.source_kind or ("mapped" if self.map else "nvidia_smi" if self.columns else None)

    @property
    def placing(self) -> str | None:
        """The first option given that matters only while a log is read, None when there is none."""
        one = True if self.as_one_run else None
        given = {
            "--gpus": self.gpus,
            "--tz": self.tz,
            "--host": self.host or None,
            "--training": self.training or None,
            "--columns": self.columns,
            "--interval": self.interval,
            "--gpus-per-tick": self.gpus_per_tick,
            "--map": self.map,
            "--source-kind": self.source_kind,
            "--as-one-run": one,
            "--mlflow-raw-times": self.mlflow_raw_times or None,
        }
        return next((name for name, value in given.items() if value is not None), None)

    def each(self, sources: Sequence[str]) -> "list[tuple[str, SourceOptions]]":
        """Return every source with the options for it: of several step labels its own.

        Raises:
            SettingsError: when there are several labels, and not as many as sources.
        """
        count = len(self.step)
        if count > 1 and count != len(sources):
            what = f"{count} labels for {len(sources)} source{'' if len(sources) == 1 else 's'}"
            raise SettingsError("--step", what, "give one, or one for each source in their order")
        labels = [(label,) for label in self.step] if count > 1 else [self.step] * len(sources)
        return [(source, replace(self, step=label)) for source, label in zip(sources, labels, strict=True)]

    def labels(self) -> "Labels":
        """Return what the options say about a run.

        Raises:
            SettingsError: when a key is given twice, or one run several step labels.
        """
        for name, pairs in (("--param", self.param), ("--tag", self.tag)):
            keys = [key for key, _ in pairs]
            if len(set(keys)) < len(keys):
                raise SettingsError(name, "a key is given twice", "give each key once")
        if len(self.step) > 1:
            raise SettingsError("--step", f"{len(self.step)} labels for one run", "give one")
        from gpureport.importers import Labels  # noqa: PLC0415 - importers load pyarrow
        from gpureport.recording import Work  # noqa: PLC0415 - loads pyarrow

        work = Work(amount=self.work[0], unit=self.work[1]) if self.work else None
        return Labels(name=self.name, step=next(iter(self.step), None), params=self.param, tags=self.tag, work=work)


def _once(_: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any option's value
    """Return the value of an option given at most once; the last of several would win without a word."""
    if len(values) > 1:
        msg = "given more than once, but it applies to every source; ingest each log with its own, then name the runs"
        raise click.BadParameter(msg, param=param)
    return values[0] if values else None


_FILE = click.Path(path_type=Path, readable=False)
_SOURCE_OPTIONS = (
    click.option("--host", type=_FILE, multiple=True, metavar="FILE", help="CPU log to join by time (repeatable)."),
    click.option(
        "--training",
        type=_FILE,
        multiple=True,
        metavar="FILE",
        help="What the training loop wrote of its metrics: CSV or JSON (repeatable).",
    ),
    click.option("--param", type=Pair(), multiple=True, help="What the run was configured with (repeatable)."),
    click.option("--tag", type=Pair(), multiple=True, help="Label of the run (repeatable)."),
    click.option(
        "--work", type=Amount(), multiple=True, callback=_once, help="What each run did in all, such as 12000:steps."
    ),
    click.option("--name", multiple=True, callback=_once, help="Name of the run."),
    click.option(
        "--step",
        metavar="LABEL",
        multiple=True,
        help="Optimization step the run belongs to (repeatable: one for each source, in their order).",
    ),
    click.option(
        "--tz",
        metavar="ZONE",
        multiple=True,
        callback=_once,
        help="Zone of the log's time stamps, such as Europe/Berlin.",
    ),
    click.option("--gpus", type=Indices(), help="Keep only these GPUs."),
    click.option(
        "--columns", type=Fields(), help="Columns of a log without a header, as in --query-gpu, one for each cell."
    ),
    click.option(
        "--interval", type=Seconds(), help="Seconds between samples of a log without time stamps, as given to -l."
    ),
    click.option(
        "--gpus-per-tick",
        type=click.IntRange(1, 128),
        metavar="N",
        help="GPUs of a log in which no column tells them apart.",
    ),
    click.option(
        "--map",
        type=_FILE,
        metavar="FILE",
        help="What the columns of an unknown table mean, or series of a tracker with names of your own.",
    ),
    click.option(
        "--source-kind", type=click.Choice(IMPORTERS.kinds), help="Read files as this, whatever they look like."
    ),
    click.option("--as-one-run", is_flag=True, help="Take all logs for one run: rotated ones, one a GPU, one a node."),
    click.option("--strict", is_flag=True, help="Fail when a line of a log was not understood."),
    click.option(
        "--from",
        "start",
        metavar="TIME",
        multiple=True,
        callback=_once,
        help="Leave out what is before: time since the start (90s, 1h30m, 0:10:00), or a moment (2026-03-14T09:26).",
    ),
    click.option("--to", "end", metavar="TIME", multiple=True, callback=_once, help="Leave out this moment and later."),
    click.option(
        "--job", type=JobNumber(), help="Of a log with several jobs, read only job N, or each job as a run of its own."
    ),
    click.option("--anonymise", is_flag=True, help="Replace names of hosts, users, paths and GPUs in what is shown."),
    click.option("--store", type=_FILE, metavar="DIR", help="The store (default: .gpureport here or above)."),
)
_TRACKER_OPTIONS = (
    click.option("--run", multiple=True, metavar="RUN", help="Run of a tracker, by id or name (repeatable)."),
    click.option("--experiment", metavar="NAME", help="Experiment of a tracker."),
    click.option("--project", metavar="NAME", help="Project of a tracker."),
    click.option("--filter", metavar="TEXT", help="Which runs of a tracker, in its own words."),
    click.option("--latest", type=click.IntRange(1), metavar="N", help="The newest runs of a tracker only."),
    click.option("--children", is_flag=True, help="Read runs nested in a run of a tracker as well."),
    click.option("--stage", metavar="NAME", help="Keep one stage of a run, such as training."),
    click.option("--group", metavar="NAME", help="Take several local recordings of a tracker for one run."),
    click.option(
        "--gpu-memory-total", type=Price(), metavar="GIB", help="Memory of each GPU, where a tracker does not say."
    ),
    click.option("--throughput", metavar="KEY", help="Training metric that counts work."),
    click.option("--require-hardware", is_flag=True, help="Fail where a run of a tracker has no hardware series."),
    click.option(
        "--mlflow-raw-times", is_flag=True, help="Leave MLflow's system metrics at the times they were logged at."
    ),
)
_KINDS = (
    click.option("--select", multiple=True, metavar="KIND", help="Look for these kinds only (repeatable)."),
    click.option("--ignore", multiple=True, metavar="KIND", help="Do not look for these kinds (repeatable)."),
)
_PRICES = (
    click.option(
        "--gpu-hour-price",
        type=Price(),
        metavar="PRICE",
        help="Price of a GPU-hour (default: [prices] of the settings).",
    ),
    click.option(
        "--carbon-intensity",
        type=Price(),
        metavar="G/KWH",
        help="Grams of CO2 equivalent a kWh (default: [carbon] of the settings).",
    ),
)
config_option = click.option("--config", type=_FILE, metavar="FILE", help="Settings (default: gpureport.toml here).")
"""The option that names the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOptions:
    """What the command line says of prices: of a GPU-hour, and grams of CO2 equivalent a kWh."""

    gpu_hour_price: float | None = None
    carbon_intensity: float | None = None


def source_options(command: Command) -> Command:
    """Add the options of sources; the command gets them as one `options`."""

    @wraps(command)
    def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click hands over whatever the options yield
        taken = {name: given.pop(name) for name in SourceOptions.__dataclass_fields__}
        return command(options=SourceOptions(**taken), **given)

    added: Command = _added(wrapped, (*_SOURCE_OPTIONS, *_TRACKER_OPTIONS))
    return added


def analysis_options(command: Command) -> Command:
    """Add the options of the analysis; the command gets those of prices as one `prices`."""

    @wraps(command)
    def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click hands over whatever the options yield
        taken = {name: given.pop(name) for name in PriceOptions.__dataclass_fields__}
        return command(prices=PriceOptions(**taken), **given)

    added: Command = _added(wrapped, (*_KINDS, *_PRICES, config_option))
    return added


def _added(command: Any, options: tuple[Callable[[Any], Any], ...]) -> Any:  # noqa: ANN401 - decorators keep the command's type
    for option in reversed(options):
        command = option(command)
    return command
