"""Colours that a PDF takes from the style sheet of a theme, so that a theme states each of them once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpureport.report.formats import themes

STYLE = "report.css"
_TAKEN = {"--link": "accent", "--busy": "busy"}
"""Colours of the palette by the names that style sheets give them."""

_COMMENT_OR_STRING = re.compile(r"""/\*.*?\*/|"[^"\n]*"|'[^'\n]*'""", re.DOTALL)
_UP_TO_BRACE = re.compile(r"([^{}]*)([{}])")
_DECLARATION = re.compile(r"(?:^|(?<=[;\s]))(--[\w-]+)\s*:([^;]*)")
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")
_LONGEST = 40
"""Most characters of a value that are repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperColours:
    """What a style sheet says of the colours of a PDF.

    Attributes:
        taken: hex colours by their names in the palette; those not stated are missing.
        kept: values that are no hex colour by their names in the style sheet: the PDF keeps its own there.
    """

    taken: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)


def find_paper_colours(templates: Path | None) -> PaperColours:
    """Return the colours for light pages in the style sheet of a theme.

    Raises:
        RenderError: naming file and line, when the style sheet cannot be used.
    """
    if templates is None:
        return PaperColours()
    with themes.locate_template_errors(templates):
        style = themes.make_environment(templates).get_template(STYLE).render()
    stated = {name: value for name, value in _read_root_properties(style) if name in _TAKEN}
    return PaperColours(
        taken={_TAKEN[name]: value for name, value in stated.items() if _HEX.fullmatch(value)},
        kept={name: value for name, value in stated.items() if not _HEX.fullmatch(value)},
    )


def explain_kept_colours(templates: Path) -> str:
    """Return in one line which colours of a theme a PDF does not take; nothing where it takes all.

    Raises:
        RenderError: as `find_paper_colours`.
    """
    kept = find_paper_colours(templates).kept
    if not kept:
        return ""
    names = " and ".join(f"{name} ({value[:_LONGEST]})" for name, value in kept.items())
    return f"{templates}: the PDF keeps its own colour for {names}, which is no hex colour such as #5b2a86"


def _read_root_properties(style: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of the custom properties of `:root` outside any `@media`, in the order of the sheet."""
    selector, depth = "", 0
    plain = _COMMENT_OR_STRING.sub(lambda found: " " if found[0].startswith("/*") else '""', style)
    for text, brace in _UP_TO_BRACE.findall(plain + "}"):
        if depth == 1 and selector == ":root":
            yield from ((name, " ".join(value.split())) for name, value in _DECLARATION.findall(text))
        if depth == 0:
            selector = text.rpartition(";")[2].strip()
        depth = depth + 1 if brace == "{" else max(depth - 1, 0)
