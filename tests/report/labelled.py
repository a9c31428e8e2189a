"""Figures of a report with what each is called and whose it is, as a reader of any format finds them."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from gpureport.number_format import ENERGY, GPU_TIME
from gpureport.report.sections.findings import loss_wording
from gpureport.report.wording import display, terms

LAST = "last step"
"""Whose a figure of a sentence or a tile is."""
_UNITS = {
    **{name: size / 3600 for name, size in (*GPU_TIME, *ENERGY)},
    "GiB": 1024.0,
    "MiB": 1.0,
    "MHz": 1.0,
    "W": 1.0,
    "%": 1.0,
}
_FIGURE = r"[-−]?[\d,]+(?:\.\d+)?"
_UNIT = r" ?(?:%|GPU-(?:h|min|s|ms)|[mkM]?Wh|[GM]iB|MHz|W)"
_AMOUNT = re.compile(rf"^({_FIGURE})({_UNIT})?$")
_SHARE = r"(\d+(?:\.\d+)?%)"
_SENTENCES = (
    (
        rf"(?:[Uu]p to|[Aa]t least) {_SHARE} of (?:the )?[\d.,]+ GPU-\w+(?: a run)?(?: observed)? was lost",
        "lost",
    ),
    (rf"(?:up to|at least) {_SHARE} of all GPU-hours", "lost"),
    (rf"Mean utilisation of (?:the whole run|\d+ whole runs): {_SHARE}", "GPU utilisation"),
    (rf"{terms.CLASSES['short_pauses']} took {_SHARE}", f"time: {terms.CLASSES['short_pauses']}"),
    (rf"{_SHARE} of all GPU time is listed as idle", f"time: {terms.CLASSES['idle']}"),
    (rf"idle gaps below hold {_SHARE}", f"time: {terms.CLASSES['idle']}"),
    (rf"Idle share {_SHARE} \(?of the time covered", "Idle share"),
)
_LOST = re.compile(r"was lost: ([^.]*(?:\.\d[^.]*)*)\.")
_STILL = re.compile(rf"(?:Up to|At least) {_SHARE} of [^:]{{0,60}}? in [^:]{{1,40}}?: ([^.]*(?:\.\d[^.]*)*)\.")
_OF_A_GPU = {"Utilisation mean": "GPU utilisation", "Use up to 5%": "Idle share", "Power mean": "Power of a GPU"}
_OTHER = {"Verdict", "Since first", "Runs", "", "95% interval"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One figure: what it is called, whose it is, as it is printed, and where."""

    label: str
    of: str
    text: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table as it is read."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def amount(text: str) -> tuple[float, float] | None:
    """Return a printed figure with half a unit of its last digit; None where it is none."""
    found = _AMOUNT.match(text.replace(display.GAP, " ").replace("\\", "").strip())
    if not found:
        return None
    scale = _UNITS.get((found[2] or "").strip(), 1.0)
    value = float(found[1].replace(",", "").replace("−", "-"))
    return value * scale, 0.5 * 10.0 ** -len(found[1].partition(".")[2]) * scale


