"""What a store of Neptune holds of one run, whatever the form of the store; times in microseconds.

The exporter takes times of runs of Neptune 2 from a client that gives them in the zone of the machine it runs on, and
writes them unchanged, labelled as UTC. The time at which a run was made is not shifted, which is how it can be told.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.clock import fold_sizes, load_zone, to_utc
from gpureport.importers.neptune.hardware import Series
from gpureport.importers.protocol.reject_reasons import NO_TIME

Scalar = str | int | float | bool
_HOUR = 3_600_000_000
_QUARTER = _HOUR // 4
_NEAR = 120_000_000
"""How far a first sample may lie from a whole offset: monitoring begins with the run, give or take (pragmatic)."""


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A run in a store: its series and single values by their paths; `load` returns it with its series.

    `points` counts those of each series, None where nobody has looked. Only a log of the client has `highest`, the
    stated maximum of a series, and `last`, the time of the last operation. Only a run of an export has `files`.
    """

    key: str
    id: str
    load: "Callable[[], Stored] | None" = None
    series: dict[str, Series] = field(default_factory=dict)
    points: dict[str, int] | None = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    tags: Sequence[str] = ()
    highest: dict[str, float] = field(default_factory=dict)
    project: str = ""
    started: int | None = None
    last: int | None = None
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    size: int = 0
    files: list[Path] = field(default_factory=list)
    fault: SourceError | None = None

    @property
    def name(self) -> str:
        """What a person calls it."""
        name = str(self.scalars.get("sys/name", ""))
        return name if name not in {"", "Untitled"} else self.id

    def hold(self, points: Mapping[str, Sequence[tuple[int, float, float]]]) -> "Stored":
        """Return the run with series of points of time, value and step, those without points left out."""
        for path, found in points.items():
            if found:
                times, values, steps = zip(*found, strict=True)
                self.series[path] = Series(np.array(times, np.int64), np.array(values, float), np.array(steps, float))
        self.points = {path: len(each.times) for path, each in self.series.items()}
        return self


def make_broken_run(run_id: str, path: Path, error: Exception, hint: str, code: str) -> Stored:
    """Return a run that cannot be read, with the reason."""
    what = str(getattr(error, "strerror", None) or error)
    hint, code = getattr(error, "hint", hint), getattr(error, "code", code)
    fault = error if isinstance(error, SourceError) else SourceError(str(path), what, hint, code=code)
    return Stored(key=f"broken {run_id}", id=run_id, fault=fault)


def correct_local_times(run: Stored, hardware: Iterable[str], tz: str | None) -> Stored:
    """Return a run whose times are local with times of UTC where a zone is given, and notes on them.

    What was recorded in the hour that the zone has twice is left out: nobody can say in which of the two it was.
    """
    series, notes, left = dict(run.series), list(run.notes), 0
    for path, each in run.series.items() if tz else ():
        zone = load_zone(str(tz))
        once = fold_sizes(each.times, zone) == 0
        left += int((~once).sum())
        series[path] = each.taken(once)._replace(times=to_utc(each.times[once], zone))
    if left:
        notes.append(f"{left} points are left out, of an hour that {tz} has twice in autumn")
    firsts = [int(series[path].times.min()) for path in hardware if len(series[path].times)]
    off = min(firsts) - run.started if firsts and run.started is not None else 0
    if (whole := round(off / _QUARTER) * _QUARTER) and abs(off - whole) < _NEAR and abs(whole) <= 14 * _HOUR:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        why = "so times are local time of the machine that exported, taken for UTC: give its zone with --tz"
        if tz:
            why = f"with --tz {tz} as well: the export was made in another zone, or monitoring began that late"
        notes.append(f"the first sample lies {hours} the time at which the run was made, {why}")
    rejected = [*run.rejected, *([Rejected(reason=NO_TIME, rows=left, first_line=None)] if left else [])]
    return replace(run, series=series, notes=notes, rejected=rejected)
