"""Clocks that step back, tick unevenly, or stop for a while."""

from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpureport.columns import IntArray
from gpureport.importers.ordering.backward_clocks import RowTimes, place_rows
from gpureport.importers.timebase import zones
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.timebase.row_order import RowOrder

SECOND = 1_000_000


def seconds(*stamps: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return stamps in microseconds."""
    return np.array([round(stamp * SECOND) for stamp in stamps], dtype=np.int64)


def placed(stamps: IntArray, zone: ZoneInfo | None = None) -> RowTimes:
    """Return where the rows of one device belong, no two of them alike."""
    rows = np.arange(len(stamps), dtype=np.int64)
    return place_rows(RowOrder(rows + 2, stamps, np.zeros_like(rows), rows.astype(np.uint64)), zone)


def test_a_step_back_becomes_one_interval() -> None:
    """After the clock was set back, time goes on by one interval, and the step is reported."""
    verdict = placed(seconds(0, 1, 2, 3, 0.6, 1.6, 2.6))
    assert verdict.times.tolist() == seconds(0, 1, 2, 3, 4, 5, 6).tolist()
    (step,) = verdict.steps
    assert (step.step, step.shift, step.row) == (-2.4 * SECOND, 3.4 * SECOND, 4)


def test_jitter_is_no_step() -> None:
    """A stamp some milliseconds early is kept at the time before it, and no step is reported."""
    verdict = placed(seconds(0, 1, 2, 1.99, 3))
    assert verdict.times.tolist() == seconds(0, 1, 2, 2, 3).tolist()
    assert verdict.steps == []


def test_daylight_saving_needs_no_shift_when_the_zone_is_known() -> None:
    """In a known zone the doubled hour is told apart, before, within and after it."""
    zone = zones.load_zone("Europe/Berlin")
    local = seconds(3590, 3600 - 1, 0, 1, 3600 + 1) + 1_792_893_600 * SECOND  # 2026-10-25 02:00 local
    verdict = placed(local, zone)
    assert np.diff(verdict.times).tolist() == seconds(9, 1, 1, 3600).tolist()
    assert [step.cause for step in verdict.steps] == ["daylight saving"]


def test_a_long_silence_is_a_gap() -> None:
    """At 1 s a silence of more than 5 s is a gap; a hiccup of 3 s is not."""
    clock = Clock("gpu:0")
    clock.accept(seconds(*range(10), 12, *range(13, 20), 40, 41))
    assert [(gap.start, gap.end) for gap in clock.gaps()] == [(19 * SECOND, 40 * SECOND)]


@pytest.mark.parametrize("piece", [7, 1000])
def test_a_slower_stretch_is_no_row_of_gaps(piece: int) -> None:
    """Ten silences in a row with a row between them are another pace, however the log is cut; a longer one is a gap."""
    clock = Clock("gpu:0")
    times = seconds(*range(200), *range(200, 320, 10), *range(700, 820, 10), *range(820, 900))
    for begin in range(0, len(times), piece):
        clock.accept(times[begin : begin + piece])
    assert [(gap.start, gap.end) for gap in clock.gaps()] == [(310 * SECOND, 700 * SECOND)]


@pytest.mark.parametrize("piece", [1, 7, 9000])
def test_pieces_do_not_change_what_is_seen(piece: int) -> None:
    """A silence behind the first row is a gap by the interval that shows later, also of a log read row by row."""
    clock = Clock("gpu:0")
    times = seconds(0, *range(600, 20_600), 20_599)
    for begin in range(0, len(times), piece):
        clock.accept(times[begin : begin + piece])
    assert [(gap.start, gap.end) for gap in clock.gaps()] == [(0, 600 * SECOND)]
    assert (clock.duplicates, clock.interval) == (1, 1.0)


def test_equal_stamps_are_counted() -> None:
    """Rows that share a stamp are duplicates, kept and counted."""
    clock = Clock("gpu:0")
    clock.accept(seconds(0, 1, 1, 2, 2, 2))
    assert (clock.duplicates, clock.interval) == (3, 1.0)


def test_bunches_are_told_from_even_rows() -> None:
    """Four rows within milliseconds, then a second without, are a bunch; fast even rows are not."""
    bunched, even = Clock("gpu:0"), Clock("gpu:0")
    bunched.accept(seconds(*(tick + gpu / 1000 for tick in range(30) for gpu in range(4))))
    even.accept(seconds(*(row * 0.007 for row in range(300)), 9, 12))
    assert bunched.bunched()
    assert not even.bunched()


def test_a_clock_set_back_by_seconds_is_not_daylight_saving() -> None:
    """In the doubled hour only a step of about an hour is its end."""
    zone = zones.load_zone("Europe/Berlin")
    local = seconds(100, 101, 97, 98) + 1_792_893_600 * SECOND
    verdict = placed(local, zone)
    assert np.diff(verdict.times).tolist() == seconds(1, 1, 1).tolist()
    assert [step.cause for step in verdict.steps] == ["clock set back"]


def test_two_autumns() -> None:
    """The doubled hour of the next year starts with its first half again."""
    zone = zones.load_zone("Europe/Berlin")
    autumns = [1_792_893_600, 1_792_893_600 + 371 * 86_400]  # 2026-10-25 and 2027-10-31, 02:00 local
    local = np.concatenate([seconds(0, 1800, 3599, 0, 1800, 3599, 7200) + autumn * SECOND for autumn in autumns])
    verdict = placed(local, zone)
    times = verdict.times
    assert [step.cause for step in verdict.steps] == ["daylight saving"] * 2
    assert {step.shift for step in verdict.steps} == {0}
    assert (times[6] - times[0]) == (times[13] - times[7]) == 10_800 * SECOND
