"""Prints how surely changes of a nightly job are found, how often quiet nights raise an alarm, and what a year costs.

Run by hand: `python -m tests.benchmarks.nightly [--seeds 10] [--quiet 20]`. Sixty nights a seed with twenty figures: a
regression at night 31, a slow drift of another figure, and one night that lies apart in all of them. The goals are a
regression found within three nights in nine of ten, at most one alarm in a hundred quiet nights over all figures
together, and none by the outlier.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpureport.columns import FloatArray
from gpureport.nightly.changes.change_detection import FEWEST, detect_changes, select_new_shifts
from gpureport.nightly.history.night_figures import BY_NAME
from gpureport.nightly.history.night_history import History
from tests.benchmarks.report_cpu import cpu_seconds, large_log
from tests.nightly.made import USUAL, course, year

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


def told(seeds: int) -> Iterator[str]:
    """Yield what was found of the scenario."""
    tallies = [scenario(seed) for seed in range(seeds)]
    for name in _REGRESSED:
        late = sorted(each for tally in tallies if (each := tally.late[name]) is not None)
        yield f"{name:28} told within three nights in {found_in_time(tallies, name)} of {seeds}; nights after: {late}"
    drifts = [tally.drift for tally in tallies]
    yield f"drift                        told in {sum(each is not None for each in drifts)} of {seeds}; after {drifts}"
    yield f"outlier alone                told in {sum(tally.outlier for tally in tallies)} of {seeds}; goal: 0"
    stray = sum(tally.alarms for tally in tallies)
    yield f"other figures                {stray} alarms in {seeds * tallies[0].quiet} nights"


def calm(seeds: int) -> Iterator[str]:
    """Yield how often quiet nights raised an alarm."""
    for correlation in (0.0, 0.3, 0.5):
        counted = [quiet(seed, correlation) for seed in range(seeds)]
        alarmed, possible = (sum(each) for each in zip(*counted, strict=True))
        yield (
            f"quiet, correlation {correlation}       {alarmed} nights of {possible} with an alarm of any of "
            f"{len(USUAL)} figures: {100 * alarmed / possible:.2f} in a hundred; goal: 1"
        )


def cost() -> Iterator[str]:
    """Yield what the pages of a year take, beside the report of one night of 8 GPUs over two hours, and their size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = History(folder / "store")
        for each in year():
            history.append(each)
        site, log = folder / "site", large_log(folder)
        program = [sys.executable, "-m", "gpureport"]
        pages = cpu_seconds([*program, "nightly", "--store", str(folder / "store"), "--site", str(site)])
        report = cpu_seconds([*program, "report", str(log), "-o", str(folder / "report.html")])
        index = (site / "index.html").stat().st_size
        size = sum(path.stat().st_size for path in site.rglob("*.html"))
    yield f"365 nights of {len(USUAL)} figures: {pages:.1f} s of processors, from the history to the pages"
    yield f"  {pages / report:.1f} times the report of one night, {report:.1f} s"
    yield f"  index {index / 1000:.0f} kB of 300, all pages {size / 1000:.0f} kB"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quiet", type=int, default=10, help="quiet series of sixty nights")
    given = parser.parse_args()
    for lines in (told(given.seeds), calm(given.quiet), cost()):
        for line in lines:
            print(line, flush=True)  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
