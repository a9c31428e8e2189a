"""The one function that says what may be written: no other name of what is read gets past it."""

import os
import random
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.places import RemotePath
from gpureport.places.written_paths import ReadPath, WrittenPath, refuse_taken_paths


def alias(path: Path, folder: Path, rng: random.Random) -> Path:
    """Return another name of a file: through links, hard links, `.` and `..`, a few times over."""
    for at in range(rng.randint(1, 4)):
        new = folder / f"{rng.random()}-{at}"
        match rng.randrange(5):
            case 0:
                new.symlink_to(path)
            case 1:
                new.symlink_to(os.path.relpath(path, folder))
            case 2:
                # a link stays a link, so that the file itself is taken
                os.link(path.resolve(), new)
            case 3:
                above = path.parent.resolve()
                new = above / "." / ".." / above.name / path.name
            case _:
                (folder / f"up-{rng.random()}").symlink_to(path.parent)
                new = max(folder.glob("up-*"), key=lambda each: each.lstat().st_mtime_ns) / path.name
        path = new
    return path


@pytest.mark.parametrize("seed", range(20))
def test_no_other_name_of_a_source_gets_past(seed: int, tmp_path: Path) -> None:
    """And a copy of it, which is another file, does."""
    rng = random.Random(seed)
    (tmp_path / "logs").mkdir()
    source = tmp_path / "logs" / "gpu.csv"
    source.write_text("log")
    name = alias(source, tmp_path / "logs" if seed % 2 else tmp_path, rng)
    assert name.samefile(source)
    with pytest.raises(RenderError, match="this is a source"):
        refuse_taken_paths([WrittenPath(place=name)], [ReadPath(place=source, name="a source")])
    with pytest.raises(RenderError, match="two outputs of this command"):
        refuse_taken_paths([WrittenPath(place=source), WrittenPath(place=name)])
    (tmp_path / "copy.csv").write_text("log")
    refuse_taken_paths([WrittenPath(place=tmp_path / "copy.csv")], [ReadPath(place=source, name="a source")])


@pytest.mark.parametrize(
    ("marker", "text"),
    [("store.json", "{}"), ("store.json", '{"format": "x"}'), ("store.json", "[1]"), ("meta.yaml", "package: numpy")],
)
def test_files_that_only_look_like_a_marker_close_no_folder(marker: str, text: str, tmp_path: Path) -> None:
    """Other programs have a store.json and a meta.yaml too."""
    (tmp_path / marker).write_text(text)
    refuse_taken_paths([WrittenPath(place=tmp_path / "report.html"), WrittenPath(place=tmp_path, is_folder=True)])


def test_objects_of_a_bucket_are_told_apart_by_their_urls() -> None:
    """An object of another bucket, or with a longer name, is another."""
    source = ReadPath(place=RemotePath(scheme="s3", path="b/logs/gpu.csv"), name="a source")
    for path in ("c/logs/gpu.csv", "b/logs/gpu.csv.html", "b/logs"):
        refuse_taken_paths([WrittenPath(place=RemotePath(scheme="s3", path=path))], [source])
    with pytest.raises(RenderError, match="this is a source"):
        refuse_taken_paths([WrittenPath(place=RemotePath(scheme="s3", path="b/logs/gpu.csv"))], [source])


def test_a_site_may_lie_in_the_folder_of_a_store(tmp_path: Path) -> None:
    """As in the recipes, where jobs share one folder; what the store keeps is closed."""
    (tmp_path / "store.json").write_text('{"format": 1}')
    refuse_taken_paths([WrittenPath(place=tmp_path / "site", is_folder=True)])
    with pytest.raises(RenderError, match="it lies in a store of gpureport"):
        refuse_taken_paths([WrittenPath(place=tmp_path / "history", is_folder=True)])
