"""What a store of Neptune holds of one run, whatever the form of the store; times in microseconds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import Series

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What was read of a run, in one place of its store: series, single values and times by their paths.

    Attributes:
        state: a text that changes whenever the store holds more of the run.
        highest: the stated maximum of a series; only a log of the client has it.
        last: time of the last operation; None if only the series have times.
        exported: id of an exported run, whose times may be local time labelled as UTC; empty for others.
    """

    state: str
    series: Mapping[str, Series]
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    moments: Mapping[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    project: str = ""
    highest: Mapping[str, float] = field(default_factory=dict)
    last: int | None = None
    exported: str = ""
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRun:
    """A run in a store, before its series are read.

    Attributes:
        key: what identifies it among the runs of all stores.
        read: returns its contents, one for each place in which its processes wrote.
        points: how many points each series of numbers has; None where nobody looked.
        made: when it was made, where its single times do not say so.
        title, kept: name and status of a run that Neptune gave none.
        fault: why it cannot be read; None if it can.
    """

    key: str
    id: str
    read: Callable[[], Sequence[Content]] = list
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    moments: Mapping[str, int] = field(default_factory=dict)
    points: Mapping[str, int] | None = field(default_factory=dict)
    project: str = ""
    made: int | None = None
    title: str = ""
    kept: str = ""
    fault: SourceError | None = None

    @property
    def name(self) -> str:
        """What a person calls it."""
        name = str(self.scalars.get("sys/name", ""))
        return name if name not in {"", "Untitled"} else self.title or self.id

    @property
    def status(self) -> str:
        """What became of it, in Neptune's word."""
        state = "failed" if self.scalars.get("sys/failed") is True else str(self.scalars.get("sys/state", "")).lower()
        return self.kept or state or "status not recorded"

    @property
    def trashed(self) -> bool:
        """Whether it is in the trash."""
        return self.scalars.get("sys/trashed") is True

    @property
    def started(self) -> int | None:
        """When it was made; None where that is not recorded."""
        return self.moments.get("sys/creation_time") if self.made is None else self.made


def merge_contents(contents: Sequence[Content], key: str, run_id: str) -> StoredRun:
    """Return a run whose contents are read already; the first of them names it."""
    points: Counter[str] = Counter()
    scalars: dict[str, Scalar] = {}
    moments: dict[str, int] = {}
    for each in reversed(contents):
        points.update({path: len(series.times) for path, series in each.series.items()})
        scalars |= each.scalars
        moments |= each.moments
    return StoredRun(
        key=key,
        id=run_id,
        scalars=scalars,
        moments=moments,
        points=points,
        project=contents[0].project,
        read=lambda: contents,
    )
