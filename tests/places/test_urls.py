"""What a person types as a place."""

from pathlib import Path

import pytest

from gpureport.errors import SettingsError
from gpureport.fetched_copies import copy_path, name_by_url
from gpureport.places import RemotePath, parse_place
from tests.cli.program import Program


@pytest.mark.parametrize("text", ["runs", "/tmp/runs", "a:b", "./s3:/x", "-"])  # noqa: S108 - nothing is written
def test_paths(text: str) -> None:
    """What is no URL is a path."""
    assert parse_place(text) == Path(text)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_urls(scheme: str) -> None:
    """A URL names a bucket and a key, and behaves as a path does."""
    place = parse_place(f"{scheme}://bucket/a/b.parquet/")
    assert place == RemotePath(scheme=scheme, path="bucket/a/b.parquet")
    assert str(place) == f"{scheme}://bucket/a/b.parquet"
    assert (place.name, place.stem, place.suffix) == ("b.parquet", "b", ".parquet")
    assert str(place.parent / "c/d") == f"{scheme}://bucket/a/c/d"
    assert place.parent.parent == place.parent.parent.parent


@pytest.mark.parametrize("text", ["ftp://host/runs", "s4://bucket", "s3://", "gs:///"])
def test_refused_urls(text: str, gpureport: Program) -> None:
    """Any other URL is an error of one line, and no folder is made of it."""
    with pytest.raises(SettingsError):
        parse_place(text)
    for arguments in (["ingest", "gpu.csv", "--store", text], ["report", "gpu.csv", "-o", f"{text}/r.html"]):
        if not (text.endswith("/") and "-o" in arguments):
            done = gpureport(*arguments)
            assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
            assert done.err.startswith(f"gpureport: {text}")
    assert list(Path.cwd().iterdir()) == []


def test_a_recording_stays_here(gpureport: Program) -> None:
    """A job is not recorded into a bucket, nor into a folder called `s3:`."""
    assert gpureport("record", "-o", "s3://bucket/run", "--", "true").code == 2
    assert list(Path.cwd().iterdir()) == []


def test_copies_are_named_by_url() -> None:
    """Whatever names the copy of an object says its URL."""
    copy = copy_path("gs", "bucket/a/gpu.csv")
    assert name_by_url(f"Skipped: {copy}, {copy.parent}") == "Skipped: gs://bucket/a/gpu.csv, gs://bucket/a"
    error = SettingsError(str(copy), "no such file", f"look into {copy.parent}")
    assert str(error) == "gs://bucket/a/gpu.csv: no such file; look into gs://bucket/a"
