"""Damaged dates, wherever they stand in a log."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpureport.testing import Rejected
from tests.support.logs import HEADER, read_text, row

DAY = 86_400


@pytest.mark.parametrize("at", [2, *range(33, 40), 297])
@pytest.mark.parametrize("gpus", [1, 2])
def test_one_wrong_date_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, gpus: int) -> None:
    monkeypatch.setattr("gpureport.importers.source_text.PIECE_BYTES", 3000)
    rows = [row(second, gpu) for second in range(300) for gpu in range(gpus)]
    rows[at] = rows[at].replace("2026", "2036")
    quality = read_text(tmp_path, "\n".join([HEADER, *rows, ""])).run.quality
    assert quality.rejected == (Rejected(reason="stamp out of sequence", rows=1, first_line=at + 2),)
    assert quality.clock_steps == ()
    assert quality.gaps == ()
    assert quality.accounted


@pytest.mark.parametrize(
    "seconds",
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
def test_pauses_of_days_are_no_damage(tmp_path: Path, seconds: list[int]) -> None:
    stamps = [datetime(2026, 3, 14, 9) + timedelta(seconds=second) for second in seconds]
    rows = [f"{stamp:%Y/%m/%d %H:%M:%S}.000, 0, 90 %" for stamp in stamps]
    quality = read_text(tmp_path, "\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""])).run.quality
    assert (quality.rejected, quality.rows_kept) == ((), len(seconds))
