"""The colours that a PDF takes from the style sheet of a theme."""

from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.report.formats.paper_colours import explain_kept_colours, find_paper_colours
from gpureport.report.formats.themes import check_theme
from tests.report.formats.test_themes import guided, theme

DARK = "@media screen and (prefers-color-scheme: dark) { :root { --link: #222222 } }"


def test_the_theme_of_the_guide_colours_a_pdf(tmp_path: Path) -> None:
    """Its style sheet is the only place that states a colour."""
    found = find_paper_colours(guided(tmp_path / "theme"))
    assert (found.taken, found.kept) == ({"accent": "#5b2a86", "busy": "#5b2a86"}, {})


@pytest.mark.parametrize(
    ("style", "accent"),
    [
        (":root { --link: #5b2a86 }", "#5b2a86"),
        (":root{--link:#ABC}", "#ABC"),
        (":root { --link: #111111 } :root { --link: #5b2a86; }" + DARK, "#5b2a86"),
        (DARK + ":root { --ink: #000; --link: #5b2a86 }", "#5b2a86"),
        ("@import 'a.css'; :root { --link: #5b2a86 } p { --link: #111111 } /* :root { --link: #222 } */", "#5b2a86"),
        ("/* ours { */ :root { --link: #5b2a86 /* plum */; content: '}'; --ink: #111111", "#5b2a86"),
        (":root, :host { --link: #5b2a86 }", "#5b2a86"),
        ("html { --link: #5b2a86 }", "#5b2a86"),
        (":ROOT { --link: #5b2a86 !important } :root { --link: #111111 }", "#5b2a86"),
        (":root { --link: #5b2a86 } html { --link: #111111 }", "#5b2a86"),
        (r"""p { content: "\"{" } :root { --link: #5b2a86 }""", "#5b2a86"),
        ("p { mask: url(data:a/*b) } :root { --link: #5b2a86 } p { mask: url(c*/d;e) }", "#5b2a86"),
        (f":root {{ {DARK} --link: #5b2a86 }}", "#5b2a86"),
        (DARK, None),
        ("p { color: #111111 }", None),
    ],
)
def test_the_last_statement_for_paper_counts(style: str, accent: str | None, tmp_path: Path) -> None:
    """Not what holds on a dark screen, of another element, or in a comment."""
    found = find_paper_colours(theme(tmp_path, report_css=style))
    assert (found.taken.get("accent"), found.kept) == (accent, {})


@pytest.mark.parametrize(
    ("style", "rule"),
    [
        ("@media screen { :root { --link: #5b2a86 } }", "@media screen"),
        ("@layer brand { @supports (color: red) { :root { --link: #5b2a86 } } }", "@layer brand"),
        (":root { @media print { --link: #5b2a86 } }", "@media print"),
        (
            "@media not (prefers-color-scheme: dark) { :root { --link: #5b2a86 } }",
            "@media not (prefers-color-scheme: dark)",
        ),
        ("body { --link: #5b2a86 }", "body"),
    ],
)
def test_a_colour_stated_elsewhere_is_said(style: str, rule: str, tmp_path: Path) -> None:
    """The page may show what the PDF does not take; not where the PDF takes the same colour, or on a dark screen."""
    said = "the PDF does not take --link (#5b2a86) of"
    assert f"{said} {rule}; state it in :root" in explain_kept_colours(theme(tmp_path, report_css=style + DARK))
    assert explain_kept_colours(theme(tmp_path, report_css=style + ":root { --link: #5B2A86 }")) == ""


@pytest.mark.parametrize("value", ["teal", "rgb(91 42 134)", "var(--brand)", "#5b2a8", "#5b2a8680", '#fff")#panic("'])
def test_what_is_no_plain_hex_colour_is_kept_out(value: str, tmp_path: Path) -> None:
    """The value is told, and never reaches a template."""
    found = find_paper_colours(theme(tmp_path, colours_css=f":root {{ --link: {value}; --busy: #5b2a86 }}"))
    assert (found.taken, list(found.kept)) == ({"busy": "#5b2a86"}, ["--link"])


def test_a_style_sheet_runs_in_the_sandbox(tmp_path: Path) -> None:
    """It is the template that it is for a page: it cannot leave the folder, and a mistake names file and line."""
    (tmp_path / "secret.css").write_text(":root { --link: #5b2a86 }")
    folder = tmp_path / "theme"
    folder.mkdir()
    (folder / "report.css").symlink_to(tmp_path / "secret.css")
    with pytest.raises(RenderError, match="leads out of the folder of the theme"):
        find_paper_colours(folder)
    (folder / "report.css").unlink()
    with pytest.raises(RenderError, match=r"report\.css:2: "):
        find_paper_colours(theme(folder, report_css="\n{{ ''.__class__.__mro__ }}"))


def test_an_accent_file_of_an_earlier_version_is_said(tmp_path: Path) -> None:
    """Beside anything else, also where a template asks for it that is not there; not where a theme reads its own."""
    logo = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    own = theme(tmp_path / "own", logo_svg=logo, accent_typ='#let accent = rgb("#5b2a86")')
    assert explain_kept_colours(own) == f"{own}: accent.typ is no longer read; state --link in report.css"
    theme(own, pieces_typ='#import "accent.typ": accent')
    assert explain_kept_colours(own) == ""
    gone = theme(tmp_path / "gone", pieces_typ='// #import "accent.typ"\n#import "accent.typ": accent')
    said = "accent.typ, which pieces.typ:2 imports, is no longer shipped; state --link in report.css"
    assert explain_kept_colours(gone) == f"{gone}: {said}"


def test_a_theme_of_an_accent_file_alone_is_told_what_to_do(tmp_path: Path) -> None:
    """It sets nothing any more."""
    with pytest.raises(RenderError, match=r"\(found: accent\.typ\); state --link in report\.css, as accent"):
        check_theme(theme(tmp_path, accent_typ='#let accent = rgb("#5b2a86")'))
