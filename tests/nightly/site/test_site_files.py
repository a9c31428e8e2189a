"""Whose a site's folder is: pages of others are refused or left alone, and sites from before the marker go on."""

import os
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site import site_files, site_writing
from tests.nightly.made import nights

NIGHTS = nights({"gpu_utilization_ratio": (0.9, 0.91, 0.9)})
FOREIGN = {
    "2026-01-01/index.html": "photos",
    "nights/2025-01-01/data.csv": "1,2",
    "nights/mine.html": "mine",
    "figures/logo.svg": "<svg/>",
    ".tmp-mine/thesis.txt": "thesis",
    ".tmp-index.html": "mine",
    ".tmp-photo.png-1-0123abcd": "mine",
    "about.html": "about",
}


def build(folder: Path) -> None:
    """Write a site."""

    def report(shown: NightlyRecord) -> bytes:
        return f'<!doctype html><meta name="generator" content="gpureport 0.1"><title>{shown.page}</title>'.encode()

    site_writing.write_site(folder, NIGHTS, build_trends(NIGHTS), report)


def put(folder: Path, files: dict[str, str]) -> None:
    """Write files of somebody else, older than what killed writers leave."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        for path in (folder / name, (folder / name).parent):
            os.utime(path, (1, 1))


def read(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_others_put_into_a_site_stays(tmp_path: Path) -> None:
    """Whatever its name looks like; only what our own killed writers left is swept."""
    put(tmp_path, {**FOREIGN, ".tmp-nights.html-7-0123abcd": "half"})
    build(tmp_path)
    build(tmp_path)
    found = read(tmp_path)
    assert {name: text for name, text in found.items() if name in FOREIGN} == {
        name: text.encode() for name, text in FOREIGN.items()
    }
    assert ".tmp-nights.html-7-0123abcd" not in found
    assert (site_files.MARKER in found, f"nights/{NIGHTS[0].page}.html" in found) == (True, True)


def test_a_site_from_before_the_marker_goes_on(tmp_path: Path) -> None:
    """Its first page names what made it."""
    build(tmp_path)
    before = read(tmp_path)
    (tmp_path / site_files.MARKER).unlink()
    (tmp_path / "nights.html").write_bytes(before["index.html"])
    build(tmp_path)
    assert read(tmp_path) == before


@pytest.mark.parametrize("page", ["index.html", f"nights/{NIGHTS[1].page}.html", "figures/FIGURE"])
def test_a_page_of_somebody_else_is_refused(page: str, tmp_path: Path) -> None:
    """Before anything is written, with what to do."""
    build(tmp_path / "made")
    figure = next((tmp_path / "made/figures").iterdir()).name
    folder, name = tmp_path / "theirs", page.replace("FIGURE", figure)
    put(folder, {name: "<!doctype html><title>Photos of gpureport</title>"})
    before = read(folder)
    with pytest.raises(RenderError, match="is no page of gpureport") as raised:
        build(folder)
    assert (raised.value.where, read(folder)) == (str(folder / name), before)
    assert raised.value.hint == "choose another folder with --site, or move it away if nobody needs it"


def test_a_first_page_of_somebody_else_is_refused_in_a_site(tmp_path: Path) -> None:
    """The marker says that the folder was ours, not that a page put there since is."""
    build(tmp_path)
    put(tmp_path, {"index.html": "<title>Photos</title>"})
    with pytest.raises(RenderError, match="is no page of gpureport"):
        build(tmp_path)
    assert (tmp_path / "index.html").read_text() == "<title>Photos</title>"
