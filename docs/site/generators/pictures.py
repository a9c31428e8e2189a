"""The pictures of README and tutorial: first screens of reports on the recorded steps, in light and in dark colours.

`make_pages.py --screenshots` makes all of docs/images anew; it needs Chromium. Each picture holds the text that it
shows, so that a test can say that a page has changed since (`tests/browser/test_pictures.py`).
"""

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from PIL.PngImagePlugin import PngInfo

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "docs" / "images"
_STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
_WIDTH = 1280
_BELOW = 24
"""Pixels of background below the last section."""
_COLOURS = 128
_TEXT = "Description"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The upper part of a report.

    Attributes:
        name: what it shows, and with which the name of its file begins.
        sources: folders of the recorded steps; one is a single run, more are compared.
        last: the section that it ends with.
        dark: whether it has dark colours.
    """

    name: str
    sources: tuple[str, ...]
    last: str
    dark: bool = False

    @property
    def file(self) -> Path:
        """Path of the picture."""
        return IMAGES / f"{self.name}{'-dark' if self.dark else ''}.png"


_LIGHT = (
    Picture(name="report", sources=_STEPS, last="gpu-time"),
    Picture(name="step-1-starved", sources=("1-starved/1",), last="worst"),
    Picture(name="step-2-more-workers", sources=_STEPS[:2], last="use"),
)
PICTURES = (*_LIGHT, *(replace(each, dark=True) for each in _LIGHT))


def write_report(sources: Sequence[str], page: Path) -> None:
    """Write the report that a picture shows, as the tutorial does."""
    compared = ["--by", "folder", "--work", "32768:images"] if len(sources) > 1 else []
    words = [sys.executable, "-m", "gpureport", "-q", "report", *sources, *compared, "-o", str(page)]
    subprocess.run(words, cwd=ROOT / "sample_logs/recorded/training_steps", check=True)


def take_picture(browser: "Browser", picture: Picture, page: Path) -> tuple[bytes, str]:
    """Return the upper part of a page as PNG, and the text in it."""
    tab = browser.new_page(viewport={"width": _WIDTH, "height": 1600}, color_scheme="dark" if picture.dark else "light")
    tab.goto(page.as_uri())
    end = tab.locator(f"#{picture.last}").bounding_box()
    assert end is not None, f"{picture.name}: no section {picture.last}"
    sections = f"header.quiet, section:not(#{picture.last} ~ *)"
    text = tab.evaluate(f"[...document.querySelectorAll('{sections}')].map(each => each.innerText.trim()).join('\\n')")
    height = round(end["y"] + end["height"]) + _BELOW
    taken = tab.screenshot(clip={"x": 0, "y": 0, "width": _WIDTH, "height": height})
    tab.close()
    return taken, text


def save_picture(taken: bytes, text: str, file: Path) -> None:
    """Write a picture with few colours, and its text in it."""
    notes = PngInfo()
    notes.add_itxt(_TEXT, text)
    reduced = Image.open(io.BytesIO(taken)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    reduced.save(file, pnginfo=notes, optimize=True)


def read_text(file: Path) -> str:
    """Return the text that a picture shows."""
    with Image.open(file) as image:
        return str(image.info.get(_TEXT, ""))


def make_all() -> None:
    """Make all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = Path(folder) / "report.html"
        for picture in PICTURES:
            write_report(picture.sources, page)
            save_picture(*take_picture(browser, picture, page), picture.file)
            sys.stdout.write(f"{picture.file.relative_to(ROOT)}: {picture.file.stat().st_size} bytes\n")
