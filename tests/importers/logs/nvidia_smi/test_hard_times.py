"""Stamps that run back, repeat, pause, or stand at the ends of the calendar."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpureport.errors import SettingsError
from gpureport.importers import ReadOptions
from tests.importers.accounts import START, kept, lines, percents, rejected, seconds
from tests.importers.two_writers import Line, interleaved
from tests.importers.written_logs import HEADER, read_text, row, stamp

NAMED = "timestamp, name, utilization.gpu [%], memory.used [MiB]"


def clock(text: str, util: int = 9) -> str:
    """Return a row under HEADER with a stamp of its own."""
    return f"{text}, 0, NVIDIA L4, {util} %, 1 MiB, 5.00 W"


def moments(start: str, end: str) -> list[str]:
    """Return the stamps of a log of one row a second on the test's day."""
    first, last = (datetime.fromisoformat(f"2026-03-14 {text}") for text in (start, end))
    ticks = range(round((last - first).total_seconds()) + 1)
    return [f"{first + timedelta(seconds=tick):%Y/%m/%d %H:%M:%S}.000" for tick in ticks]


def anonymous(mark: int, start: float, ticks: int) -> list[Line]:
    """Return what one of several processes writes that name the same model: `mark` GB in use."""
    values = [(start + tick, 7919 * (tick + 1) * mark % 101) for tick in range(ticks)]
    rows = [(at, f"{stamp(at)}, NVIDIA A100-SXM4-80GB, {util} %, {mark}000 MiB") for at, util in values]
    return [(start, NAMED), *rows]


def test_two_writers_with_buffers_of_4096_bytes(tmp_path: Path) -> None:
    """Blocks of two processes that watch GPUs of one name come apart; torn lines become nobody's rows."""
    logs = [anonymous(1, 0, 2000), anonymous(2, 20.37, 2000)]
    recording = read_text(tmp_path, interleaved(logs, 4096))
    assert [device.id for device in recording.run.devices] == ["writer_1/gpu:0", "writer_2/gpu:0"]
    assert kept(recording) > 0.96 * 4000
    for mark, log in enumerate(logs, 1):
        device = f"writer_{mark}/gpu:0"
        written = {round(at, 3): text.split(", ")[2] for at, text in log[1:]}
        found = dict(zip(seconds(recording, device), percents(recording, device), strict=True))
        assert found == {at: int(written[at].removesuffix(" %")) for at in found}
    reasons = {reason for reason, _, _ in rejected(recording) if not reason.startswith("malformed")}
    assert reasons == {"torn line", "wrong number of cells"}
    salvaged, note = recording.run.quality.notes
    assert "in a whole row: the row is kept" in salvaged
    assert note.startswith("2 writers wrote to the log at once")


def test_a_clock_set_back_by_eleven_minutes(tmp_path: Path) -> None:
    """18:26:57 after 18:37:44 without a break is a clock that was set, and the log goes on by one interval."""
    stamps = [*moments("18:20:00", "18:37:44"), *moments("18:26:57", "18:49:59")]
    recording = read_text(tmp_path, lines(HEADER, *map(clock, stamps)))
    assert (kept(recording), rejected(recording)) == (len(stamps), [])
    (step,) = recording.run.quality.clock_steps
    assert (step.cause, step.step_seconds, step.shift_seconds) == ("clock set back", -647, 648)
    assert recording.run.ended - recording.run.started == (len(stamps) - 1) * 1_000_000


def test_a_fold_in_a_known_zone(tmp_path: Path) -> None:
    """With the zone given, the hour that comes twice is told apart and every row is one second after the one before."""
    local = [datetime(2026, 10, 25, 2, 30) + timedelta(seconds=tick) for tick in range(1800)]  # noqa: DTZ001 - local stamps
    second = [datetime(2026, 10, 25, 2) + timedelta(seconds=tick) for tick in range(5400)]  # noqa: DTZ001 - local stamps
    rows = [clock(f"{tick:%Y/%m/%d %H:%M:%S}.000", at % 101) for at, tick in enumerate([*local, *second])]
    recording = read_text(tmp_path, lines(HEADER, *rows), ReadOptions(tz="Europe/Berlin"))
    assert (kept(recording), recording.run.timezone) == (7200, "Europe/Berlin")
    first = datetime.fromisoformat("2026-10-25T02:30+02:00").timestamp() * 1e6
    assert seconds(recording, start=round(first)) == list(range(7200))
    assert percents(recording) == [at % 101 for at in range(7200)]
    assert [step.cause for step in recording.run.quality.clock_steps] == ["daylight saving"]


def test_the_hour_that_is_skipped_in_spring(tmp_path: Path) -> None:
    """In UTC the minutes before and after it follow each other; without a zone an hour has no samples."""
    rows = [clock(f"2026/03/29 {hour:02d}:{minute:02d}:00.000") for hour in (1, 3) for minute in range(60)]
    known = read_text(tmp_path, lines(HEADER, *rows), ReadOptions(tz="Europe/Berlin"))
    assert (kept(known), known.run.ended - known.run.started, known.run.quality.gaps) == (120, 119 * 60_000_000, ())
    unknown = read_text(tmp_path, lines(HEADER, *rows)).run
    assert [(gap.end - gap.start) / 60e6 for gap in unknown.quality.gaps] == [61]


