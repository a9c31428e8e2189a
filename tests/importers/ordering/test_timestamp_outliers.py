"""Damaged dates, wherever they stand in a log."""

from pathlib import Path

import numpy as np
import pytest
from gpureport.importers.ordering.row_placement import RowPlacement

import gpureport
from gpureport.testing import Recording, Rejected
from tests.support.logs import HEADER, row

SECOND = 1_000_000
DAY = 86_400


def read_text(folder: Path, text: str) -> Recording:
    """Return the run that a log of this text holds."""
    (folder / "gpu.csv").write_text(text)
    (run,) = gpureport.read(folder / "gpu.csv")
    return run


@pytest.mark.parametrize("at", [0, 1, *range(33, 40), 299])
@pytest.mark.parametrize("gpus", [1, 2])
def test_one_wrong_date_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, gpus: int) -> None:
    """First or last of the log or of a piece: the row is rejected and no other row is moved."""
    monkeypatch.setattr("gpureport.importers.source_text.pieces.__defaults__", (3000,))
    rows = [row(second, gpu) for second in range(300) for gpu in range(gpus)]
    rows[at] = rows[at].replace("2026", "2036")
    quality = read_text(tmp_path, "\n".join([HEADER, *rows, ""])).run.quality
    assert quality.rejected == (Rejected(reason="stamp out of sequence", rows=1, first_line=at + 2),)
    assert quality.clock_steps == ()
    assert quality.gaps == ()
    assert quality.accounted


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("at", [3, 50, 98, 99])
def test_sections_of_any_size(size: int, at: int) -> None:
    """A section may be a single row, as where a header stands above each."""
    stamps = np.arange(100, dtype=np.int64) * SECOND
    stamps[at] += 30 * DAY * SECOND
    placement = RowPlacement(None, pytest.fail)
    found = [
        placement.find_outliers(
            stamps[start : start + size], np.zeros(len(stamps[start : start + size]), dtype=np.int64)
        )
        for start in range(0, 100, size)
    ]
    assert np.flatnonzero(np.concatenate(found)).tolist() == [at]


@pytest.mark.parametrize(
    "stamps",
    [
        [0, 2 * DAY + 7000, 2 * DAY + 7001, 2 * DAY + 7002],
        [0, 1, 2, 3 * DAY + 500],
        [0, 1, 2, 3 * DAY + 500, 3 * DAY + 501, 3 * DAY + 502],
        [0, 2 * DAY, 3 * DAY, 4 * DAY],
        [0, 2 * DAY, 2 * DAY + 3600, 2 * DAY + 7200],
        [30 * DAY, 30 * DAY + 1, 0, 1],
        [0, 30 * DAY],
    ],
    ids=["one before", "one after", "pause", "daily", "hourly", "earlier below", "two rows"],
)
@pytest.mark.parametrize("size", [1, 2, 10])
def test_pauses_of_days_are_no_damage(stamps: list[int], size: int) -> None:
    """A row alone before or after a pause is a row, unless its time of day goes on to the second."""
    placement, times = RowPlacement(None, pytest.fail), np.array(stamps, dtype=np.int64) * SECOND
    devices = np.zeros(size, dtype=np.int64)
    for start in range(0, len(times), size):
        part = times[start : start + size]
        assert not placement.find_outliers(part, devices[: len(part)]).any()


def test_a_leap_of_whole_days_that_lasts_is_no_damage() -> None:
    """Should a pause end just on the beat, a row at the end of a section is lost at most."""
    stamps = (np.arange(100) + np.where(np.arange(100) < 50, 0, 3 * DAY)) * SECOND
    placement, devices = RowPlacement(None, pytest.fail), np.zeros(1, dtype=np.int64)
    assert sum(int(placement.find_outliers(stamps[at : at + 1], devices).sum()) for at in range(100)) <= 1
