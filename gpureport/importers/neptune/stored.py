"""What a store of Neptune holds of one run, whatever the form of the store; times in microseconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import Series
from gpureport.regular_files import UnsafeFileError

Scalar = str | int | float | bool


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A run in a store: its series, single values and times by their paths.

    Where `load` is given, it returns the run with its series, and `looked` says whether their points were counted.

    Attributes:
        highest: the stated maximum of a series; only a log of the client has it.
        last: time of the last operation; None if only the series have times.
        exported: whether times may be local time labelled as UTC; `files` are then those of the export.
        state: a text that changes whenever the store holds more of the run.
        made, title, kept: when it was made, its name and status, where its single values do not say so.
    """

    key: str
    id: str
    load: "Callable[[], Stored] | None" = None
    series: dict[str, Series] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    looked: bool = True
    scalars: dict[str, Scalar] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    tags: Sequence[str] = ()
    highest: dict[str, float] = field(default_factory=dict)
    project: str = ""
    last: int | None = None
    exported: bool = False
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    state: str = ""
    size: int = 0
    files: list[Path] = field(default_factory=list)
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
    def started(self) -> int | None:
        """When it was made; None where that is not recorded."""
        return self.moments.get("sys/creation_time") if self.made is None else self.made

    def hold(self, series: Mapping[str, Series]) -> "Stored":
        """Return the run with these of its series that have points."""
        self.series = {path: each for path, each in series.items() if len(each.times)}
        self.points = {path: len(each.times) for path, each in self.series.items()}
        self.state = self.state or str(sum(self.points.values()))
        return self


def make_broken_run(run_id: str, path: Path, error: Exception, hint: str, code: str) -> Stored:
    """Return a run that cannot be read, with the reason."""
    what = str(getattr(error, "strerror", None) or error)
    if isinstance(error, UnsafeFileError):
        hint, code = error.hint, "not_a_regular_file"
    fault = error if isinstance(error, SourceError) else SourceError(str(path), what, hint, code=code)
    return Stored(key=f"broken {run_id}", id=run_id, fault=fault)