def test_rows_in_the_hour_that_is_skipped_tell_that_the_zone_is_another(tmp_path: Path) -> None:
    """They would lie on those of the next hour; one damaged stamp is no reason to refuse the log."""
    rows = [clock(f"2026/03/29 {hour:02d}:{minute:02d}:00.000") for hour in (1, 2, 3) for minute in range(60)]
    with pytest.raises(SettingsError, match="Europe/Berlin has no 2026-03-29 02:00:00"):
        read_text(tmp_path, lines(HEADER, *rows), ReadOptions(tz="Europe/Berlin"))
    damaged = read_text(tmp_path, lines(HEADER, *rows[:61], *rows[120:]), ReadOptions(tz="Europe/Berlin"))
    assert kept(damaged) == 121
    tick = [line.replace(", 0, ", f", {gpu}, ", 1) for line in rows[:61] + rows[120:] for gpu in range(8)]
    assert kept(read_text(tmp_path, lines(HEADER, *tick), ReadOptions(tz="Europe/Berlin"))) == 8 * 121


def test_gaps_are_no_samples(tmp_path: Path) -> None:
    """86 s and 181 s without rows are gaps of these lengths; 123,312 s are one too."""
    breaks = [*range(20), *range(105, 120), *range(300, 320)]
    recording = read_text(tmp_path, lines(HEADER, *map(row, breaks), clock("2026/03/15 19:20:31.000")))
    spans = [(gap.start - START, gap.end - gap.start) for gap in recording.run.quality.gaps]
    assert spans == [(19_000_000, 86_000_000), (119_000_000, 181_000_000), (319_000_000, 123_312_000_000)]
    assert kept(recording) == 56
    assert recording.run.quality.coverage_ratio == pytest.approx((19 + 14 + 19) / (123_312 + 319))


def test_rows_of_one_tick_share_a_stamp(tmp_path: Path) -> None:
    """GPUs that have the same stamp are no duplicates of each other."""
    recording = read_text(tmp_path, lines(HEADER, *(row(second, gpu) for second in range(74) for gpu in range(4))))
    assert (kept(recording), recording.run.quality.duplicates) == (296, 0)


def test_a_gpu_with_the_same_stamp_again(tmp_path: Path) -> None:
    """Rows that share device and stamp but not their values are all kept, in their order, and counted."""
    recording = read_text(tmp_path, lines(HEADER, *(row(second // 2, util=second) for second in range(74))))
    assert (kept(recording), recording.run.quality.duplicates) == (74, 37)
    assert percents(recording) == list(range(74))


def test_stamps_that_are_all_the_same(tmp_path: Path) -> None:
    """A log of one moment has rows, no interval and no coverage."""
    recording = read_text(tmp_path, lines(HEADER, *(row(0, util=value) for value in range(30))))
    assert (kept(recording), percents(recording)) == (30, list(range(30)))
    quality = recording.run.quality
    assert (quality.duplicates, quality.coverage_ratio, recording.run.interval) == (29, None, None)


def test_a_log_of_milliseconds(tmp_path: Path) -> None:
    """At 5 ms every reading comes twenty times: all rows are kept as written."""
    rows = [f"{stamp(tick * 0.005)}, 0, {tick // 20 % 100} %, {100 + tick // 20 % 7}.00 W" for tick in range(9_620)]
    recording = read_text(tmp_path, lines("timestamp, index, utilization.gpu [%], power.draw [W]", *rows))
    assert (kept(recording), recording.run.interval, recording.run.quality.duplicates) == (9_620, 0.005, 0)
    assert percents(recording) == [tick // 20 % 100 for tick in range(9_620)]
    assert recording.run.quality.gaps == ()


@pytest.mark.parametrize(
    ("day", "zone", "began"),
    [
        ("1970/01/01 00", None, 0),
        ("1970/01/01 00", "Europe/Berlin", -3_600),
        ("2038/01/19 03", None, 2_147_482_800),
        ("2100/02/28 23", None, 4_107_538_800),
    ],
)
def test_the_ends_of_the_calendar(tmp_path: Path, day: str, zone: str | None, began: int) -> None:
    """The first day of the epoch, the last of 32 bits, and a year 2100 that has no leap day are days like others."""
    text = lines(HEADER, *(clock(f"{day}:{second // 60:02d}:{second % 60:02d}.000") for second in range(0, 3600, 60)))
    recording = read_text(tmp_path, text, ReadOptions(tz=zone))
    assert (kept(recording), recording.run.started, recording.run.interval) == (60, began * 1_000_000, 60)


def test_a_leap_second(tmp_path: Path) -> None:
    """23:59:60 is the moment in which the next day begins, as clocks without leap seconds have it."""
    stamps = [f"2016/12/31 23:59:{second}.000" for second in range(57, 61)] + ["2017/01/01 00:00:01.000"]
    recording = read_text(tmp_path, lines(HEADER, *map(clock, stamps)))
    start = datetime.fromisoformat("2016-12-31T23:59:57+00:00").timestamp() * 1e6
    assert (kept(recording), seconds(recording, start=round(start))) == (5, [0, 1, 2, 3, 4])


def test_a_date_that_never_was(tmp_path: Path) -> None:
    """30 February, hour 24 and second 61 are damaged stamps."""
    wrong = [clock(text) for text in ("2026/02/30 09:00:00.000", "2026/03/14 24:00:00.000", "2026/03/14 09:00:61.000")]
    recording = read_text(tmp_path, lines(HEADER, row(0), *wrong, row(1)))
    assert (kept(recording), rejected(recording)) == (2, [("malformed timestamp", 3, 3)])
