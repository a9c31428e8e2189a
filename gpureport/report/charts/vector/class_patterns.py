"""Fills of the classes of GPU time in SVG: a colour, and a hatch that says the same without colour."""

from collections.abc import Collection

from gpureport.report.charts.palette import CLASSES, OTHER_CLASS, ClassFill
from gpureport.report.charts.vector.vector_elements import write_document

_TILES = {
    "////": (6, "M-1 1L1 -1M0 6L6 0M5 7L7 5", 1.4),
    "//": (8, "M-1 1L1 -1M0 8L8 0M7 9L9 7", 0.8),
    "\\\\": (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1", 0.9),
    "\\\\\\\\": (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1", 1.6),
    "||": (5, "M2.5 0V5", 1.2),
    "--": (4, "M0 2H4", 0.9),
    "xx": (6, "M0 0L6 6M0 6L6 0", 0.9),
    "..": (5, "M1.5 2.5h1.6", 1.6),
    "oo": (6, "M2 3h2.2", 2.2),
    "//--": (6, "M0 6L6 0M0 3H6", 0.8),
}
"""Side of the tile of each hatch, its path, and the thickness of its lines."""

_SWATCH = (16.0, 10.0)


def find_fill(key: str) -> ClassFill:
    """Return the fill of a class."""
    return CLASSES.get(key, OTHER_CLASS)


def define_patterns(keys: Collection[str], prefix: str) -> str:
    """Return the hatches that some classes need; `prefix` begins their ids."""
    tiles = "".join(_write_pattern(key, prefix) for key in dict.fromkeys(keys) if find_fill(key).hatch)
    return f"<defs>{tiles}</defs>" if tiles else ""


def paint_shape(key: str, prefix: str, shape: str) -> str:
    """Return a shape (`rect x="0" width="9"`) in the fill of a class: its ground, and the hatch upon it."""
    fill = find_fill(key)
    hatch = f'<{shape} fill="url(#{prefix}-{key})"/>' if fill.hatch else ""
    return f'<{shape} fill="{fill.colour}"/>{hatch}'


def draw_swatch(key: str, label: str, prefix: str) -> str:
    """Return a sample of the fill of a class, for a legend."""
    width, height = _SWATCH
    box = f'rect width="{width:g}" height="{height:g}" rx="2"'
    return write_document(
        [define_patterns([key], prefix), paint_shape(key, prefix, box)], width=width, height=height, label=label
    )


def _write_pattern(key: str, prefix: str) -> str:
    fill = find_fill(key)
    side, path, thickness = _TILES[fill.hatch]
    ink = f'stroke="{fill.text}" stroke-width="{thickness:g}" stroke-opacity=".4"'
    return (
        f'<pattern id="{prefix}-{key}" width="{side}" height="{side}" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" {ink}/></pattern>'
    )
