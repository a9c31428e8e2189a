"""Draws the layers of the code that `lint-imports` enforces, from pyproject.toml."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

_PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
_PACKAGE = _PYPROJECT.with_name("gpureport")
_WIDTH, _MARGIN, _GAP, _LINE = 760, 12, 8, 15
_LETTER = 6.3
"""Approximate width of a letter at 11 px; a slightly short line does no harm."""
_SHARED = "values that all layers share"
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #4a5460 }
.room { font-weight: 600; font-size: 13px; fill: #15202b }
.box { fill: #f3f6f9; stroke: #c3ccd6 }
@media (prefers-color-scheme: dark) {
  text { fill: #aab6c2 } .room { fill: #e8eef4 } .box { fill: #1c242d; stroke: #46525f }
}
"""


def draw_rooms() -> str:
    """Return the SVG, with one row per layer; each layer imports only those below it."""
    contracts = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    inner = {room.name: sorted(_list_parts(room)) for room in _PACKAGE.iterdir() if room.is_dir()}
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["gpureport"])
    shared = next(place for place, layer in enumerate(layers) if "importers" in layer) + 1
    inner[_SHARED] = list(_list_rooms(layers[shared:]))
    rows = [*(list(_list_rooms([layer])) for layer in layers[:shared]), [_SHARED]]
    body: list[str] = []
    top = float(_MARGIN)
    for row in rows:
        height = _draw_row(row, inner, top, body)
        top += height + _GAP
    named = 'role="img" aria-label="The layers of gpureport: each imports only those below it"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:.0f}" {named}>'
    return "\n".join([head, f"<style>{_STYLE}</style>", *body, "</svg>\n"])


def _list_rooms(layers: Sequence[str]) -> Iterator[str]:
    """Yield the rooms in layers that are written as in a contract: `(nightly) | (fleet)`."""
    for layer in layers:
        yield from (room.strip(" ()") for room in layer.split("|"))


def _list_parts(room: Path) -> Iterator[str]:
    """Yield the folders of a room."""
    yield from (part.parent.name for part in room.glob("*/__init__.py"))


def _draw_row(row: Sequence[str], inner: dict[str, list[str]], top: float, body: list[str]) -> float:
    """Append the boxes of one layer; return their height."""
    weights = [max(len(room) + 6, sum(len(each) + 2 for each in inner.get(room, [])) ** 0.8) for room in row]
    free = _WIDTH - 2 * _MARGIN - _GAP * (len(row) - 1)
    widths = [free * weight / sum(weights) for weight in weights]
    texts = [
        wrap(", ".join(inner.get(room, [])), max(int((width - 2 * _GAP) / _LETTER), 8))
        for room, width in zip(row, widths, strict=True)
    ]
    height = 26 + _LINE * max(map(len, texts))
    left = float(_MARGIN)
    for room, width, lines in zip(row, widths, texts, strict=True):
        body.append(
            f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height}" rx="4"/>'
            f'<text class="room" x="{left + _GAP:.1f}" y="{top + 17:.1f}">{escape(room)}</text>'
        )
        body.extend(
            f'<text x="{left + _GAP:.1f}" y="{top + 33 + _LINE * place:.1f}">{escape(line)}</text>'
            for place, line in enumerate(lines)
        )
        left += width + _GAP
    return height
