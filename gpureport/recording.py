"""What an importer hands on: one run with its devices, its quality, and the series in one wide Arrow table.

Times are integer microseconds since 1970-01-01. With `Run.timezone` set they are UTC; without, they are the
local time of the recording machine stored as if it were UTC, and are printed without an offset.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from gpureport import label_tags
from gpureport.data_quality import Quality
from gpureport.metrics import Scope
from gpureport.redaction import redact_column, redact_pairs, redact_text
from gpureport.series_table import SeriesRows, arrange_series, empty_training, hold_rows, local_times

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

HOST = "host"  # device id of the machine the GPUs sit in
TRACKER_KINDS = {"mlflow", "neptune", "trackio", "accounting"}
"""Kinds of sources that are runs of a tracker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, `gpu:0` or of several nodes `node_1/gpu:0`, or a `host`, without index; None for what was not logged.

    The power limit is the lowest that was in force. A power reading averages over the `power_window`, `1 s`, `instant`
    or `unknown`. Rows of a `mixed` one come, or may come, from several GPUs that nothing distinguishes.
    """

    id: str
    index: int | None = None
    node: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    serial: str | None = None
    model: str | None = None
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_window: str = "unknown"
    driver: str | None = None
    mig: bool | None = None
    mixed: bool = False

    def __post_init__(self) -> None:
        """Replace secrets in what a log says of it."""
        _set(self, model=self.model and redact_text(self.model), driver=self.driver and redact_text(self.driver))

    @property
    def scope(self) -> Scope:
        """Whether this is a GPU or a host."""
        return Scope.HOST if self.index is None else Scope.GPU


def _set(instance: "Device | Run | Recording", **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


Card = tuple[str, str]
"""What tells a GPU from others over runs: `UUID` and its uuid, else its node and its id there."""
UUID = "uuid"


def identify_card(uuid: str | None, node: str | None, device: str) -> Card | None:
    """Return what tells a GPU from others over runs; None without a uuid and a node, for jobs call theirs alike."""
    if uuid:
        return UUID, uuid
    return (node, device.rpartition("/")[2]) if node else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where data came from: kind (`nvidia_smi`, `host`), locator as typed, sha256 and number of its bytes."""

    kind: str
    locator: str
    sha256: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named part of a run (preprocessing, training, validation), in microseconds."""

    name: str
    start: int
    end: int
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the run did in all, in steps, samples, tokens or epochs; `is_common` where several runs each did as much."""

    amount: float
    unit: str
    is_common: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run: identity, time base, devices, and its labels.

    Its id is from the bytes of its sources and the options that select or place rows. It lasted from its first sample
    to the last, which lie a median `interval` of seconds apart. `params` are what it was configured with, `tags` its
    labels.
    """

    id: str
    name: str
    started: int
    ended: int
    sources: tuple[Source, ...]
    devices: tuple[Device, ...]
    quality: Quality
    step: str | None = None
    timezone: str | None = None
    interval: float | None = None
    stages: tuple[Stage, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    work: Work | None = None

    def __post_init__(self) -> None:
        """Replace secrets in every text, so that nothing that is made from a run can show one; its id stays."""
        _set(
            self,
            name=redact_text(self.name),
            step=self.step and redact_text(self.step),
            sources=tuple(replace(each, locator=redact_text(each.locator)) for each in self.sources),
            stages=tuple(replace(each, name=redact_text(each.name)) for each in self.stages),
            work=self.work and replace(self.work, unit=redact_text(self.work.unit)),
            params=redact_pairs(self.params),
            tags=redact_pairs(self.tags),
            quality=self.quality.redacted(),
        )

    @property
    def tracked(self) -> bool:
        """Whether a tracker recorded it, so that its account counts points instead of lines."""
        return any(source.kind in TRACKER_KINDS for source in self.sources)

    @property
    def is_mean(self) -> bool:
        """Whether it is a row of a table with means of the whole run, and no series."""
        return any(source.kind == "accounting" for source in self.sources)

    @property
    def params_and_tags(self) -> tuple[tuple[str, str], ...]:
        """What the run was configured with, as params or as tags."""
        return (*self.params, *self.tags)

    @property
    def states_setup(self) -> bool:
        """Whether anything says how it was configured; whose it is and where it ran do not."""
        return any(name not in label_tags.BY_NAME for name, _ in self.params_and_tags)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """Its GPUs."""
        return tuple(device for device in self.devices if device.scope is Scope.GPU)

    @property
    def hosts(self) -> tuple[Device, ...]:
        """Its hosts."""
        return tuple(device for device in self.devices if device.scope is Scope.HOST)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, init=False)
class Recording:
    """A run and its series.

    Attributes:
        run: what is known about the run.
        series: columns of SCHEMA that were recorded, then `extra_` columns; sorted by device (in the order of
            `run.devices`), then by time.
        training: long table of training metrics, empty when there are none.
    """

    run: Run
    rows: SeriesRows
    training: "pa.Table"

    def __init__(
        self,
        *,
        run: Run,
        series: "pa.Table | None" = None,
        training: "pa.Table | None" = None,
        rows: SeriesRows | None = None,
    ) -> None:
        """Take a run and its series as one table, in the form that `series` has, or wherever they are."""
        if series is not None or rows is None:
            rows = hold_rows(arrange_series([]) if series is None else series)
        training = empty_training() if training is None else redact_column(training, "name")
        _set(self, run=run, rows=rows, training=training)

    @property
    def series(self) -> "pa.Table":
        """All rows in one table; those of a long stored run are read each time."""
        return self.rows.table()

    def with_series(self, series: "pa.Table") -> "Recording":
        """Return the run with other series."""
        return Recording(run=self.run, series=series, training=self.training)

    def rows_of(self, device: str) -> "pa.Table":
        """Return the rows of one device, in time order."""
        return self.rows.table_of(device)

    def by_device(self) -> "dict[str, pa.Table]":
        """Return the rows of each device that has any, in time order, keyed by device id; not to be written to."""
        return {device: self.rows_of(device) for device in self.rows.list_devices()}

    def to_pandas(self) -> "pd.DataFrame":
        """Return the series as a pandas frame, one row a sample and device.

        `timestamp` is in the zone of the run; it has none where the log names none.
        """
        frame = self.series.to_pandas()
        frame["timestamp"] = local_times(frame["timestamp"], self.run.timezone)
        return frame

    def __repr__(self) -> str:
        length = timedelta(seconds=round((self.run.ended - self.run.started) / 1e6))
        gpus = f"{len(self.run.gpus)} GPU{'' if len(self.run.gpus) == 1 else 's'}"
        return f"<Recording {self.run.name!r}: {gpus}, {length}, {len(self.rows)} rows>"
