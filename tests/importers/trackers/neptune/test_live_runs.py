"""Servers of one's own, through Neptune's client."""

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.importers import Selection
from gpureport.importers.trackers.neptune import Neptune
from gpureport.importers.trackers.neptune.exports import exported_runs
from gpureport.importers.trackers.neptune.live import client_process, live_runs
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule, loss, square
from tests.importers.trackers.tracked import recording

WITH_CLIENT = pytest.mark.skipif(find_spec("neptune") is None, reason="the extra neptune is not installed")
SCHEDULE = Schedule(utilization=[square(busy=3, idle=2, ticks=20)])
STORE = "neptune://acme/gpu-opt"


def token(port: int) -> str:
    address = f"http://127.0.0.1:{port}"
    said = {"api_address": address, "api_url": address, "api_key": "secret"}
    return base64.b64encode(json.dumps(said).encode()).decode()


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def backend(asked: list[tuple[str, int]]) -> Any:  # noqa: ANN401 - a class of the client
    from neptune.internal.backends.api_model import (  # noqa: PLC0415 - an extra
        ApiExperiment,
        Attribute,
        AttributeType,
        FloatPointValue,
        FloatSeriesValues,
    )
    from neptune.internal.backends.neptune_backend_mock import NeptuneBackendMock  # noqa: PLC0415 - as above
    from neptune.internal.id_formats import SysId, UniqueId  # noqa: PLC0415 - as above

    kinds = {int: AttributeType.INT, float: AttributeType.FLOAT, str: AttributeType.STRING, bool: AttributeType.BOOL}

    class Backend(NeptuneBackendMock):
        def get_metadata_container(self, container_id: Any, expected_container_type: Any) -> Any:  # noqa: ANN401, ARG002 - as the client calls it
            kind = expected_container_type
            return ApiExperiment(
                id=UniqueId("1"),
                type=kind,
                sys_id=SysId("OPT-1"),
                workspace="acme",
                project_name="gpu-opt",
                trashed=False,
            )

        def get_attributes(self, *_: Any) -> Any:  # noqa: ANN401 - as above
            singles = [Attribute(path=path, type=kinds[type(value)]) for path, value in SINGLES.items()]
            return singles + [Attribute(path=path, type=AttributeType.FLOAT_SERIES) for path in SERIES]

        def fetch_atom_attribute_values(self, *_: Any) -> Any:  # noqa: ANN401 - as above
            return [(path, kinds[type(value)].value, value) for path, value in SINGLES.items()]

        def get_float_series_values(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as above
            path, offset, limit = (*given, *named.values())[-3:]
            asked.append(("/".join(path), offset))
            points = [
                FloatPointValue(timestampMillis=at // 1000, step=float(step), value=value)
                for step, (at, value) in enumerate(SERIES["/".join(path)])
            ]
            return FloatSeriesValues(len(points), points[offset : offset + limit])

    return Backend()  # type: ignore[no-untyped-call]  # the client's own class


SERIES = SCHEDULE.series() | {"train/loss": loss(SCHEDULE.start, 2500)}
SINGLES: dict[str, Any] = {
    "sys/id": "OPT-1",
    "sys/name": "baseline",
    "monitoring/training/hostname": "node-a",
    "params/lr": 0.1,
    "params/layers": 3,
    "params/amp": True,
}


@WITH_CLIENT
@pytest.mark.filterwarnings("ignore")  # the client warns of its own dependencies
@pytest.mark.usefixtures("in_utc")
def test_a_run_is_read_through_the_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []
    made = backend(asked)
    monkeypatch.setattr("neptune.metadata_containers.metadata_container.get_backend", lambda *_, **__: made)
    told: list[str] = []
    table = client_process.read_run("acme/gpu-opt", "OPT-1", told.append)
    assert told[:3] == ["imported", "connected", "described"]
    assert set(told[3:]) == set(SERIES)
    assert [page for page in asked if page[0] == "train/loss"] == [("train/loss", offset) for offset in (0, 1000, 2000)]
    parquet.write_table(table, tmp_path / "run.parquet")
    (content,) = exported_runs.find_exported_runs(tmp_path / "run.parquet")[0].contents()
    assert {path: len(points.times) for path, points in content.series.items()} == {
        path: len(points) for path, points in SERIES.items()
    }
    assert content.series["train/loss"].times.tolist() == [at // 1000 * 1000 for at, _ in SERIES["train/loss"]]
    assert STEP_NOT_RECORDED not in content.series["train/loss"].steps
    monkeypatch.setattr(live_runs, "read_in_process", lambda *given: parquet.write_table(table, given[-1]))
    found = recording(f"{STORE}/OPT-1")
    assert (found.run.name, found.run.started) == ("baseline", SCHEDULE.start)
    assert dict(found.run.params) == {"params/amp": "true", "params/layers": "3", "params/lr": "0.1"}
    assert found.run.quality.imputed_points == 8
    assert len(found.training) == 2500


def test_a_listing_names_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"project_id": "acme/gpu-opt", "run_id": run, **client_process.cell_row(path, value)}
        for run, about in {
            "OPT-1": {"sys/id": "OPT-1", "sys/name": "one", "sys/creation_time": datetime(2026, 3, 14, tzinfo=UTC)},
            "OPT-2": {"sys/id": "OPT-2", "sys/trashed": True},
        }.items()
        for path, value in about.items()
    ]
    table = pa.Table.from_pylist(rows, schema=client_process.SCHEMA)
    monkeypatch.setattr(live_runs, "find_spec", lambda _: True)
    monkeypatch.setattr(live_runs, "read_in_process", lambda *given: parquet.write_table(table, given[-1]))
    one, two = Neptune().listed(STORE, Selection())
    assert (one.id, one.name, one.points, one.holds) == ("OPT-1", "one", None, "acme/gpu-opt  series not looked at")
    assert two.id == "OPT-2"
    assert [run.locator for run in Neptune().runs(STORE, Selection()).runs] == [f"{STORE}#OPT-1"]
    assert [run.locator for run in Neptune().runs(STORE, Selection(runs=("OPT-2",))).runs] == [f"{STORE}#OPT-2"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r"needs the package neptune; pip install 'gpureport\[neptune\]'"):
        live_runs.find_live_runs(STORE, "", Selection())


@pytest.mark.slow
@WITH_CLIENT
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "no API token; set NEPTUNE_API_TOKEN"),
        ("garbage", "the API token is not valid"),
        (9, "the server does not answer"),
    ],
)
def test_what_the_client_says_is_one_line(monkeypatch: pytest.MonkeyPatch, given: str | int | None, said: str) -> None:
    monkeypatch.setenv("NEPTUNE_RETRIES_TIMEOUT", "1")
    monkeypatch.delenv("NEPTUNE_API_TOKEN", raising=False)
    if given is not None:
        monkeypatch.setenv("NEPTUNE_API_TOKEN", token(given) if isinstance(given, int) else given)
    with pytest.raises(SourceError, match=said):
        recording(f"{STORE}/OPT-1")


@pytest.mark.slow
@WITH_CLIENT
def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "_SILENT", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("NEPTUNE_API_TOKEN", token(listening.getsockname()[1]))
        with pytest.raises(SourceError, match="no answer within 2 s"):
            recording(f"{STORE}/OPT-1")


def test_files_are_read_without_the_client(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(SCHEDULE))
    program = (
        "import sys; sys.modules['neptune'] = None; from gpureport.cli import main; "
        f"sys.argv[1:] = ['ingest', {str(tmp_path)!r}, '--store', {str(tmp_path / 'store')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "baseline: 1 GPU" in done.stdout
