"""Sixty nights as a job meets them: what is found, how soon, and what raises an alarm that should not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpureport import read
from gpureport.cli.runs.run_sampling import sample_runs
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_run as kept
from gpureport.nightly.history.night_history import History
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.testing import analyze
from tests.nightly import simulation as nightly
from tests.nightly.made import day
from tests.truth import suite

SEEDS = 10


@pytest.fixture(scope="module")
def tallies() -> list[nightly.Tally]:
    """What became of ten seeds."""
    return [nightly.scenario(seed) for seed in range(SEEDS)]


@pytest.mark.slow
def test_a_regression_is_told_within_three_nights(tallies: list[nightly.Tally]) -> None:
    """In nine seeds of ten or more, for each figure it shows in."""
    assert [name for name in tallies[0].late if nightly.found_in_time(tallies, name) < 0.9 * SEEDS] == []


@pytest.mark.slow
def test_a_slow_drift_is_told(tallies: list[nightly.Tally]) -> None:
    """In nine seeds of ten or more, before the sixty nights are over."""
    assert sum(tally.drift is not None for tally in tallies) >= 0.9 * SEEDS


@pytest.mark.slow
def test_an_outlier_alone_never_alarms(tallies: list[nightly.Tally]) -> None:
    """A night fifteen spreads apart in every figure alarms in none."""
    assert [tally.outlier for tally in tallies] == [False] * SEEDS


@pytest.mark.slow
def test_other_figures_stay_quiet(tallies: list[nightly.Tally]) -> None:
    """Sixteen figures that do not change, with an outlier in each, alarm in one night of a hundred at most."""
    assert sum(tally.alarms for tally in tallies) <= 0.01 * sum(tally.quiet for tally in tallies)


@pytest.mark.stress
@pytest.mark.parametrize("correlation", [0.3, 0.5])
def test_quiet_nights_stay_quiet(correlation: float) -> None:
    """Of nights in which nothing changes one in a hundred at most raises an alarm, of all figures together."""
    counted = [nightly.quiet(seed, correlation) for seed in range(20)]
    alarmed, possible = (sum(each) for each in zip(*counted, strict=True))
    assert alarmed <= 0.01 * possible


@pytest.mark.slow
def test_from_logs_to_a_change(tmp_path: Path) -> None:
    """Logs of a job that is well fed, then starved by its CPU: the night it began is told, with its param."""
    rng = np.random.default_rng(8)
    history = History(tmp_path / "store")
    for number in range(16):
        name = "starved_by_cpu" if number >= 12 else "steady"
        folder = tmp_path / str(number)
        folder.mkdir()
        (truth,) = suite.write(folder, [(name, 5.0)], int(rng.integers(1_000_000)))
        (recording,) = read(folder / truth["run"], as_one_run=True)
        (run,) = sample_runs([(recording, analyze(recording))])
        part = kept("gpu.csv", run)
        history.append(_night(number, part))
    changed = {trend.kind.name: trend.changes for trend in build_trends(history.read_latest())}
    (found,) = changed["gpu_utilization_ratio"]
    assert (found.date, found.verdict) == (day(12), "worse")
    assert [each.key for each in found.changed_params if each.key == "loader"] == ["loader"]


def _night(number: int, part: NightlyRun) -> NightlyRecord:
    loader = "slow" if number >= 12 else "fast"
    # the suite draws a card for each run; the job of a night stays on one
    same = replace(part, model="one card", params=(("loader", loader),))
    return NightlyRecord(date=day(number), label="", command="gpureport nightly", version="1", runs=(same,))
