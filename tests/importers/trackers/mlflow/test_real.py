"""What is read is what MLflow holds, to the last point, and stands where it was measured."""

import importlib
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from tests.genuine import TRACKERS, needs_trackers
from tests.importers.trackers.mlflow import real
from tests.importers.trackers.mlflow.conftest import Recorded
from tests.importers.trackers.tracked import codes, column, recording, recordings, refused, state, times
from tests.support.program import Program

pytestmark = pytest.mark.tracker
_CYCLE = 80_000_000_000
"""Bytes after which the clock in gpu 0's memory begins anew."""


def test_a_database_is_read_as_its_own_client_reads_it(recorded: Recorded, tmp_path: Path) -> None:
    known = real.oracle(f"sqlite:///{real.copied(recorded.database, tmp_path)}")
    before = state(recorded.database.parent)
    found = real.contents(str(recorded.database), known)
    assert state(recorded.database.parent) == before
    assert found == real.expected(known)
    assert max(len(points) for run in found.values() for points in run["metrics"].values()) == 60_000


def test_a_folder_is_read_as_its_own_client_reads_it(recorded: Recorded) -> None:
    before = state(recorded.folder)
    # a run of three seconds may have ended before its first point
    known = {run: each for run, each in real.oracle(f"file://{recorded.folder}").items() if each["metrics"]}
    assert real.contents(str(recorded.folder), known) == real.expected(known)
    assert state(recorded.folder) == before


@pytest.mark.slow
@pytest.mark.smoke
def test_a_server_is_read_as_its_own_client_reads_it(server: str, recorded: Recorded, tmp_path: Path) -> None:
    known = real.oracle(f"sqlite:///{real.copied(recorded.database, tmp_path)}")
    assert real.contents(f"mlflow:{server}", known) == real.expected(known)


def test_a_server_finds_runs_by_its_own_filters(server: str) -> None:
    found = recordings(f"mlflow:{server}", filter="params.interval = '1'")
    assert sorted(each.run.name for each in found) == ["every second", "mean of four"]
    assert [each.run.name for each in recordings(f"mlflow:{server}#long", children=True)] == ["long", "nested"]
    _assert_refusals(server)


def _assert_refusals(server: str) -> None:
    assert refused(f"mlflow:{server}", filter="params.interval > 3").code == "bad_filter"
    assert refused(f"mlflow:{server}#{'0' * 32}").code == "unknown_run"
    error = refused(f"mlflow:{server}", experiment="recordet")
    assert (error.code, "recorded" in error.hint) == ("no_such_experiment", True)


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in real.environment(MLFLOW_TRACKING_AUTH="a plugin").items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("signed")
@pytest.mark.filterwarnings("ignore")  # the client warns of its own dependencies, and that there is no such plugin
def test_a_server_is_read_through_its_own_client_to_the_same_rows(server: str, recorded: Recorded) -> None:
    known = {run: each for run, each in real.oracle(f"{server}").items() if each["name"] != "long"}
    assert real.contents(f"mlflow:{server}", known) == real.contents(str(recorded.database), known)
    assert [each.run.name for each in recordings(f"mlflow:{server}", filter="params.interval = '5'")] == [
        "every five seconds"
    ]
    _assert_refusals(server)


@pytest.mark.usefixtures("signed")
@pytest.mark.filterwarnings("ignore")  # as above
def test_a_report_comes_back_from_a_server(
    gpureport: Program, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = importlib.import_module("mlflow").MlflowClient(server)
    (known,) = recordings(f"mlflow:{server}#nested")
    run_id = known.run.sources[0].locator.rpartition("#")[2]
    for name in ("other.html", "report.html"):
        report = tmp_path / name
        report.write_bytes(os.urandom(50_000))
        # through the client, then without it
        assert gpureport("publish", name, "--to", f"mlflow:{server}#{run_id}").code == 0
        monkeypatch.delenv("MLFLOW_TRACKING_AUTH", raising=False)
        copy = client.download_artifacts(run_id, f"gpureport/{name}", str(tmp_path / "copies"))
        assert Path(copy).read_bytes() == report.read_bytes()
        assert client.get_run(run_id).data.tags["gpureport.report"] == f"gpureport/{name}"


@pytest.mark.filterwarnings("ignore")  # as above
def test_a_log_that_is_kept_on_a_server_is_read_instead(
    gpureport: Program, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recording(f"mlflow:{server}#every second")
    stamps = times(before, "gpu:1")
    lines = ["timestamp, index, name, utilization.gpu [%], temperature.gpu"]
    for second in range(stamps[0] // 1_000_000 - 5, stamps[-1] // 1_000_000 + 5):
        stamp = datetime.fromtimestamp(second, timezone(timedelta(hours=2)))
        lines.append(f"{stamp:%Y/%m/%d %H:%M:%S}.000, 1, NVIDIA H100, 50 %, 61")
    log = tmp_path / "gpu.csv"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert gpureport("publish", "gpu.csv", "--to", f"mlflow:{server}#every second").code == 0
    after = recording(f"mlflow:{server}#every second")
    monkeypatch.setenv("MLFLOW_TRACKING_AUTH", "a plugin")
    assert recording(f"mlflow:{server}#every second").series.equals(after.series)
    assert after.run.gpus[1].model == "NVIDIA H100"
    assert len(after.rows_of("gpu:0")) == len(before.rows_of("gpu:0"))
    assert "log_attached" in codes(after)


@pytest.mark.parametrize(("name", "samples"), [("every second", 1), ("every five seconds", 1), ("mean of four", 4)])
def test_values_stand_where_they_were_read(recorded: Recorded, name: str, samples: int) -> None:
    found = recording(recorded.database, runs=(name,))
    read = np.array(times(found, "gpu:0")) / 1e3
    clock = np.array(column(found, "gpu:0", "gpu_memory_used_bytes")) / 1e6
    window = float(np.median(np.diff(read)))
    first = clock - (samples - 1) / 2 * window / samples
    cycle = _CYCLE / 1e6
    early = (read - first + cycle / 2) % cycle - cycle / 2
    assert len(read) >= 5
    assert float(np.median(np.abs(early))) <= 150
    late = (read + window - first + cycle / 2) % cycle - cycle / 2
    assert float(np.median(np.abs(late))) > 900


def test_what_was_measured_is_what_is_read(recorded: Recorded) -> None:
    found = recording(recorded.database, runs=("every second",))
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    second = found.run.gpus[1]
    assert second.memory_total_bytes == pytest.approx(80 * 2**30, rel=2e-3)
    assert second.power_limit_watts == pytest.approx(400, rel=2e-3)
    at, used = np.array(times(found, "gpu:1")), np.array(column(found, "gpu:1", "gpu_utilization_ratio"))
    busy = (at // 10_000_000) % 2 == 1
    # a second beside each change may belong to either side, and a loaded machine samples late now and then
    inner = np.abs((at / 1e6 + 5) % 10 - 5) > 1
    assert float(((used > 0.5)[inner] == busy[inner]).mean()) >= 0.9


@needs_trackers
def test_a_database_of_an_older_version_stays_one() -> None:
    source = TRACKERS / "mlflow" / "mlflow-2.9.2-schema.db"
    before = state(source.parent)
    (found,) = recordings(source)
    assert "(schema acf3f17fdcc7)" in found.run.quality.notes[0]
    assert state(source.parent) == before
