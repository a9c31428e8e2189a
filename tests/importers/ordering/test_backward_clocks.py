"""Why stamps run backwards, on plain numbers."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.ordering.backward_clocks import (
    DAYLIGHT_SAVING,
    RESTARTED,
    RowTimes,
    place_rows,
)
from gpureport.importers.timebase.row_order import RowOrder
from gpureport.importers.timebase.time_index import CoveredTime, TimeIndex

SECOND = 1_000_000
DAY = 86_400.0


def track(
    stamps: Sequence[float], devices: Sequence[int] | None = None, seams: Sequence[int] = (), keys: Sequence[int] = ()
) -> RowOrder:
    """Return rows at these seconds.

    Args:
        stamps: seconds.
        devices: device of each row, the same for all when None.
        seams: rows before which a line is no row.
        keys: what tells rows apart, all of them when empty.
    """
    length = len(stamps)
    lines = np.arange(length) + 2 + np.searchsorted(np.array(sorted(seams)), np.arange(length), "right")
    return RowOrder(
        lines.astype(np.int64),
        np.array([round(stamp * SECOND) for stamp in stamps], dtype=np.int64),
        np.array(devices or [0] * length, dtype=np.int64),
        np.array(keys or range(length), dtype=np.uint64),
    )


def causes(verdict: RowTimes) -> list[str]:
    """Return the causes of all steps."""
    return [step.cause for step in verdict.steps]


def local(text: str) -> float:
    """Return a local time in seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def around(fold: str, size: float, every: float = 1.0, ticks: int = 100) -> list[float]:
    """Return stamps of some ticks up to a moment, then of as many from `size` seconds before it."""
    end = local(fold)
    return [end - every * (0.7 + tick) for tick in reversed(range(ticks))] + [
        end - size + every * (tick + 0.3) for tick in range(ticks)
    ]


@pytest.mark.parametrize(
    ("fold", "size"),
    [
        ("2026-10-25T03:00", 3600),
        ("2026-11-01T02:00", 3600),
        ("2026-04-05T03:00", 3600),
        ("2026-04-05T02:00", 1800),
        ("2026-04-05T00:00", 3600),
    ],
    ids=["Berlin", "New York", "Sydney", "Lord Howe", "Santiago"],
)
@pytest.mark.parametrize("every", [0.1, 1.0, 30.0])
def test_a_fold_in_a_zone_nobody_named(fold: str, size: float, every: float) -> None:
    """Where zones set their clocks back, a fall of an hour less one interval is that, and undone exactly."""
    verdict = place_rows(track(around(fold, size, every)), None)
    assert causes(verdict) == [DAYLIGHT_SAVING]
    assert verdict.steps[0].shift == size * SECOND
    np.testing.assert_allclose(np.diff(verdict.times), every * SECOND, atol=2)


@pytest.mark.parametrize("moment", ["2026-10-24T03:00", "2026-07-05T03:00", "2026-10-25T12:00", "2026-10-25T02:47"])
def test_an_hour_back_at_another_time_is_no_fold(moment: str) -> None:
    """On another day, in summer, at noon or in the middle of an hour no zone folds."""
    assert DAYLIGHT_SAVING not in causes(place_rows(track(around(moment, 3600)), None))


def test_rows_of_several_gpus_fold_together() -> None:
    """A fold in the middle of a tick is one fold for all GPUs, and none of them is classified differently."""
    ticks = around("2026-10-25T03:00", 3600)
    rows = [(tick + gpu * 0.002, gpu) for tick in ticks for gpu in range(4)]
    rows[400:402] = [(tick + 3600, gpu) for tick, gpu in rows[400:402]]
    verdict = place_rows(track([tick for tick, _ in rows], [gpu for _, gpu in rows]), None)
    assert causes(verdict) == [DAYLIGHT_SAVING] * 4
    for gpu in range(4):
        np.testing.assert_allclose(np.diff(verdict.times[[own == gpu for _, own in rows]]), SECOND, atol=2)


