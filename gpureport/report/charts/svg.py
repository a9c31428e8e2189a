"""Matplotlib's SVG made fit for a page: small, without style attributes, and in the page's own colours.

A page may forbid style attributes (a content security policy does) and then a figure that uses them turns black;
presentation attributes always hold.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from xml.etree import ElementTree as ET

from gpureport.report.charts.palette import COLOURS

_LINK = "{http://www.w3.org/1999/xlink}href"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
FONT_FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
"""Fonts of every figure: those of the page, and on paper the one that is embedded."""

_DROPPED_ATTRIBUTES = {_SPACE, "clip-path", "id"}
_DROPPED_TAGS = {"metadata", "style"}
_DROPPED_STYLES = {"stroke-linejoin", "stroke-linecap", "stroke-miterlimit", "white-space", "font-family"}
_DEFAULTS = {("opacity", "1"), ("fill-opacity", "1"), ("stroke-dasharray", "none"), ("text-anchor", "start")}
_COLOURS = {colour.stand_in: colour for colour in COLOURS}
_COMMAND = re.compile(r"([MLCQZz])([^MLCQZz]*)")
_STEPS = 4096
"""Steps of lines whose text is kept."""

_DECIMAL = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def slim_svg(text: str, *, prefix: str, label: str) -> str:
    """Return an SVG element to put into a page.

    Args:
        text: document as matplotlib writes it.
        prefix: begins every id, unlike that of any other figure of the page.
        label: what the figure shows, for those who cannot see it.
    """
    root = ET.fromstring(text)  # noqa: S314 - the document was drawn a moment ago, not received
    width, height = root.get("viewBox", "0 0 0 0").split()[2:]
    for name in list(root.attrib):
        if name != "viewBox":
            del root.attrib[name]
    attributes = {
        "viewBox": f"0 0 {_one_decimal(width)} {_one_decimal(height)}",
        "width": _one_decimal(width),
        "height": _one_decimal(height),
        "role": "img",
        "aria-label": label,
        "font-family": FONT_FAMILY,
        "fill": "none",
    }
    body = "".join(part for child in root for part in _element(child, prefix))
    return f"<svg{_format_attributes(attributes)}><title>{escape(label)}</title>{body}</svg>"


def _element(node: ET.Element, prefix: str) -> Iterator[str]:
    """Yield an element as text; groups without style or name give way to their children."""
    tag = node.tag.rpartition("}")[2]
    if tag in _DROPPED_TAGS:
        return
    attributes = _slim_attributes(node, tag, prefix)
    inner = "".join(part for child in node for part in _element(child, prefix)) + escape((node.text or "").strip())
    if tag in {"g", "defs"} and not inner:
        return
    if tag == "g" and not attributes:
        yield inner
    else:
        yield (
            f"<{tag}{_format_attributes(attributes)}>{inner}</{tag}>"
            if inner
            else f"<{tag}{_format_attributes(attributes)}/>"
        )


def _format_attributes(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())


def _slim_attributes(node: ET.Element, tag: str, prefix: str) -> dict[str, str]:
    """Return an element's attributes, its style among them, those without effect left out."""
    found: dict[str, str] = {}
    classes: list[str] = []
    # Matplotlib numbers its groups; only ids that something refers to, or that we gave, are of use.
    named = tag != "g" or node.get("id", "").startswith("mark-")
    for name, value in node.attrib.items():
        if name == "id" and named:
            found["id"] = f"{prefix}-{value}"
        elif name == _LINK:
            found["href"] = f"#{prefix}-{value[1:]}"
        elif name == "style":
            found |= _style_attributes(value, prefix, classes)
        elif name in {"fill", "stroke"}:
            found[name] = _colour(name, value, prefix, classes)
        elif name == "d":
            found["d"] = _slim_path(value)
        elif name not in _DROPPED_ATTRIBUTES and not value.startswith("rotate(-0 "):
            found[name] = _DECIMAL.sub(lambda match: _one_decimal(match.group()), value)
    return found | ({"class": " ".join(classes)} if classes else {})


def _style_attributes(style: str, prefix: str, classes: list[str]) -> dict[str, str]:
    """Return a style attribute as presentation attributes; named colours go to `classes`."""
    found: dict[str, str] = {}
    for declaration in filter(None, (part.strip() for part in style.split(";"))):
        name, _, value = (piece.strip() for piece in declaration.partition(":"))
        if name == "font":
            found |= _font_attributes(value)
        elif name in {"fill", "stroke"}:
            found[name] = _colour(name, value, prefix, classes)
        elif name not in _DROPPED_STYLES and (name, value) not in _DEFAULTS:
            found[name] = _one_decimal(value) if _DECIMAL.fullmatch(value) else value
    return found


def _font_attributes(value: str) -> dict[str, str]:
    """Return size and weight of a font shorthand; the family is the page's."""
    size = re.search(r"([\d.]+)px", value)
    found = {"font-size": _one_decimal(size.group(1))} if size else {}
    return found | ({"font-weight": "600"} if re.match(r"(bold|[67]00)\b", value) else {})


def _colour(name: str, value: str, prefix: str, classes: list[str]) -> str:
    if value.startswith("url(#"):
        return f"url(#{prefix}-{value[5:]}"
    colour = _COLOURS.get(value)
    if colour is None:
        return value
    if colour.css:
        classes.append(f"{name[0]}-{colour.css}")
    return colour.fixed


def _one_decimal(value: str) -> str:
    text = f"{float(value):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _slim_path(data: str) -> str:
    """Return path data with short numbers, lines relative between rounded points."""
    commands = _COMMAND.findall(data)
    if any(letter in "CQ" for letter, _ in commands):
        return " ".join(_DECIMAL.sub(lambda match: _one_decimal(match.group()), data).split())
    return "".join(_relative_commands(commands))


def _relative_commands(commands: list[tuple[str, str]]) -> Iterator[str]:
    """Yield relative commands; rounding absolute points first keeps errors from adding up."""
    x = y = start_x = start_y = 0
    for letter, numbers in commands:
        if letter in "Zz":
            x, y = start_x, start_y
            yield "z"
            continue
        across, along = numbers.split()
        new_x, new_y = round(float(across) * 10), round(float(along) * 10)
        if letter == "M":
            start_x, start_y = new_x, new_y
            yield f"M{_tenths(new_x)} {_tenths(new_y)}"
        else:
            yield _relative_line(new_x - x, new_y - y)
        x, y = new_x, new_y


@lru_cache(_STEPS)
def _relative_line(right: int, down: int) -> str:
    """Return a line by so many tenths; the steps of a strip repeat."""
    if down == 0:
        return f"h{_tenths(right)}" if right else ""
    return f"v{_tenths(down)}" if right == 0 else f"l{_tenths(right)} {_tenths(down)}"


def _tenths(value: int) -> str:
    whole, tenth = divmod(abs(value), 10)
    text = f"{whole or ''}.{tenth}" if tenth else str(whole)
    return f"-{text}" if value < 0 else text