class _Tables(HTMLParser):
    """Collects the tables of a page: what they are called, heads and cells without what is small in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Grid] = []
        self.title, self.lines, self.cell, self.small = "", [[""]], False, False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            self.title = dict(attrs).get("aria-label") or self.title
        elif tag == "table":
            self.lines = []
        elif tag == "tr":
            self.lines.append([])
        elif tag in {"th", "td"}:
            self.lines[-1].append("")
            self.cell = True
        self.small |= tag == "small"

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            head, *rows = self.lines
            # a row that is words across all columns holds no figure of one
            full = (tuple(row) for row in rows if len(row) == len(head))
            self.found.append(Grid(title=self.title, columns=tuple(head), rows=tuple(full)))
        self.cell &= tag not in {"th", "td"}
        self.small &= tag != "small"

    def handle_data(self, data: str) -> None:
        if self.cell and not self.small:
            self.lines[-1][-1] += data


def _of_markdown(text: str) -> Iterator[Grid]:
    title, rows = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip().partition("<br>")[0] for cell in line.strip("|").split("|")))
            continue
        if rows:
            yield Grid(title=title, columns=rows[0], rows=tuple(rows[2:]))
        rows = []
        title = line.strip("# ") if line.startswith("#") else title


def _of_content(content: object, title: str = "") -> Iterator[Grid]:
    """Yield every table of the content, by the label of what it stands in."""
    if isinstance(content, list):
        for entry in content:
            yield from _of_content(entry, title)
    elif isinstance(content, dict):
        if {"columns", "bars"} <= content.keys():
            bars = tuple((bar["label"], bar["total"], bar["beside"]) for bar in content["bars"])
            yield Grid(title="bars", columns=("Step", *content["columns"]), rows=bars)
        if {"columns", "rows"} <= content.keys():
            rows = tuple((row["head"]["text"], *(cell["text"] for cell in row["cells"])) for row in content["rows"])
            yield Grid(title=title, columns=tuple(content["columns"]), rows=rows)
        for value in content.values():
            yield from _of_content(value, content.get("label") or title)


def grids(text: str, extension: str) -> list[Grid]:
    """Return the tables of a format; of text for terminals none, whose columns are folded."""
    if extension == ".html":
        return _Tables(text).found
    if extension == ".json":
        return list(_of_content(json.loads(text)))
    return list(_of_markdown(text)) if extension == ".md" else []


def figures(text: str, extension: str, steps: Sequence[str]) -> Iterator[Labelled]:
    """Yield every labelled figure of a report.

    Args:
        text: of the report; the words alone of a page, if its tables are not wanted.
        extension: its format.
        steps: its steps, the last of which sentences and tiles speak of.
    """
    for grid in grids(text, extension):
        for label, of, cell in _cells(grid, steps):
            if amount(cell) is not None:
                yield Labelled(label=_plain(label), of=_plain(of), text=cell, place=f"{extension} {grid.title}")


def _plain(text: str) -> str:
    """Return text with ordinary spaces, and without what marks its letters in Markdown."""
    return " ".join(text.replace(display.GAP, " ").replace("\\", "").split())


def changes(text: str, place: str, labels: Iterable[str], ends: tuple[str, str]) -> Iterator[Labelled]:
    """Yield the figures of two steps in notes on what else changed."""
    plain = _plain(re.sub(r"[|*]", " ", text))
    for label in labels:
        noun = re.escape(display.lower_first(label))
        value = rf"({_FIGURE}(?:{_UNIT})?)"
        for found in re.finditer(rf"(?<!per ){noun} {value} to {value}", plain):
            for of, figure in zip(ends, found.groups(), strict=True):
                yield Labelled(label=label, of=of, text=figure, place=f"{place}: {found[0]}")


def _cells(grid: Grid, steps: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what each cell is called, whose it is, and its text."""
    if {"Before", "After"} <= {*grid.columns}:
        base, _, step = grid.title.removeprefix("Figures of ").partition(" to ")
        for head, before, after, *_ in grid.rows:
            yield from ((head, base, before), (head, step, after))
    for head, *cells in grid.rows if "Before" not in grid.columns else ():
        for column, cell in zip(grid.columns[1:], cells, strict=True):
            if grid.columns[0] == "Step" and column not in _OTHER:
                yield column, head.partition(" (")[0], cell
            elif "GPU time" in grid.columns:
                name = "GPU-hours" if column == "GPU time" else f"time: {column}"
                yield name, steps[-1] if len(steps) == 1 and head == grid.rows[0][0] else head, cell
            elif grid.columns[0] == "GPU" and len(steps) == 1:
                yield _OF_A_GPU.get(column, column), steps[0] if len(grid.rows) == 1 else head, cell


def sentences(text: str, place: str, step: str) -> Iterator[Labelled]:
    """Yield the figures of sentences and tiles, which speak of the last step."""
    plain = _plain(re.sub(r"[|*]", " ", text))
    for pattern, label in _SENTENCES:
        for found in re.finditer(pattern, plain):
            yield Labelled(label=label, of=step, text=found[1], place=f"{place}: {found[0]}")
    told = [found[1] for found in _LOST.finditer(plain)]
    for found in _STILL.finditer(plain):
        yield Labelled(label="lost", of=step, text=found[1], place=f"{place}: {found[0]}")
        told.append(found[2])
    for classes in told:
        for name, reason in loss_wording.REASONS.items():
            for share in re.findall(rf"{_SHARE} {reason}(?:,| and|;|$)", classes):
                yield Labelled(label=f"time: {terms.CLASSES[name]}", of=step, text=share, place=f"{place}: {classes}")


def disagreements(found: Sequence[Labelled]) -> list[tuple[Labelled, Labelled]]:
    """Return pairs of one label and one owner whose figures differ by more than both are rounded."""
    held: dict[tuple[str, str], list[Labelled]] = {}
    for each in found:
        held.setdefault((each.label, each.of), []).append(each)
    return [(group[0], each) for group in held.values() for each in group[1:] if not _agree(group[0].text, each.text)]


def _agree(first: str, second: str) -> bool:
    one, other = amount(first), amount(second)
    assert one is not None
    assert other is not None
    return abs(one[0] - other[0]) <= one[1] + other[1] + 1e-9
