"""What Poppler's tools read in a PDF file; tests that need them are skipped where they are not installed."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_FOOT = re.compile(r"gpureport \S+ Page \d+ of \d+")
_WORD = re.compile(r'<word xMin="([^"]*)" yMin="([^"]*)" xMax="([^"]*)" yMax="([^"]*)">(.*?)</word>')
_CLOSE = 1.0
"""Points by which boxes may overlap across."""

_EMPTY = 0.3
"""Share of the height of a box that letters without an accent or a tail leave empty."""

TOOLS = ("pdffonts", "pdfimages", "pdfinfo", "pdftohtml", "pdftoppm", "pdftotext")

needs_poppler = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason="needs the tools of poppler-utils"
)


def _said(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def text(path: Path, page: int | None = None) -> str:
    """Return the text of all pages or of one, its lines joined by single spaces."""
    pages = ["-f", str(page), "-l", str(page)] if page else []
    return " ".join(_said("pdftotext", *pages, path, "-").split())


def draw_first_page(path: Path) -> Path:
    """Return a PNG of the first page, 72 points to an inch, beside the file."""
    _said("pdftoppm", "-r", "72", "-png", "-f", "1", "-singlefile", path, path.with_suffix(""))
    return path.with_suffix(".png")


def body(path: Path) -> str:
    """Return the text of all pages in the order it was set, without what heads and ends each page."""
    pages = _said("pdftotext", "-raw", path, "-").split("\f")
    heads = Counter(line for page in pages for line in page.splitlines()[:2])
    own = {line for line, count in heads.items() if count > len(pages) // 3 or len(pages) <= 2}
    lines = (line for page in pages for line in page.splitlines())
    return "\n".join(line for line in lines if line not in own and not _FOOT.fullmatch(line))


def page_lines(path: Path) -> list[list[str]]:
    """Return the lines of each page, words joined by single spaces, without what heads and ends each page."""
    pages = _said("pdftotext", "-layout", path, "-").split("\f")[:-1]
    lines = [[" ".join(line.split()) for line in page.splitlines() if line.strip()] for page in pages]
    return [page[1 if at else 0 : -1] for at, page in enumerate(lines)]


def info(path: Path) -> dict[str, str]:
    lines = (line.partition(":") for line in _said("pdfinfo", path).splitlines())
    return {name: value.strip() for name, _, value in lines}


def metadata(path: Path) -> str:
    return _said("pdfinfo", "-meta", path)


def catalog(path: Path) -> str:
    """Return the root of the file, in which what a reader needs first is stated."""
    (found,) = re.findall(rb"^<</Type/Catalog.*>>$", path.read_bytes(), re.MULTILINE)
    return str(found, "latin-1")


def structure(path: Path) -> list[str]:
    return re.findall(r"^ *([A-Z][A-Za-z0-9]*)\b", _said("pdfinfo", "-struct", path), re.MULTILINE)


def fonts(path: Path) -> list[tuple[str, str]]:
    """Return the fonts, each with `yes` or `no` for whether it is embedded."""
    rows = [line.split() for line in _said("pdffonts", path).splitlines()[2:]]
    return [(row[0].partition("+")[2], row[-5]) for row in rows]


def images(path: Path) -> list[str]:
    return _said("pdfimages", "-list", path).splitlines()[2:]


def outline(path: Path) -> list[str]:
    return re.findall(r"<item page=[^>]*>(.*?)</item>", _said("pdftohtml", "-xml", "-i", "-stdout", path))


def links(path: Path) -> list[str]:
    found = re.findall(r'<a href="[^"]*#\d+">(.*?)</a>', _said("pdftohtml", "-xml", "-i", "-stdout", path))
    return [re.sub(r"<[^>]*>", "", each) for each in found]


def right_edges(path: Path) -> list[float]:
    """Return where each word ends, in points from the left edge of its page."""
    return [float(edge) for edge in re.findall(r'xMax="([^"]*)"', _said("pdftotext", "-bbox", path, "-"))]


def overlaps(path: Path) -> list[tuple[str, str]]:
    """Return pairs of words of a page whose boxes overlap by more than the room that letters leave empty."""
    pages = _said("pdftotext", "-bbox", path, "-").split("<page ")[1:]
    return [pair for page in pages for pair in _overlapping_words(page)]


def _overlapping_words(page: str) -> Iterator[tuple[str, str]]:
    found = [(*map(float, word[:4]), word[4]) for word in _WORD.findall(page)]
    boxes = sorted(found, key=lambda box: box[1])
    for place, (left, top, right, bottom, text) in enumerate(boxes):
        for other_left, other_top, other_right, other_bottom, other in boxes[place + 1 :]:
            if other_top >= bottom:
                break
            across = min(right, other_right) - max(left, other_left)
            down = min(bottom, other_bottom) - other_top
            if across > _CLOSE and down > _EMPTY * min(bottom - top, other_bottom - other_top):
                yield text, other
