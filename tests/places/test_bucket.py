"""Objects and folders of a bucket of a real server."""

import os
from pathlib import Path

import pytest
from pyarrow import fs

from gpureport.errors import PlaceError
from gpureport.fetched_copies import copy_path
from gpureport.places import RemotePath
from gpureport.places.fetching import fetch
from gpureport.places.mapping import map_places
from gpureport.places.sending import replace_folder, stage_folder
from tests.places.conftest import objects
from tests.places.s3_server import BreakingRoad

pytestmark = pytest.mark.slow

LARGE = 25_000_000
"""Bytes of an object that is written in three parts."""


def test_as_a_path(bucket: RemotePath) -> None:
    """Objects are written, read, found, moved and removed; what is not there is not there."""
    one, two = bucket / "a/one.html", bucket / "a/b/two.txt"
    one.write_bytes(b"1")
    two.write_bytes(b"zwei \xc3\xa4")
    assert (one.read_bytes(), two.read_text(encoding="utf-8")) == (b"1", "zwei ä")
    assert [one.is_file(), one.is_dir(), one.parent.is_dir(), bucket.is_dir()] == [True, False, True, True]
    assert not (bucket / "none").exists()
    assert not RemotePath(scheme="s3", path="no-such-bucket/x").exists()
    assert [*(bucket / "a").iterdir()] == [bucket / "a/b", one]
    assert [*bucket.glob("a/[!.]*/")] == [bucket / "a/b"]
    assert [*bucket.glob("*/*/*.txt")] == [two]
    assert [*(bucket / "none").iterdir()] == []
    assert objects(bucket) == ["a/b/two.txt", "a/one.html"]
    (bucket / "a").remove_folder()
    assert objects(bucket) == []
    with pytest.raises(FileNotFoundError):
        one.read_bytes()
    with pytest.raises(FileNotFoundError):
        one.unlink()
    one.unlink(missing_ok=True)
    one.parent.remove_folder()


def test_pages_are_shown(bucket: RemotePath) -> None:
    """A browser shows a page instead of saving it: its type is that of its name."""
    (bucket / "index.html").write_bytes(b"<!doctype html>")
    with bucket.reach() as client, client.open_input_stream(f"{bucket.path}/index.html") as stream:
        assert dict(stream.metadata())["Content-Type"] == b"text/html"


@pytest.mark.parametrize("size", [1000, LARGE])
def test_dropped_while_written(bucket: RemotePath, road: BreakingRoad, size: int) -> None:
    """Wherever the connection drops, the object is the old one or the new one, whole; then the error says so."""
    place, old, new = bucket / "object", b"old", os.urandom(size)
    changes = 1 if size < LARGE else 5
    for drop in range(changes + 1):
        road.open()
        place.write_bytes(old)
        road.open(changes=drop)
        if drop < changes:
            with pytest.raises(PlaceError, match="the connection failed"):
                place.write_bytes(new)
        else:
            place.write_bytes(new)
        road.open()
        # the last request may have arrived although its answer did not
        assert place.read_bytes() in ([old, new] if drop == changes - 1 else [old] if drop < changes else [new])


def test_dropped_while_read(bucket: RemotePath, road: BreakingRoad) -> None:
    """Half an object is never taken for the whole."""
    place = bucket / "object"
    place.write_bytes(os.urandom(LARGE))
    road.open(received=LARGE // 2)
    with pytest.raises(PlaceError, match="the connection failed"):
        place.read_bytes()
    road.open(received=LARGE // 2)
    with pytest.raises(PlaceError, match="the connection failed"):
        fetch(place)
    road.open()
    assert fetch(place).read_bytes() == place.read_bytes()


def test_fetched_folder(bucket: RemotePath, road: BreakingRoad) -> None:
    """A folder is fetched once, and again when it changed."""
    (bucket / "logs/a.csv").write_bytes(b"a")
    (bucket / "logs/below/b.csv").write_bytes(b"b")
    copy = fetch(bucket / "logs")
    assert copy == copy_path("s3", f"{bucket.path}/logs")
    assert {path.name: path.read_bytes() for path in copy.rglob("*.csv")} == {"a.csv": b"a", "b.csv": b"b"}
    road.open()
    before = road.received
    fetch(bucket / "logs")
    listed = road.received - before
    (bucket / "logs/a.csv").unlink()
    (bucket / "logs/c.csv").write_bytes(b"c" * 2 * listed)
    fetch(bucket / "logs")
    assert sorted(path.name for path in copy.rglob("*.csv")) == ["b.csv", "c.csv"]
    assert not fetch(bucket / "nothing").exists()
    with pytest.raises(PlaceError, match="no such bucket"):
        fetch(RemotePath(scheme="s3", path="no-such-bucket/x"))


def test_names_that_lead_elsewhere(bucket: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object whose name would lead out of the folder of the copies is not fetched."""
    listed = [fs.FileInfo(f"{bucket.path}/../../outside.csv", fs.FileType.File, size=1)]
    monkeypatch.setattr(RemotePath, "list_infos", lambda _, *, recursive: listed * recursive)
    with pytest.raises(PlaceError, match="is not fetched"):
        fetch(bucket)


def test_replaced_folder(bucket: RemotePath, road: BreakingRoad, tmp_path: Path) -> None:
    """Wherever the connection drops, there is the old content, none, or the new; writing again mends it."""
    folders = {}
    for name, files in {"old": ("a", "b", "sub/c"), "new": ("a", "d", "sub/c")}.items():
        folders[name] = {file: f"{name} {file}".encode() for file in (*files, "last")}
        for file, text in folders[name].items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_bytes(text)
    target, drop = bucket / "folder", 0
    seen: list[str] = []
    while not seen or seen[-1] != "whole":
        road.open()
        target.remove_folder()
        replace_folder(tmp_path / "old", target, "last")
        road.open(changes=drop)
        try:
            replace_folder(tmp_path / "new", target, "last")
        except PlaceError:
            seen.append("dropped")
        else:
            seen.append("whole")
        road.open()
        if (target / "last").is_file():
            content = folders[(target / "last").read_bytes().decode().split()[0]]
            assert all((target / file).read_bytes() == text for file, text in content.items())
        else:
            seen[-1] += ", none"
            replace_folder(tmp_path / "new", target, "last")
            assert objects(target) == sorted(folders["new"])
        drop += 1
    assert {"dropped", "dropped, none"} < {*seen}
    assert objects(target) == sorted(folders["new"])


def test_staged_folder(bucket: RemotePath, tmp_path: Path) -> None:
    """Nothing is sent of a folder that was not finished; a folder of this machine is written in place."""

    def begin() -> None:
        with stage_folder(bucket, "index.html") as folder:
            (folder / "index.html").write_bytes(b"x")
            raise KeyError

    with pytest.raises(KeyError):
        begin()
    assert objects(bucket) == []
    with stage_folder(tmp_path, "index.html") as folder:
        assert folder == tmp_path


def test_many_at_once(bucket: RemotePath) -> None:
    """Results come in the order of the places."""
    places = [bucket / f"{number}" for number in range(40)]
    map_places(lambda place: place.write_bytes(place.name.encode()), places)
    assert map_places(lambda place: place.read_bytes(), places) == [f"{number}".encode() for number in range(40)]