@given(back=st.floats(2, 900), at=st.integers(20, 80))
@example(back=40.0, at=40)
def test_a_clock_set_back_goes_on(back: float, at: int) -> None:
    """After one fall the rows go on at their interval."""
    stamps = [float(tick) for tick in range(at)] + [tick - back for tick in range(at, at + 2000)]
    verdict = place_rows(track(stamps), None)
    assert causes(verdict) == [CLOCK_SET_BACK]
    np.testing.assert_allclose(np.diff(verdict.times), SECOND, atol=2)


def test_a_clock_that_is_set_back_every_hour() -> None:
    """Several small falls are no second writer."""
    stamps = [tick - 3.0 * (tick // 600) for tick in range(3000)]
    verdict = place_rows(track(stamps), None)
    assert causes(verdict) == [CLOCK_SET_BACK] * 4
    np.testing.assert_allclose(np.diff(verdict.times), SECOND, atol=2)


def test_all_gpus_are_shifted_alike() -> None:
    """A clock set back in the middle of a tick moves every GPU by the same, and gives one step for each."""
    rows = [(tick + gpu * 0.002 - (30 if tick * 4 + gpu >= 202 else 0), gpu) for tick in range(200) for gpu in range(4)]
    verdict = place_rows(track([tick for tick, _ in rows], [gpu for _, gpu in rows]), None)
    assert sorted(step.device for step in verdict.steps) == [0, 1, 2, 3]
    assert {step.cause for step in verdict.steps} == {CLOCK_SET_BACK}
    assert len({step.shift for step in verdict.steps}) == 1


def test_gpus_with_clocks_of_their_own_are_left_alone() -> None:
    """Rows of two machines whose clocks differ alternate, and neither runs back."""
    rows = [(tick - 5.0 * machine, machine) for tick in range(100) for machine in range(2)]
    verdict = place_rows(track([tick for tick, _ in rows], [own for _, own in rows]), None)
    assert verdict.steps == []
    assert verdict.times.tolist() == [round(tick * SECOND) for tick, _ in rows]


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_recordings_in_any_order_keep_their_stamps(order: tuple[int, ...]) -> None:
    """Recordings of different hours, one below the other with their headers, stand where their stamps say."""
    stamps = [5000.0 * part + tick for part in order for tick in range(300)]
    verdict = place_rows(track(stamps, seams=[300 * place for place in range(1, len(order))]), None)
    assert set(causes(verdict)) == {RESTARTED}
    assert verdict.times.tolist() == [round(stamp * SECOND) for stamp in stamps]


@pytest.mark.parametrize("days", [0.1, 3, 30, 400])
def test_an_earlier_recording_below_its_header_keeps_its_stamps(days: float) -> None:
    """However far apart two recordings are, a header between them says that they are two."""
    stamps = [local("2026-03-14") + second for second in (*np.arange(600) + days * DAY, *np.arange(600))]
    verdict = place_rows(track(stamps, seams=[600]), None)
    assert causes(verdict) == [RESTARTED]
    assert verdict.times.tolist() == [round(stamp * SECOND) for stamp in stamps]


@pytest.mark.parametrize("epoch", ["1970-01-01", "1980-01-01", "2000-01-01", "2009-01-01"])
def test_a_clock_that_lost_its_battery_goes_on(epoch: str) -> None:
    """Stamps from before there were such GPUs are no date, header or not."""
    stamps = [*(local("2026-03-14") + np.arange(100)), *(local(epoch) + np.arange(100))]
    verdict = place_rows(track(stamps, seams=[100]), None)
    assert causes(verdict) == [CLOCK_SET_BACK]
    np.testing.assert_allclose(np.diff(verdict.times), SECOND, atol=2)


@pytest.mark.parametrize(
    ("rows", "every", "steady", "back"),
    [(600, 1, 30, 5.3), (600, 1, 60, 7.3), (400, 1, 40, 4.5), (2000, 0.1, 100, 1.17), (2000, 0.1, 50, 0.77)],
)
def test_a_clock_that_is_often_set_back_is_no_second_writer(rows: int, every: float, steady: int, back: float) -> None:
    """Each stretch goes on with the one before it; as two writers' rows, each would lack those of the other."""
    verdict = place_rows(track([row * every - row // steady * back for row in range(rows)]), None)
    assert not verdict.several
    assert set(causes(verdict)) == {CLOCK_SET_BACK}
    np.testing.assert_allclose(np.diff(verdict.times), every * SECOND, atol=2)


@pytest.mark.slow
def test_many_recordings_in_reverse_order() -> None:
    """Each of twenty thousand recordings keeps its stamps, and each step back is named."""
    count = 20_000
    stamps = [local("2026-03-14") - 100.0 * part + second for part in range(count) for second in range(20)]
    log = track(stamps, seams=range(20, len(stamps), 20))
    verdict = place_rows(log, None)
    assert verdict.times.tolist() == log.stamps.tolist()
    assert len(verdict.steps) == count - 1


@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=9), min_size=1, max_size=30), st.data())
def test_what_was_before_is_counted_as_a_search_would(parts: list[list[int]], data: st.DataObject) -> None:
    """The stamps so far, and the time they cover, answer as a look at all of them would."""
    stamps, covered, moments = TimeIndex(), CoveredTime(), set[int]()
    for part in parts:
        stamps.add(np.array(part, dtype=np.int64))
        covered.add(min(part), max(part))
        moments |= set(range(min(part), max(part) + 1))
    low = data.draw(st.integers(-50, 350))
    high = low + data.draw(st.integers(0, 100))
    everything = [stamp for part in parts for stamp in part]
    assert stamps.count_within(low, high) == sum(low <= stamp <= high for stamp in everything)
    assert stamps.distance_to(low, high) == min(max(low - stamp, stamp - high, 0) for stamp in everything)
    times = np.arange(low, high + 1, dtype=np.int64)
    assert covered.count_within(times) == len(moments & set(times.tolist()))


@pytest.mark.parametrize("varied", [True, False])
@pytest.mark.parametrize("first", [0, 970])
def test_an_idle_gpu_says_the_same_after_its_clock_was_set_back(first: int, *, varied: bool) -> None:
    """Rows alike with stamps in whole seconds are a copy where they begin as a log began; others where they vary."""
    rows = [*range(1000), *range(first, first + 25)]
    verdict = place_rows(track([float(row) for row in rows], keys=[1 + row % 7 * varied for row in rows]), None)
    copied = varied or first == 0
    assert verdict.copies.tolist() == [False] * 1000 + [copied] * 25
    assert causes(verdict) == ([] if copied else [CLOCK_SET_BACK])


def test_a_clock_that_was_reset_goes_on() -> None:
    """A fall of years is a clock that lost its battery, not another recording."""
    stamps = [2_000 * DAY + tick for tick in range(100)] + [float(tick) for tick in range(100)]
    verdict = place_rows(track(stamps, seams=[100]), None)
    assert causes(verdict) == [CLOCK_SET_BACK]
    np.testing.assert_allclose(np.diff(verdict.times), SECOND, atol=2)


@given(rows=st.integers(3, 60), part=st.tuples(st.integers(0, 59), st.integers(1, 60)), times=st.integers(1, 3))
def test_what_is_appended_again_is_a_copy(rows: int, part: tuple[int, int], times: int) -> None:
    """Every row of a stretch that comes again is a copy, however long the stretch and however often it comes."""
    first = min(part[0], rows - 2)
    again = list(range(first, min(first + part[1] + 1, rows)))
    order = [*range(rows), *(again * times)]
    verdict = place_rows(track([float(tick) for tick in order], keys=[row + 1 for row in order]), None)
    assert verdict.copies.tolist() == [False] * rows + [True] * (len(again) * times)
    assert verdict.steps == []


def test_a_logger_that_goes_on_after_it_was_copied() -> None:
    """New rows after a whole copy are kept at their time."""
    order = [*range(50), *range(80)]
    verdict = place_rows(track([float(tick) for tick in order], keys=[row + 1 for row in order]), None)
    assert verdict.copies.tolist() == [False] * 50 + [True] * 50 + [False] * 30
    assert verdict.times.tolist() == [tick * SECOND for tick in order]


def test_a_copy_of_a_fold_is_a_copy() -> None:
    """A log that spans a fold, appended to itself, is shifted by one hour and not by two."""
    stamps = around("2026-10-25T03:00", 3600, 30, ticks=200)
    keys = [*range(1, 401)]
    verdict = place_rows(track(stamps * 2, keys=keys * 2), None)
    assert verdict.copies.tolist() == [False] * 400 + [True] * 400
    assert causes(verdict) == [DAYLIGHT_SAVING]
    np.testing.assert_allclose(np.diff(verdict.times[:400]), 30 * SECOND, atol=2)


@pytest.mark.parametrize("every", [0.1, 1.0, 2.0003])
@pytest.mark.parametrize("torn", [True, False])
def test_rows_of_two_writers_keep_their_stamps(every: float, *, torn: bool) -> None:
    blocks = [(60 * (block // 2), block % 2) for block in range(20)]
    stamps = [(first + tick + writer * 3.4) * every for first, writer in blocks for tick in range(60)]
    verdict = place_rows(track(stamps, seams=range(60, 1200, 60) if torn else ()), None)
    assert (verdict.several, causes(verdict)) == (True, [])
    np.testing.assert_allclose(verdict.times, np.array(stamps) * SECOND, atol=2)


def test_a_log_with_the_newest_row_first() -> None:
    """A log that was turned round keeps its stamps."""
    verdict = place_rows(track([float(tick) for tick in reversed(range(5000))]), None)
    assert verdict.times.tolist() == [tick * SECOND for tick in reversed(range(5000))]
    assert (verdict.steps, verdict.shuffled) == ([], 4999)


def test_the_end_of_daylight_saving_with_the_newest_row_first() -> None:
    """A log that was turned round is judged from its end, so that the doubled hour is found."""
    stamps = around("2026-10-25T03:00", 3600, 30, ticks=200)
    verdict = place_rows(track(stamps[::-1]), None)
    assert causes(verdict) == [DAYLIGHT_SAVING]
    np.testing.assert_allclose(np.diff(verdict.times), -30 * SECOND, atol=2)
    assert verdict.steps[0].row == 199


def test_a_turned_log_appended_to_itself() -> None:
    """Copies are found in it as well."""
    order = [*reversed(range(300))] * 2
    verdict = place_rows(track([float(row) for row in order], keys=[row + 1 for row in order]), None)
    assert sorted(verdict.copies.tolist()) == [False] * 300 + [True] * 300


@pytest.mark.slow
def test_shuffled_rows_are_given_up_soon() -> None:
    """Rows in no order at all keep their stamps, and no time is lost over them."""
    stamps = np.random.default_rng(1).permutation(200_000).astype(float).tolist()
    verdict = place_rows(track(stamps), None)
    assert verdict.times.tolist() == [round(stamp) * SECOND for stamp in stamps]
    assert verdict.shuffled > 50_000


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=80), st.data())
@settings(max_examples=200, deadline=None)
def test_any_stamps_get_a_place(stamps: list[float], data: st.DataObject) -> None:
    """Whatever the stamps, every row has a time and a writer, or is left out for a reason."""
    devices = data.draw(st.lists(st.integers(0, 2), min_size=len(stamps), max_size=len(stamps)))
    keys = data.draw(st.lists(st.integers(0, 5), min_size=len(stamps), max_size=len(stamps)))
    verdict = place_rows(track(stamps, devices, keys=keys), None)
    assert len(verdict.times) == len(verdict.copies) == len(stamps)
    assert not verdict.copies.all()
    assert all(0 <= step.row < len(stamps) for step in verdict.steps)
