"""Servers of one's own, through Neptune's client."""

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from gpureport.importers.trackers.neptune.live import client_process
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule, loss, square
from tests.importers.trackers.tracked import recording, refused, trained

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


def backend(asked: list[tuple[str, int]]) -> Any:
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
        def get_metadata_container(self, container_id: Any, expected_container_type: Any) -> Any:
            kind = expected_container_type
            return ApiExperiment(
                id=UniqueId("1"),
                type=kind,
                sys_id=SysId("OPT-1"),
                workspace="acme",
                project_name="gpu-opt",
                trashed=False,
            )

        def get_attributes(self, *_: Any) -> Any:
            singles = [Attribute(path=path, type=kinds[type(value)]) for path, value in SINGLES.items()]
            return singles + [Attribute(path=path, type=AttributeType.FLOAT_SERIES) for path in SERIES]

        def fetch_atom_attribute_values(self, *_: Any) -> Any:
            return [(path, kinds[type(value)].value, value) for path, value in SINGLES.items()]

        def get_float_series_values(self, *given: Any, **named: Any) -> Any:
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


_LIVE = "gpureport.importers.trackers.neptune.live"


@WITH_CLIENT
@pytest.mark.filterwarnings("ignore")  # the client warns of its own dependencies
@pytest.mark.usefixtures("in_utc")
def test_a_run_is_read_through_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its backend replaced, the client's own classes give every point of every page, at its time of UTC."""
    asked: list[tuple[str, int]] = []
    made = backend(asked)
    monkeypatch.setattr("neptune.metadata_containers.metadata_container.get_backend", lambda *_, **__: made)
    told: list[str] = []
    table = client_process.read_run("acme/gpu-opt", "OPT-1", told.append)
    assert (told[:3], set(told[3:])) == (["imported", "connected", "described"], set(SERIES))
    assert [page for page in asked if page[0] == "train/loss"] == [("train/loss", offset) for offset in (0, 1000, 2000)]
    monkeypatch.setattr(f"{_LIVE}.live_runs.read_in_process", lambda *given: parquet.write_table(table, given[-1]))
    found = recording(f"{STORE}/OPT-1")
    assert (found.run.name, found.run.started) == ("baseline", SCHEDULE.start)
    assert dict(found.run.params) == {"params/amp": "true", "params/layers": "3", "params/lr": "0.1"}
    assert found.run.quality.imputed_points == 8
    assert trained(found) == [at // 1000 * 1000 for at, _ in SERIES["train/loss"]]
    assert found.training.column("step").null_count == 0


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_LIVE}.live_runs.find_spec", lambda _: None)
    error = refused(STORE)
    assert (error.code, "gpureport[neptune]" in error.hint) == ("not_installed", True)


@pytest.mark.slow
@WITH_CLIENT
def test_what_the_client_says_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """No token, one that is none, a port nobody listens on, a server that says nothing and is given up."""
    monkeypatch.setenv("NEPTUNE_RETRIES_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        silent = token(listening.getsockname()[1])
        for given, code in (
            (None, "not_logged_in"),
            ("garbage", "not_logged_in"),
            (token(9), "no_answer"),
            (silent, "no_answer"),
        ):
            monkeypatch.delenv("NEPTUNE_API_TOKEN", raising=False)
            if given is not None:
                monkeypatch.setenv("NEPTUNE_API_TOKEN", given)
            if given == silent:
                monkeypatch.setattr(f"{_LIVE}.live_runs._SILENT", 2.0)
            assert refused(f"{STORE}/OPT-1").code == code, given


def test_files_are_read_without_the_client(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(SCHEDULE))
    program = (
        f"import sys; sys.modules['neptune'] = None; import gpureport; print(len(gpureport.read({str(tmp_path)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
