"""Sixty nights per seed with twenty figures: a regression, a drift, and one night that lies apart in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray
from gpureport.nightly.changes.change_detection import FEWEST, detect_changes, select_new_shifts
from gpureport.nightly.history.night_figures import BY_NAME
from tests.nightly.made import USUAL, course

NIGHTS, REGRESSION, OUTLIER, DRIFT = 60, 30, 45, 15
_REGRESSED = {"gpu_utilization_ratio": -0.06, "gpu_seconds_per_1000_work": 82.0, "waiting_ratio": 0.05}
"""What a loader with fewer workers does: 6 points less utilisation, a tenth more GPU time for the same work."""
_DRIFTING = ("gpu_temperature_celsius", 0.2)
"""A fan that clogs: a fifth of a degree a night."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of one seed.

    Attributes:
        late: nights from the first of the regression to the one that told it, by figure; None where nothing did.
        drift: the same of the drift.
        outlier: whether the night that lies apart raised an alarm by itself.
        alarms: nights with an alarm that nothing explains.
        quiet: nights that could have raised one.
    """

    late: Mapping[str, int | None]
    drift: int | None
    outlier: bool
    alarms: int
    quiet: int


def alarms(name: str, values: FloatArray) -> list[tuple[int, int]]:
    """Return every alarm as a job meets them night after night: the night, and where the change is said to begin."""
    kind = BY_NAME[name]
    found: list[tuple[int, int]] = []
    before = detect_changes(values[: FEWEST - 1], smallest=kind.smallest, relative=kind.relative, grain=kind.grain)
    for count in range(FEWEST, len(values) + 1):
        now = detect_changes(values[:count], smallest=kind.smallest, relative=kind.relative, grain=kind.grain)
        found += [(count - 1, step.place) for step in select_new_shifts(now, before)]
        before = now
    return found


def scenario(seed: int) -> Tally:
    """Play sixty nights with a regression, a drift and a night that lies apart."""
    rng = np.random.default_rng([seed, 60])
    late: dict[str, int | None] = {}
    drift, outlier, stray = None, False, 0
    for name, (_, spread) in USUAL.items():
        values = course(name, NIGHTS, rng)
        values[REGRESSION:] += _REGRESSED.get(name, 0.0)
        if name == _DRIFTING[0]:
            values[DRIFT:] += _DRIFTING[1] * np.arange(NIGHTS - DRIFT)
        values[OUTLIER] += 15 * abs(spread)
        told = alarms(name, values)
        if name in _REGRESSED:
            late[name] = next((at - REGRESSION for at, place in told if abs(place - REGRESSION) <= 1), None)
        elif name == _DRIFTING[0]:
            drift = next((at - DRIFT for at, place in told if place >= DRIFT), None)
        else:
            outlier |= any(OUTLIER <= at <= OUTLIER + 2 and place >= OUTLIER - 2 for at, place in told)
            stray += len({at for at, _ in told})
    return Tally(late=late, drift=drift, outlier=outlier, alarms=stray, quiet=NIGHTS - FEWEST + 1)


def quiet(seed: int, correlation: float) -> tuple[int, int]:
    """Return the nights with an alarm of any figure where nothing changes, and how many nights could have had one."""
    rng = np.random.default_rng([seed, 61])
    alarmed: set[int] = set()
    for name in USUAL:
        alarmed |= {at for at, _ in alarms(name, course(name, NIGHTS, rng, correlation))}
    return len(alarmed), NIGHTS - FEWEST + 1


def found_in_time(tallies: list[Tally], name: str) -> int:
    """Return in how many seeds the regression of a figure was told within three nights."""
    return sum(late is not None and late <= 2 for late in (tally.late[name] for tally in tallies))
