"""Servers of one's own, through Neptune's client."""

import base64
import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule, loss, square
from tests.importers.trackers.tracked import recording, refused, trained
from tests.support.program import Program

WITH_CLIENT = pytest.mark.skipif(find_spec("neptune") is None, reason="the extra neptune is not installed")
SCHEDULE = Schedule(utilization=[square(busy=3, idle=2, ticks=20)])
STORE = "neptune://acme/gpu-opt"


def token(port: int) -> str:
    address = f"http://127.0.0.1:{port}"
    said = {"api_address": address, "api_url": address, "api_key": "secret"}
    return base64.b64encode(json.dumps(said).encode()).decode()


_SITE = f"""
import sys

if "gpureport.importers.neptune.live" in sys.orig_argv:
    from neptune.metadata_containers import metadata_container
    from {__name__} import backend

    metadata_container.get_backend = lambda *_, **__: backend()
"""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    root = Path(__file__).parents[4]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(root), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TZ", "Asia/Tokyo")


def backend() -> Any:
    from neptune.internal.backends.api_model import (
        ApiExperiment,
        Attribute,
        AttributeType,
        AttributeWithProperties,
        FloatPointValue,
        FloatSeriesValues,
        LeaderboardEntry,
    )
    from neptune.internal.backends.neptune_backend_mock import NeptuneBackendMock
    from neptune.internal.id_formats import SysId, UniqueId

    kinds = {int: AttributeType.INT, float: AttributeType.FLOAT, str: AttributeType.STRING, bool: AttributeType.BOOL}
    kinds[datetime] = AttributeType.DATETIME

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
            points = [
                FloatPointValue(timestampMillis=at // 1000, step=float(step), value=value)
                for step, (at, value) in enumerate(SERIES["/".join(path)])
            ]
            return FloatSeriesValues(len(points), points[offset : offset + limit])

        def search_leaderboard_entries(self, *_: Any, **__: Any) -> Any:
            made = datetime.fromtimestamp(SCHEDULE.start / 1e6, tz=UTC)
            for run_id, name in (("OPT-1", "baseline"), ("OPT-2", None)):
                said = {"sys/id": run_id, "sys/name": name, "sys/creation_time": made, "sys/trashed": False}
                held = {path: value for path, value in said.items() if value is not None}
                yield LeaderboardEntry(
                    run_id,
                    [
                        AttributeWithProperties(path, kinds[type(value)], {"value": value})
                        for path, value in held.items()
                    ],
                )

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


@pytest.mark.slow
@WITH_CLIENT
@pytest.mark.usefixtures("served")
def test_a_run_is_read_through_the_client() -> None:
    found = recording(f"{STORE}/OPT-1")
    assert (found.run.name, found.run.started) == ("baseline", SCHEDULE.start)
    assert dict(found.run.params) == {"params/amp": "true", "params/layers": "3", "params/lr": "0.1"}
    assert found.run.quality.imputed_points == 8
    assert trained(found) == [at // 1000 * 1000 for at, _ in SERIES["train/loss"]]
    assert found.training.column("value").to_pylist() == [value for _, value in SERIES["train/loss"]]
    assert found.training.column("step").to_pylist() == list(range(2500))


@pytest.mark.slow
@WITH_CLIENT
@pytest.mark.usefixtures("served")
def test_a_project_is_listed(gpureport: Program) -> None:
    done = gpureport("ingest", "--list", STORE)
    assert done.out.splitlines()[:2] == [
        f"OPT-{run}  {name}  status not recorded  2026-03-14T09:26:53.123+00:00  not examined"
        for run, name in ((1, "baseline"), (2, "OPT-2"))
    ]


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['neptune'] = None")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    error = refused(STORE)
    assert (error.code, "gpureport[neptune]" in error.hint) == ("not_installed", True)


@pytest.mark.slow
@WITH_CLIENT
def test_what_the_client_says_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
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
                monkeypatch.setattr("gpureport.importers.neptune.live._SILENT", 20.0)
            assert refused(f"{STORE}/OPT-1").code == code, given


def test_files_are_read_without_the_client(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(SCHEDULE))
    program = (
        f"import sys; sys.modules['neptune'] = None; import gpureport; print(len(gpureport.read({str(tmp_path)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
