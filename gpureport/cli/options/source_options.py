"""What to read of a source, its times and devices, and what its runs are called."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpureport.cli.options.label_options import LABEL_OPTIONS, LabelOptions
from gpureport.cli.options.option_groups import FILE, Command, add_options, refuse_repetition, take_values
from gpureport.cli.options.option_values import Fields, Indices, JobNumber, Seconds
from gpureport.cli.options.place_type import FETCHED_FILE, PLACE
from gpureport.cli.options.tracker_options import TRACKER_OPTIONS, TrackerOptions
from gpureport.errors import SettingsError
from gpureport.importers import IMPORTERS

if TYPE_CHECKING:
    from gpureport.importers.protocol.importer import ReadOptions
    from gpureport.importers.time_window import Window
    from gpureport.places import Place

T = TypeVar("T")

_INPUT = (
    click.option(
        "--host", type=FETCHED_FILE, multiple=True, metavar="FILE", help="CPU log to join by time (repeatable)."
    ),
    click.option(
        "--training",
        type=FETCHED_FILE,
        multiple=True,
        metavar="FILE",
        help="Metrics that the training loop wrote: CSV or JSON (repeatable; one for each of several sources).",
    ),
    click.option(
        "--source-kind", type=click.Choice(IMPORTERS.kinds), help="Read files as this, whatever they look like."
    ),
    click.option(
        "--as-one-run", is_flag=True, help="Read all logs as one run: rotated logs, or one for each GPU or node."
    ),
    click.option("--strict", is_flag=True, help="Fail if a line of a log is not understood."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Which files make a run, and what they are."""

    host: tuple[Path, ...] = ()
    training: tuple[Path, ...] = ()
    source_kind: str | None = None
    as_one_run: bool = False
    strict: bool = False


