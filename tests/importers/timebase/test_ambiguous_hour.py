"""Rows in the hour that a zone has twice in autumn."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpureport.importers import ReadOptions
from tests.importers.written_logs import HEADER, read_text

NIGHT = datetime(2026, 10, 25)  # noqa: DTZ001 - a log has no zone


def _rows(first: float, last: float, every: int, gpus: int) -> list[str]:
    moments = [NIGHT + timedelta(seconds=second) for second in range(int(first * 3600), int(last * 3600), every)]
    return [
        f"{at:%Y/%m/%d %H:%M:%S}.000, {gpu}, NVIDIA L4, 90 %, 1024 MiB, 250.00 W"
        for at in moments
        for gpu in range(gpus)
    ]


def said(tmp_path: Path, *spans: tuple[float, float], zone: str | None = "Europe/Berlin") -> list[str]:
    """Return what is noted of the hour, of a log of two GPUs with a row a minute in some spans of hours."""
    rows = [row for first, last in spans for row in _rows(first, last, 60, 2)]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows, ""]), ReadOptions(tz=zone))
    return [note.partition(" in the hour")[0] for note in recording.run.quality.notes if "twice in autumn" in note]


@pytest.mark.parametrize("size", [0, 500, 4000])
@pytest.mark.parametrize(
    ("spans", "note"),
    [
        # begins within the hour: of the first or the second
        ([(2.25, 2.5)], ["30 rows lie"]),
        ([(2.25, 3.5)], ["90 rows lie"]),
        # goes on from before it: of the first
        ([(1.5, 2.5)], []),
        ([(1.5, 2.5), (4, 5)], []),
        # paused before it
        ([(0.5, 1.5), (2.25, 2.5)], ["30 rows lie"]),
        # goes on through one hour where the zone has two
        ([(1.5, 3.5)], ["120 rows lie"]),
        # the rows themselves tell
        ([(1.5, 3), (2, 3.5)], []),
        ([(3, 5)], []),
    ],
)
def test_the_hour_that_a_zone_has_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spans: list[tuple[float, float]], note: list[str], size: int
) -> None:
    """Where the order of the rows does not tell which of the two they are of, it is said how many they are."""
    if size:
        monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (size,))
    assert said(tmp_path, *spans) == note


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_zones_without_such_an_hour(tmp_path: Path, zone: str | None) -> None:
    """Nothing is said where no zone was named, or one that keeps its clock."""
    assert said(tmp_path, (2.25, 2.5), zone=zone) == []
