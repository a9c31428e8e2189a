"""Prints how surely changes of a nightly job are found in its logs, over sixty nights of three jobs.

Run by hand: `python -m tests.benchmarks.nightly_logs [--seeds 10] [--starved 0.16]`. Every night logs a job whose
loader falls behind from night 31 on, one whose utilisation drifts, and one of which a single night lies apart and
nothing else happens. The logs go through import, analysis and the history; changes are told from the history as it was
that night. The goals are those of `tests.benchmarks.nightly`.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gpureport import read
from gpureport.cli.runs.run_sampling import sample_runs
from gpureport.columns import FloatArray
from gpureport.nightly.changes.change_detection import FEWEST
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_run as kept
from gpureport.nightly.history.night_history import History
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.testing import analyze
from tests.nightly.made import FIRST, day
from tests.truth import suite
from tests.truth.cards import A100
from tests.truth.script import Part as Stretch
from tests.truth.script import Script

NIGHTS, REGRESSION, OUTLIER, DRIFT = 60, 30, 45, 15
JOBS = ("regressed", "drifting", "quiet")
SHOWS = "gpu_utilization_ratio"
"""The figure in which a loader that falls a little behind shows."""
_FED, _SCATTER, _CORRELATION = 0.93, 0.008, 0.3
_DRIFTS, _APART = 0.0025, 0.3
"""What each night of the drift, and the night that lies apart, take off the time kernels run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A change that one night showed: the night, the job, the figure, and the night it is said to have begun in."""

    night: int
    job: str
    figure: str
    begun: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of one seed.

    Attributes:
        late: nights from the first of the regression to the one in which utilisation told it; None where it did not.
        drift: the same of the drift.
        outlier: alarms of the quiet job that its night apart explains.
        stray: nights in which the quiet job, or the regressed one before its regression, raised any other alarm.
        quiet: nights of these that could have.
    """

    late: int | None
    drift: int | None
    outlier: int
    stray: int
    quiet: int


def duties(job: str, rng: np.random.Generator, starved: float) -> FloatArray:
    """Return the share of time in which kernels run, a value a night: each resembles the one before."""
    shocks = rng.normal(0, _SCATTER * np.sqrt(1 - _CORRELATION**2), NIGHTS)
    values = np.zeros(NIGHTS)
    for place in range(NIGHTS):
        values[place] = _CORRELATION * values[place - 1] + shocks[place]
    values += _FED
    if job == "regressed":
        values[REGRESSION:] -= starved
    elif job == "drifting":
        values[DRIFT:] -= _DRIFTS * np.arange(1, NIGHTS - DRIFT + 1)
    else:
        values[OUTLIER] -= _APART
    return values


def script(job: str, duty: float, rng: np.random.Generator, *, starved: bool) -> Script:
    """Return a night of a job: start-up, a quarter of an hour of training, an end, none of them twice the same."""
    cpu, core = (91.0, 99.0) if starved else (30.0, 60.0)
    seconds, heat = float(rng.normal(900, 9)), float(rng.normal(0.8, 0.01))
    work = Stretch(seconds=seconds, step=0.35, duty=duty, heat=heat, cpu=cpu, core=core)
    before = Stretch(seconds=float(rng.normal(40, 3)), texture="still", cpu=9.0, core=97.0, iowait=3.0)
    after = Stretch(seconds=float(rng.normal(20, 2)), texture="still", cpu=4.0, core=30.0)
    return Script(name=job, parts=(before, work, after), card=A100, interval=5.0)


def night(folder: Path, number: int, shares: Mapping[str, FloatArray], rng: np.random.Generator) -> NightlyRecord:
    """Log every job of a night, and return what the history keeps of them."""
    parts: list[NightlyRun] = []
    for job in JOBS:
        starved = job == "regressed" and number >= REGRESSION
        where = folder / f"{job}-{number}"
        suite.log(where, script(job, float(shares[job][number]), rng, starved=starved), rng)
        (recording,) = read(where, as_one_run=True)
        (run,) = sample_runs([(recording, analyze(recording))])
        parts.append(replace(kept("gpu.csv", run), step=job))
    return NightlyRecord(date=day(number), label="", command="gpureport nightly", version="1", runs=tuple(parts))


def alarms(nights: list[NightlyRecord]) -> Iterator[Alarm]:
    """Yield every change on the night that showed it."""
    for count in range(FEWEST, len(nights) + 1):
        for trend in build_trends(nights[:count]):
            for change in trend.changes:
                if change.is_new:
                    begun = (FIRST.fromisoformat(change.date) - FIRST).days
                    yield Alarm(night=count - 1, job=trend.step, figure=trend.kind.name, begun=begun)


def scenario(seed: int, starved: float) -> Tally:
    """Play sixty nights of three jobs, from logs to alarms."""
    rng = np.random.default_rng([seed, 62])
    shares = {job: duties(job, rng, starved) for job in JOBS}
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "store")
        for number in range(NIGHTS):
            history.append(night(Path(folder), number, shares, rng))
        found = list(alarms(history.read_latest()))
    shown = [each for each in found if each.figure == SHOWS]
    late = (e.night - REGRESSION for e in shown if e.job == "regressed" and abs(e.begun - REGRESSION) <= 1)
    drift = (e.night - DRIFT for e in shown if e.job == "drifting" and e.begun >= DRIFT)
    apart = [each for each in found if each.job == "quiet" and 0 <= each.night - OUTLIER <= 2]
    calm = {each.night for each in found if each.job == "quiet" and each not in apart}
    early = {each.night for each in found if each.job == "regressed" and each.night < REGRESSION}
    return Tally(
        late=min(late, default=None),
        drift=min(drift, default=None),
        outlier=len(apart),
        stray=len(calm) + len(early),
        quiet=NIGHTS - FEWEST + 1 + REGRESSION - FEWEST + 1,
    )


def told(tallies: list[Tally]) -> Iterator[str]:
    """Yield what was found."""
    seeds = len(tallies)
    late = [each.late for each in tallies]
    soon = sum(each is not None and each <= 2 for each in late)
    yield f"regression               told within three nights in {soon} of {seeds}; nights after: {late}"
    drifts = [each.drift for each in tallies]
    yield f"drift                    told in {sum(each is not None for each in drifts)} of {seeds}; after {drifts}"
    yield f"outlier alone            {sum(each.outlier for each in tallies)} alarms in {seeds} seeds; goal: 0"
    stray, quiet = sum(each.stray for each in tallies), sum(each.quiet for each in tallies)
    yield f"quiet nights             {stray} of {quiet} with an alarm: {100 * stray / quiet:.2f} in a hundred; goal: 1"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--starved", type=float, default=0.16, help="what the regression takes off the time kernels run"
    )
    given = parser.parse_args()
    begin, tallies = time.process_time(), []
    for seed in range(given.seeds):
        tallies.append(scenario(seed, given.starved))
        print(f"after {seed + 1} seeds, {time.process_time() - begin:.0f} s of processors", *told(tallies), sep="\n")  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
