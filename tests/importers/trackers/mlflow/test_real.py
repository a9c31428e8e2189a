"""What is read is what MLflow holds, to the last point, and stands where it was measured."""

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from gpureport import columns
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.trackers.mlflow.locators import open_store
from gpureport.importers.trackers.mlflow.server.client_store import ClientStore
from gpureport.publishing import publish
from tests.genuine import TRACKERS, needs_trackers
from tests.importers.trackers.mlflow import real
from tests.importers.trackers.mlflow.conftest import Recorded
from tests.importers.trackers.mlflow.test_safety import state
from tests.importers.trackers.tracked import codes, recording

pytestmark = pytest.mark.tracker
_CYCLE = 80_000_000_000
"""Bytes after which the clock in gpu 0's memory begins anew."""


def test_a_database_is_read_as_its_own_client_reads_it(recorded: Recorded, tmp_path: Path) -> None:
    before = state(recorded.database.parent)
    store, _ = open_store(str(recorded.database))
    found = real.contents(store)
    assert state(recorded.database.parent) == before
    known = real.with_infinities(real.oracle(f"sqlite:///{real.copied(recorded.database, tmp_path)}"))
    assert found == known
    assert max(len(points) for run in found.values() for points in run["metrics"].values()) == 60_000


def test_a_folder_is_read_as_its_own_client_reads_it(recorded: Recorded) -> None:
    store, _ = open_store(str(recorded.folder))
    assert real.contents(store) == real.oracle(f"file://{recorded.folder}")


@pytest.mark.slow
@pytest.mark.smoke
def test_a_server_is_read_as_its_own_client_reads_it(server: str, recorded: Recorded) -> None:
    remote, _ = open_store(f"mlflow:{server}")
    local, _ = open_store(str(recorded.database))
    assert real.contents(remote) == real.contents(local)
    assert remote.version.startswith("MLflow 3.")


def test_a_server_finds_runs_by_its_own_filters(server: str) -> None:
    store, _ = open_store(f"mlflow:{server}")
    assert sorted(run.name for run in store.runs(wanted="params.interval = '1'")) == ["every second", "mean of four"]
    assert [run.name for run in store.runs() if run.deleted] == ["odd"]
    parents = {run.name: run.parent for run in store.runs()}
    assert parents["nested"] == next(run.id for run in store.runs() if run.name == "long")
    assert store.run("0" * 32) is None


@pytest.mark.filterwarnings("ignore")  # the client warns of its own dependencies
def test_its_own_client_reads_a_server_to_the_same_rows(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in real.environment().items():
        monkeypatch.setenv(name, value)
    client = ClientStore(server, server)
    remote, _ = open_store(f"mlflow:{server}")
    assert real.contents(client) == real.contents(remote)
    assert [run.name for run in client.runs(wanted="params.interval = '5'")] == ["every five seconds"]
    assert client.run("0" * 32) is None
    with pytest.raises(SettingsError, match=r"--filter: .*INVALID_PARAMETER_VALUE"):
        client.runs(wanted="params.interval > 3")
    with pytest.raises(SourceError, match="no experiment 'recordet'; it has recorded"):
        client.runs("recordet")


@pytest.mark.filterwarnings("ignore")  # the client warns of its own dependencies
def test_a_report_comes_back_from_a_server(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in real.environment().items():
        monkeypatch.setenv(name, value)
    report = tmp_path / "report.html"
    report.write_bytes(os.urandom(50_000))
    publish([report], f"mlflow:{server}#long")
    client = ClientStore(server, server)
    store, _ = open_store(f"mlflow:{server}")
    (run,) = (run for run in store.runs() if run.name == "long")
    for each in (store, client):
        assert each.artifacts(run, "gpureport") == ["gpureport/report.html"]
        assert each.fetch_artifact(run, "gpureport/report.html").read_bytes() == report.read_bytes()
    assert ("gpureport.report", "gpureport/report.html") in store.labels(run).tags
    client.publish(run, report.rename(tmp_path / "other.html"), "gpureport")
    client.tag(run, "gpureport.report", "gpureport/other.html")
    assert store.artifacts(run, "gpureport") == ["gpureport/other.html", "gpureport/report.html"]


def test_a_log_that_is_kept_on_a_server_is_read_instead(server: str, tmp_path: Path) -> None:
    before = recording(f"mlflow:{server}#every second")
    times = columns.integers(before.rows_of("gpu:1").column("timestamp"))
    lines = ["timestamp, index, name, utilization.gpu [%], temperature.gpu"]
    for second in range(int(times[0] // 1_000_000) - 5, int(times[-1] // 1_000_000) + 5):
        stamp = datetime.fromtimestamp(second, timezone(timedelta(hours=2)))
        lines.append(f"{stamp:%Y/%m/%d %H:%M:%S}.000, 1, NVIDIA H100, 50 %, 61")
    log = tmp_path / "gpu.csv"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    publish([log], f"mlflow:{server}#every second")
    after = recording(f"mlflow:{server}#every second")
    assert after.run.gpus[1].model == "NVIDIA H100"
    assert len(after.rows_of("gpu:0")) == len(before.rows_of("gpu:0"))
    assert "log_attached" in codes(after)


@pytest.mark.parametrize(("name", "samples"), [("every second", 1), ("every five seconds", 1), ("mean of four", 4)])
def test_values_stand_where_they_were_read(recorded: Recorded, name: str, samples: int) -> None:
    found = recording(recorded.database, runs=(name,))
    rows = found.rows_of("gpu:0")
    times = columns.integers(rows.column("timestamp")) / 1e3
    clock = columns.floats(rows.column("gpu_memory_used_bytes")) / 1e6
    window = float(np.median(np.diff(times)))
    first = clock - (samples - 1) / 2 * window / samples
    cycle = _CYCLE / 1e6
    early = (times - first + cycle / 2) % cycle - cycle / 2
    assert len(times) >= 5
    assert float(np.median(np.abs(early))) <= 150
    late = (times + window - first + cycle / 2) % cycle - cycle / 2
    assert float(np.median(np.abs(late))) > 900


def test_what_was_measured_is_what_is_read(recorded: Recorded) -> None:
    found = recording(recorded.database, runs=("every second",))
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    second = found.run.gpus[1]
    assert second.memory_total_bytes == pytest.approx(80 * 2**30, rel=2e-3)
    assert second.power_limit_watts == pytest.approx(400, rel=2e-3)
    times, used = (found.rows_of("gpu:1").column(name) for name in ("timestamp", "gpu_utilization_ratio"))
    busy = (columns.integers(times) // 10_000_000) % 2 == 1
    # a second beside each change may belong to either side, and a loaded machine samples late now and then
    inner = np.abs((columns.integers(times) / 1e6 + 5) % 10 - 5) > 1
    assert float(((columns.floats(used) > 0.5)[inner] == busy[inner]).mean()) >= 0.9


@needs_trackers
def test_a_database_of_an_older_version_stays_one() -> None:
    source = TRACKERS / "mlflow" / "mlflow-2.9.2-schema.db"
    before = state(source.parent)
    store, _ = open_store(str(source))
    assert store.version == "schema acf3f17fdcc7"
    assert all(store.series(run) for run in store.runs())
    assert state(source.parent) == before
