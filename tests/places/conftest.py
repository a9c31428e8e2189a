"""A bucket of a real server of S3, and a road to it that breaks."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gpureport.places import RemotePath, bucket_access
from gpureport.places.bucket_access import open_client
from tests.cli.program import Program, program
from tests.places.s3_server import BreakingRoad, s3_server


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    """The port of a server of S3."""
    with s3_server() as port:
        yield port


@pytest.fixture
def road(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[BreakingRoad]:
    """The road that every client takes to the server."""
    made = BreakingRoad(s3_port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    # each drop would take seconds
    monkeypatch.setattr(bucket_access, "_ATTEMPTS", 1)
    open_client.cache_clear()
    yield made
    made.close()
    open_client.cache_clear()


@pytest.fixture
def bucket(s3_port: int, road: BreakingRoad) -> RemotePath:
    """An empty bucket."""
    from pyarrow import fs  # noqa: PLC0415 - most tests of this folder need no client

    del road
    name = f"test-{uuid4().hex}"
    fs.S3FileSystem(endpoint_override=f"http://127.0.0.1:{s3_port}", allow_bucket_creation=True).create_dir(name)
    return RemotePath(scheme="s3", path=name)


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The program, run in an empty folder."""
    return program(capsys, monkeypatch, tmp_path)


def objects(place: RemotePath) -> list[str]:
    """Return the names of all objects below a folder, without the marks that pyarrow leaves for empty folders."""
    infos = place.list_infos(recursive=True)
    return [info.path.removeprefix(f"{place.path}/") for info in infos if info.is_file]
