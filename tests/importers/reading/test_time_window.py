"""A part of a run holds its rows, and counts the others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.errors import SettingsError, SourceError
from gpureport.importers import CutReading, Labels, Reading, ReadOptions, Window, cut_recording, find_runs
from gpureport.importers.trackers.training_metrics import TrainingMetric, build_training_table
from gpureport.testing import Recording, Work
from tests.importers.written_logs import log


def recorded(folder: Path, options: ReadOptions | None = None) -> Recording:
    """Return a recording of two GPUs and 300 s from 09:00."""
    (folder / "gpu.csv").write_text(log(300, gpus=2))
    return reading(folder, options).recording()


def reading(folder: Path, options: ReadOptions | None = None) -> Reading:
    """Return that recording, not read yet."""
    return Reading(find_runs(folder / "gpu.csv")[0], options or ReadOptions(), Labels())


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("60", None, 240),
        ("1m", "2m30s", 90),
        ("0:01:00", "0:04:00", 180),
        ("2026-03-14T09:01", "2026-03-14 09:02", 60),
        (None, "1m", 60),
    ],
)
def test_a_part_is_named_by_elapsed_time_or_moment(
    tmp_path: Path, start: str | None, end: str | None, seconds: int
) -> None:
    """The start is part of it, the end is not."""
    part = cut_recording(recorded(tmp_path), Window(start=start, end=end))
    assert len(part.series) == 2 * seconds
    assert part.run.quality.accounted
    assert part.run.ended - part.run.started == pytest.approx((seconds - 1) * 1e6, abs=5e4)


def test_a_moment_is_one_of_the_zone_of_the_run(tmp_path: Path) -> None:
    """With a zone, 09:01 is the local time, and a stamp with another offset is the same moment."""
    whole = recorded(tmp_path, ReadOptions(tz="Asia/Kolkata"))
    local = cut_recording(whole, Window(start="2026-03-14T09:01"))
    assert local.run.started == cut_recording(whole, Window(start="2026-03-14T03:31+00:00")).run.started
    with pytest.raises(SettingsError, match="the run has none"):
        cut_recording(recorded(tmp_path), Window(start="2026-03-14T03:31+00:00"))


def test_what_is_no_part_is_refused(tmp_path: Path) -> None:
    """No time, an end before the start, and a part without rows are errors."""
    whole = recorded(tmp_path)
    for window in (Window(start="soon"), Window(start="2m", end="1m")):
        with pytest.raises(SettingsError):
            cut_recording(whole, window)
    with pytest.raises(SourceError, match="nothing was recorded"):
        cut_recording(whole, Window(start="10m", end="11m"))


@pytest.mark.parametrize("text", [f"{'9' * 306}s", f"{'9' * 306}d", "1e305", "inf", "nan", "0001-01-01T00:00"])
def test_a_time_beyond_all_is_refused(tmp_path: Path, text: str) -> None:
    """Microseconds of it are no number."""
    with pytest.raises((SettingsError, SourceError)):
        cut_recording(recorded(tmp_path, ReadOptions(tz="Asia/Kolkata")), Window(end=text))


@pytest.mark.parametrize("text", [f"{'9' * 290}s", "9999999999d"])
def test_an_end_beyond_the_run_is_its_end(tmp_path: Path, text: str) -> None:
    """However far it lies."""
    whole = recorded(tmp_path)
    assert cut_recording(whole, Window(end=text)).series.equals(whole.series)


def test_a_part_is_another_run(tmp_path: Path) -> None:
    """Its id follows from the run and the bounds, and it is the same read in one go or in batches."""
    recorded(tmp_path)
    part = CutReading(reading(tmp_path), Window(start="1m"))
    again = CutReading(reading(tmp_path), Window(start="1m"))
    assert part.run_id == again.run_id == part.run().id != reading(tmp_path).run_id
    assert sum(len(batch) for batch in part.batches()) == len(again.recording().series) == 480


@given(at=st.integers(1, 299))
def test_two_parts_are_the_whole(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    """No row is in both or in none, wherever a run is cut."""
    whole = recorded(tmp_path_factory.mktemp("cut"))
    parts = [cut_recording(whole, Window(end=f"{at}s")), cut_recording(whole, Window(start=f"{at}s"))]
    assert sum(len(part.series) for part in parts) == len(whole.series)
    assert sum(part.run.quality.rows_kept for part in parts) == whole.run.quality.rows_kept


def test_a_part_counts_its_own_work(tmp_path: Path) -> None:
    """Work that a throughput counted was of the whole run; what a person stated stays."""
    whole = recorded(tmp_path)
    stated = replace(whole, run=replace(whole.run, work=Work(amount=100.0, unit="steps")))
    assert cut_recording(stated, Window(start="1m")).run.work == stated.run.work
    times = whole.run.started + np.arange(300) * 1_000_000
    metric = TrainingMetric("it/s", times, np.arange(300), np.full(300, 2.0))
    counted = replace(stated, training=build_training_table([metric]))
    assert cut_recording(counted, Window(start="1m")).run.work is None


@pytest.mark.parametrize("text", ["inf", "nan", f"{'9' * 400}h", f"{'9' * 5000}:00:00"])
def test_a_time_without_end_is_none(tmp_path: Path, text: str) -> None:
    """Python reads `inf` as a number."""
    with pytest.raises(SettingsError, match=r"--from: .* is no time; give a time since the start"):
        cut_recording(recorded(tmp_path), Window(start=text))
