"""What a store of Neptune holds of one run, in whatever form it is stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune_hardware.point_series import Series
from gpureport.quality import Rejected

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutline:
    """What is known of a run before its series are read.

    Attributes:
        id: its id in the store.
        name: what a person calls it.
        status: in Neptune's word.
        project: its project, empty where the store does not say.
        started: when it was made, in microseconds; None where not recorded.
        points: how many points each series of numbers has.
        scalars: paths of single values.
        trashed: whether it was put into the bin.
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
    """Return what is known of a run of which several processes wrote in places of their own; the first names it."""
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
        outline: what was known before.
        scalars: single values by path.
        moments: single times by path, in microseconds.
        tags: its tags.
        series: series of numbers by path.
        highest: the highest value a series was said to reach, by path; only a local log holds it.
        last: last sign of life, in microseconds of UTC; None where only series tell.
        maybe_local: whether times may be local time that is labelled UTC.
        client: version of the client that recorded it, empty where not known.
        rejected: what was read and could not be used.
        notes: what a reader must know.
        state: what changes whenever the store holds more of the run.
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
    """A run in a store, not read yet.

    Attributes:
        key: what identifies it among the runs of all stores.
        id: its id.
        fault: why it cannot be read, None when it can.
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
        """Return what is known without reading its series.

        Raises:
            SourceError: when it cannot be read.
        """
        ...

    def contents(self) -> list[RunContent]:
        """Read it; what several processes wrote in places of their own comes as several.

        Raises:
            SourceError: when it cannot be read.
        """
        ...
