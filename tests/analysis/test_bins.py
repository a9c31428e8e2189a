"""Bins over a window with long stretches that nobody sampled."""

import numpy as np

from gpureport.analysis import analyze
from gpureport.analysis.bins import grid
from gpureport.analysis.cells import cells_by_device
from gpureport.findings import Interval
from tests.builders import recording, steps

DAY = 86_400


def paused() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return stamps of ten minutes, a pause of ten days, and twenty minutes more."""
    return np.concatenate([np.arange(600.0), np.arange(1200.0) + 10 * DAY])


def test_a_pause_of_days_costs_no_bins() -> None:
    """An hour of the pause keeps its bins, the rest has none, and every row still has the bin of its time."""
    run = recording(util=steps((50, 1800)), times=paused())
    cells = list(cells_by_device(run).values())
    bins = grid(Interval(run.run.started, run.run.ended), cells)
    assert bins.count < 2 * 3600
    places = bins.places(cells[0].times)
    assert np.diff(places).max() <= 3601
    starts, ends = bins.edges(places, "right"), bins.edges(places + 1, "left")
    assert (np.abs(starts - cells[0].times) <= 1_000_000).all()
    assert (np.abs(ends - cells[0].times) <= 1_000_000).all()


def test_findings_after_a_pause_are_where_they_were() -> None:
    """A phase of low use after the pause is found at its own time."""
    run = recording(util=steps((97, 900), (40, 600), (97, 300)), times=paused())
    (found,) = [finding for finding in analyze(run).findings if finding.kind == "low_util_cause_unknown"]
    (when,) = found.intervals
    start = run.run.started + (10 * DAY + 300) * 1_000_000
    assert abs(when.start - start) < 30_000_000
    assert abs(when.end - start - 600_000_000) < 30_000_000
