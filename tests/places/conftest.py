"""A bucket of a real server of S3, and a road to it that breaks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.places.s3_server import BreakingRoad, s3_server

if TYPE_CHECKING:
    from pyarrow import fs


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket as its server has it."""

    name: str
    client: "fs.S3FileSystem"
    road: BreakingRoad

    def __str__(self) -> str:
        return f"s3://{self.name}"

    def put(self, name: str, content: bytes) -> None:
        with self.client.open_output_stream(f"{self.name}/{name}") as stream:
            stream.write(content)

    def get(self, name: str) -> bytes:
        with self.client.open_input_file(f"{self.name}/{name}") as stream:
            return bytes(stream.read())

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all objects below a folder, without the marks that pyarrow leaves for empty folders."""
        from pyarrow import fs

        top = f"{self.name}/{folder}".rstrip("/")
        infos = self.client.get_file_info(fs.FileSelector(top, recursive=True, allow_not_found=True))
        return sorted(info.path.removeprefix(f"{top}/") for info in infos if info.is_file)


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[int, BreakingRoad]]:
    """The port of a server of S3, and the road to it."""
    with s3_server() as port:
        road = BreakingRoad(port)
        yield port, road
        road.close()


@pytest.fixture
def bucket(server: tuple[int, BreakingRoad], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    from pyarrow import fs

    port, road = server
    road.open()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{road.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"test-{uuid4().hex}"
    client = fs.S3FileSystem(
        endpoint_override=f"http://127.0.0.1:{port}",
        allow_bucket_creation=True,
        allow_delayed_open=True,  # type: ignore[call-arg]  # the stubs lack it
    )
    client.create_dir(name)
    return Bucket(name=name, client=client, road=road)
