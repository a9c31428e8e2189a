"""What a store of Neptune holds of one run, whatever the form of the store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune_hardware.point_series import Series

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutline:
    """A run before its series are read.

    Attributes:
        id: its id in the store.
        name: what a person calls it.
        status: its status in Neptune.
        project: its project; empty if the store does not say.
        started: when it was made, in microseconds; None where not recorded.
        points: how many points each series of numbers has.
        scalars: paths of single values.
        trashed: whether it is in the trash.
        surveyed: whether its series are known.
    """

    id: str
    name: str
    status: str = ""
    project: str = ""
    started: int | None = None
    points: Mapping[str, int] = field(default_factory=dict)
    scalars: frozenset[str] = frozenset()
    trashed: bool = False
    surveyed: bool = True


def merge_outlines(outlines: Sequence[RunOutline]) -> RunOutline:
    """Return the outline of a run that several processes wrote in places of their own; the first one names it."""
    points: Counter[str] = Counter()
    for each in outlines:
        points.update(each.points)
    started = [each.started for each in outlines if each.started is not None]
    return replace(
        outlines[0],
        started=min(started, default=None),
        points=points,
        scalars=frozenset(path for each in outlines for path in each.scalars),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContent:
    """All that is read of a run.

    Attributes:
        outline: the outline of the run.
        scalars: single values by path.
        moments: single times by path, in microseconds.
        tags: its tags.
        series: series of numbers by path.
        highest: the stated maximum of a series, by path; only a local log has it.
        last: time of the last operation, in microseconds of UTC; None if only the series have times.
        maybe_local: whether times may be local time that is labelled UTC.
        client: version of the client that recorded it; empty if not known.
        rejected: what was read but could not be used.
        notes: what a reader must know.
        state: a text that changes whenever the store holds more of the run.
        size: bytes read.
    """

    outline: RunOutline
    series: Mapping[str, Series]
    state: str
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    moments: Mapping[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    highest: Mapping[str, float] = field(default_factory=dict)
    last: int | None = None
    maybe_local: bool = False
    client: str = ""
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    size: int | None = None


class NeptuneRun(Protocol):
    """A run in a store that is not read yet.

    Attributes:
        key: its identity among the runs of all stores.
        id: its id.
        fault: why it cannot be read; None if it can.
    """

    @property
    def key(self) -> str:
        """What identifies it."""
        ...

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read."""
        ...

    def outline(self) -> RunOutline:
        """Return its outline, without reading its series.

        Raises:
            SourceError: when it cannot be read.
        """
        ...

    def contents(self) -> list[RunContent]:
        """Read it; one content for each place in which its processes wrote.

        Raises:
            SourceError: when it cannot be read.
        """
        ...
