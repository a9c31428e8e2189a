"""What Neptune's clients and exporter really wrote, read from the folder GPUREPORT_TRACKERS names."""

import pytest

from tests.genuine import TRACKERS, needs_trackers
from tests.importers.trackers.tracked import codes, recording, recordings, state, times

DATA = TRACKERS / "neptune"
pytestmark = [pytest.mark.tracker, needs_trackers]
UTC, LOS_ANGELES = DATA / "exporter-sample" / "neptune2-utc", DATA / "exporter-sample" / "neptune2-los-angeles"


def test_the_export_of_los_angeles() -> None:
    right = recordings(UTC)
    for found in recordings(LOS_ANGELES):
        assert "first_sample_off" in codes(found)
    for found in recordings(LOS_ANGELES, tz="America/Los_Angeles"):
        assert "first_sample_off" not in codes(found)
        other = next(each for each in right if abs(each.run.started - found.run.started) < 1000)
        assert found.series.equals(other.series)
        assert found.training.equals(other.training)


def test_every_recorded_folder_is_read_and_what_went_wrong_is_told() -> None:
    before = state(DATA)
    expected = {"offline-sample": 8, "offline-clean": 2, "async-sample": 1, "scale-offline-sample": 1}
    for name, runs in expected.items():
        assert len(recordings(DATA / name)) == runs
    assert state(DATA) == before
    found = {each.run.stages[0].name: each for each in recordings(DATA / "offline-sample")}
    assert "monitoring_ended" in codes(found["gpulost"])
    devices = {name: len(each.run.gpus) for name, each in found.items()}
    assert (devices["cvd23"], devices["cvduuid"], devices["nopower"]) == (2, 4, 2)
    assert "operations_lost" in codes(recording(DATA / "async-sample"))


def test_neptune_scale_log_and_export_agree() -> None:
    log = recording(DATA / "scale-offline-sample")
    dump = recording(DATA / "exporter-sample" / "neptune3")
    for device in ("gpu:0", "gpu:1", "host"):
        pairs = zip(times(log, device), times(dump, device), strict=True)
        assert max(abs(one - other) for one, other in pairs) < 1000
        names = [name for name in log.series.column_names if not name.endswith("_per_second") and name != "timestamp"]
        assert log.rows_of(device).select(names).equals(dump.rows_of(device).select(names))
    assert log.run.params == dump.run.params
    assert log.run.gpus[0].model == "Simulated GPU 0"