_PLACEMENT = (
    click.option(
        "--tz",
        metavar="ZONE",
        multiple=True,
        callback=refuse_repetition,
        help="Time zone of the log's stamps, such as Europe/Berlin.",
    ),
    click.option("--gpus", type=Indices(), help="Keep only these GPUs."),
    click.option("--columns", type=Fields(), help="Columns of a log without a header: its --query-gpu fields."),
    click.option(
        "--interval", type=Seconds(), help="Seconds between samples of a log without time stamps, as given to -l."
    ),
    click.option(
        "--gpus-per-tick",
        type=click.IntRange(1, 128),
        metavar="N",
        help="Number of GPUs in a log in which no column tells them apart.",
    ),
    click.option(
        "--map",
        type=FILE,
        metavar="FILE",
        help="TOML file that says what the columns of an unknown table, or your own series in a tracker, mean.",
    ),
    click.option(
        "--mlflow-raw-times",
        is_flag=True,
        help="Use the times MLflow logged for its system metrics, without correction.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOptions:
    """Which rows are kept, and how they get their times and devices."""

    tz: str | None = None
    gpus: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    interval: float | None = None
    gpus_per_tick: int | None = None
    map: Path | None = None
    mlflow_raw_times: bool = False

    def read_options(self, *, tracked: bool = False) -> "ReadOptions":
        """Return them as importers take them.

        Args:
            tracked: whether they are for runs of a tracker, which reads the map itself.

        Raises:
            SettingsError: when the map cannot be read.
        """
        from gpureport.importers.protocol.importer import ReadOptions  # noqa: PLC0415 - importers load pyarrow

        mapping = None
        if self.map and not tracked:
            from gpureport.importers.tools.mapped import read_column_map  # noqa: PLC0415 - as above

            mapping = read_column_map(self.map)
        return ReadOptions(
            tz=self.tz or (mapping.zone if mapping else None),
            gpus=self.gpus,
            columns=self.columns,
            interval=self.interval,
            gpus_per_tick=self.gpus_per_tick,
            map=mapping,
            as_logged=self.mlflow_raw_times,
        )


_WINDOW = (
    click.option(
        "--from",
        "start",
        metavar="TIME",
        multiple=True,
        callback=refuse_repetition,
        help="Leave out what is earlier: time since the start (90s, 1h30m, 0:10:00) or a date (2026-03-14T09:26).",
    ),
    click.option(
        "--to", "end", metavar="TIME", multiple=True, callback=refuse_repetition, help="Leave out this time and later."
    ),
    click.option(
        "--job", type=JobNumber(), help="Read only job N of a log with several jobs, or each job as a run of its own."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """Which part of a run to keep; `job` is a number, 0 for each job on its own."""

    start: str | None = None
    end: str | None = None
    job: int | None = None

    @property
    def window(self) -> "Window | None":
        """The part between two times; None for all of it."""
        from gpureport.importers.time_window import Window  # noqa: PLC0415 - importers load pyarrow

        return Window(start=self.start, end=self.end) if self.start or self.end else None


_OUTPUT = (
    click.option("--anonymise", is_flag=True, help="Replace names of hosts, users, paths and GPUs in the output."),
    click.option(
        "--store",
        type=PLACE,
        metavar="DIR",
        help="The store: a folder, or s3://BUCKET/FOLDER (default: .gpureport in this folder or above).",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How sources are read, by topic; `store` is None for the nearest store."""

    input: InputOptions = field(default_factory=InputOptions)
    placement: PlacementOptions = field(default_factory=PlacementOptions)
    labels: LabelOptions = field(default_factory=LabelOptions)
    window: WindowOptions = field(default_factory=WindowOptions)
    tracker: TrackerOptions = field(default_factory=TrackerOptions)
    anonymise: bool = False
    store: "Place | None" = None

    @property
    def kind(self) -> str | None:
        """The kind of file that the options name; None where the content tells."""
        columns = "nvidia_smi" if self.placement.columns else None
        return self.input.source_kind or ("mapped" if self.placement.map else columns)

    @property
    def reading_option(self) -> str | None:
        """The first given option that matters only while a log is read, if any."""
        values = {
            name: getattr(part, name)
            for part, names in (
                (self.placement, ("gpus", "tz")),
                (self.input, ("host", "training")),
                (self.placement, ("columns", "interval", "gpus_per_tick", "map")),
                (self.input, ("source_kind", "as_one_run")),
                (self.placement, ("mlflow_raw_times",)),
            )
            for name in names
        }
        return next((f"--{name.replace('_', '-')}" for name, value in values.items() if value), None)

    def for_each(self, sources: Sequence[str]) -> "list[tuple[str, SourceOptions]]":
        """Return every source with its options: of several step labels or amounts of work its own.

        Of several sources each has a training log of its own, for a log says nothing of another run.

        Raises:
            SettingsError: when there are several of either, or training logs, and not as many as sources.
        """
        steps = _one_for_each("--step", self.labels.step, "labels", len(sources))
        works = _one_for_each("--work", self.labels.work, "amounts", len(sources))
        logs = [self.input.training] * len(sources)
        if len(sources) > 1 and self.input.training:
            logs = _match_in_order("--training", self.input.training, "training logs", len(sources))
        common = self.labels.is_common or (len(sources) > 1 and len(self.labels.work) == 1)
        labelled = self.with_labels(is_common=common)
        return [
            (source, replace(labelled.with_labels(step=step, work=work), input=replace(self.input, training=training)))
            for source, step, work, training in zip(sources, steps, works, logs, strict=True)
        ]

    def with_labels(self, **labels: Any) -> "SourceOptions":
        """Return the same options with other labels."""
        return replace(self, labels=replace(self.labels, **labels))


def _one_for_each(option: str, values: tuple[T, ...], noun: str, sources: int) -> list[tuple[T, ...]]:
    """Return for every source the value of an option that holds one for all, or one for each.

    Raises:
        SettingsError: when there are several, and not as many as sources.
    """
    if len(values) <= 1:
        return [values] * sources
    return _match_in_order(option, values, noun, sources, otherwise="one, or ")


def _match_in_order(
    option: str, values: tuple[T, ...], noun: str, sources: int, otherwise: str = ""
) -> list[tuple[T, ...]]:
    """Return one value for each source, in their order.

    Raises:
        SettingsError: when there are not as many as sources.
    """
    if len(values) != sources:
        known = f"{len(values)} {noun if len(values) > 1 else noun.removesuffix('s')}"
        what = f"{known} for {sources} source{'' if sources == 1 else 's'}"
        raise SettingsError(option, what, f"give {otherwise}one for each source in their order", code="wrong_count")
    return [(value,) for value in values]


def source_options(command: Command) -> Command:
    """Add the options of sources; the command gets them as one `options`."""
    added = (*_INPUT, *_PLACEMENT, *LABEL_OPTIONS, *_WINDOW, *_OUTPUT, *TRACKER_OPTIONS)
    return add_options(command, added, "options", _build)


def _build(values: dict[str, Any]) -> SourceOptions:
    return SourceOptions(
        input=take_values(InputOptions, values),
        placement=take_values(PlacementOptions, values),
        labels=take_values(LabelOptions, values),
        window=take_values(WindowOptions, values),
        tracker=take_values(TrackerOptions, values),
        anonymise=values.pop("anonymise"),
        store=values.pop("store"),
    )
