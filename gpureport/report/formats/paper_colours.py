"""Colours that a PDF takes from the style sheet of a theme, so that a theme states each of them once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpureport.errors import RenderError
from gpureport.report.formats import themes
from gpureport.report.formats.theme_files import ThemeFileError, find_theme_file
from gpureport.report.formats.themes import ACCENT

STYLE = "report.css"
_TAKEN = {"--link": "accent", "--busy": "busy"}
"""Colours of the palette by the names that style sheets give them."""

_OPAQUE = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|\Z))|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?"""
    r"""|(?<![\w-])url\(\s*+(?!["'])(?:\\.|[^)\\])*\)?|\\.""",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, strings, addresses and escapes: signs in them part nothing."""
_UP_TO_SIGN = re.compile(r"([^{};]*)([{};])")
_DECLARATION = re.compile(r"\s*(--[\w-]+)\s*:(.*)", re.DOTALL)
_IMPORTANT = re.compile(r" ?! ?important\Z", re.IGNORECASE)
_ROOTS = {"html": 0, ":root": 1, "html:root": 2}
"""Selectors of the whole page, by which of them wins."""
_DARK = re.compile(r"@media(?!.*\bnot\b).*prefers-color-scheme\s*:\s*dark", re.DOTALL | re.IGNORECASE)
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")
_DEEPEST = 8
"""Rules in each other of which a statement knows, so that no nesting fills the memory."""
_LONGEST = 40
"""Most characters of a value or of a rule that are repeated."""


_PIECES = "pieces.typ"
"""The template that read `accent.typ` in earlier versions."""
_IMPORTS_ACCENT = re.compile(r"""^(?!\s*//).*\bimport\s*\(?\s*"[./]*accent\.typ\"""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A custom property of a style sheet, and the rules it stands in, the outermost first."""

    name: str
    value: str
    is_important: bool
    rules: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, int] | None:
        """Which statement of the same name wins, the later of equal ones; None where it is not of the whole page."""
        selectors = self.rules[0].lower().split(",") if len(self.rules) == 1 else []
        ranks = [_ROOTS[each.strip()] for each in selectors if each.strip() in _ROOTS]
        return (self.is_important, max(ranks)) if ranks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperColours:
    """What a style sheet says of the colours of a PDF.

    Attributes:
        taken: hex colours by their names in the palette; those not stated are missing.
        kept: values that are no hex colour by their names in the style sheet: the PDF keeps its own there.
        elsewhere: values that hold for a part of the page or under a condition, other than that of a dark screen, with
            the rule that says so, by their names in the style sheet: the PDF does not take them.
    """

    taken: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, tuple[str, str]] = field(default_factory=dict)


def find_paper_colours(templates: Path | None) -> PaperColours:
    """Return the colours for light pages in the style sheet of a theme.

    Raises:
        RenderError: naming file and line, when the style sheet cannot be used.
    """
    if templates is None:
        return PaperColours()
    with themes.locate_template_errors(templates):
        style = themes.make_environment(templates).get_template(STYLE).render()
    statements = [each for each in _read_statements(style) if each.name in _TAKEN]
    ranked = sorted(((each.rank, each) for each in statements if each.rank), key=lambda pair: pair[0])
    stated = {each.name: each.value for _, each in ranked}
    others = [each for each in statements if not (each.rank or any(map(_DARK.match, each.rules)))]
    return PaperColours(
        taken={_TAKEN[name]: value for name, value in stated.items() if _HEX.fullmatch(value)},
        kept={name: value for name, value in stated.items() if not _HEX.fullmatch(value)},
        elsewhere={
            each.name: (each.value, _name_rule(each.rules))
            for each in others
            if each.value.lower() != stated.get(each.name, "").lower()
        },
    )


def explain_kept_colours(templates: Path) -> str:
    """Return in one line what of a theme's colours a PDF does not take; nothing where it takes all.

    Raises:
        RenderError: as `find_paper_colours`.
    """
    found = find_paper_colours(templates)
    said = []
    if found.kept:
        names = " and ".join(f"{name} ({value[:_LONGEST]})" for name, value in found.kept.items())
        said.append(f"the PDF keeps its own colour for {names}, which is no hex colour such as #5b2a86")
    if found.elsewhere:
        stated = found.elsewhere.items()
        names = " and ".join(f"{name} ({value[:_LONGEST]}) of {rule[:_LONGEST]}" for name, (value, rule) in stated)
        said.append(f"the PDF does not take {names}; state it in :root outside any @ rule")
    importing = _find_accent_imports(templates)
    if (templates / ACCENT).is_file():
        if _PIECES not in importing:
            said.append(f"{ACCENT} is no longer read; state --link in {STYLE}")
    elif importing:
        name, line = next(iter(importing.items()))
        said.append(f"{ACCENT}, which {name}:{line} imports, is no longer shipped; state --link in {STYLE}")
    return f"{templates}: {'; '.join(said)}" if said else ""


def refuse_gone_accent(templates: Path) -> None:
    """Refuse a theme one of whose templates for PDFs imports a file that earlier versions shipped.

    Raises:
        RenderError: naming file and line.
    """
    if (templates / ACCENT).is_file():
        return
    for name, line in _find_accent_imports(templates).items():
        what = f"imports {ACCENT}, which is no longer shipped"
        hint = f'write #let accent = rgb(json("/colours.json").accent) there, and state --link in {STYLE}'
        raise RenderError(f"{templates / name}:{line}", what, hint)


def _find_accent_imports(templates: Path) -> dict[str, int]:
    """Return the templates of a theme for PDFs that import `accent.typ`, with the line that does."""
    found = {}
    for path in sorted((*templates.glob("*.typ"), *templates.glob("sections/*.typ"))):
        name = str(path.relative_to(templates))
        try:
            text = find_theme_file(templates, name)
            content = text.read_text(encoding="utf-8") if text else ""
        except (OSError, ValueError, ThemeFileError):
            # what keeps it from being read is an error of its own where it is set
            continue
        if match := _IMPORTS_ACCENT.search(content):
            found[name] = content.count("\n", 0, match.end()) + 1
    return found


def _name_rule(rules: tuple[str, ...]) -> str:
    """Return the rule that keeps a statement from being one of the whole page: the first condition, or a selector."""
    return next((rule for rule in rules if rule.startswith("@")), rules[-1] if rules else "no rule")


def _read_statements(style: str) -> Iterator[_Statement]:
    """Yield the custom properties of a style sheet in its order."""
    plain = _OPAQUE.sub(lambda found: " " if found["comment"] else '""', style)
    rules: list[str] = []
    for text, sign in _UP_TO_SIGN.findall(plain + "}"):
        if sign == "{":
            rules.append(" ".join(text.split()))
            continue
        if declared := _DECLARATION.fullmatch(text):
            stated = " ".join(declared[2].split())
            value = _IMPORTANT.sub("", stated)
            yield _Statement(declared[1], value, value != stated, tuple(rules[:_DEEPEST]))
        if sign == "}" and rules:
            rules.pop()
