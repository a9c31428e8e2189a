"""Templates of a person: they win one by one, and a mistake names its file and line."""

import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from gpureport import resources
from gpureport.errors import RenderError
from gpureport.report.charts import palette
from gpureport.report.formats import html, themes
from gpureport.report.model.report_content import Report

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "how-to" / "themes.md").read_text(encoding="utf-8")


def theme(folder: Path, **files: str) -> Path:
    """Write templates into a folder; `_` stands for the full stop of a name."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


def guided(folder: Path) -> Path:
    """Write the theme of the how-to page, as it stands there."""
    shown = dict(re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
    theme(folder, report_html=shown["html"], report_css=shown["css"], logo_svg=shown["svg"])
    return folder


def test_the_theme_of_the_guide_works(report: Report, tmp_path: Path) -> None:
    """Logo, footer and colours are in the page; all else is as shipped."""
    folder = guided(tmp_path / "theme")
    themes.check_theme(folder)
    page, plain = html.render(report, folder), html.render(report)
    assert '<img src="data:image/svg+xml;base64,' in page
    assert "Example Ltd, platform team" in page
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (shipped,) = re.findall(r"<style>(.*?)</style>", plain, re.DOTALL)
    assert style.startswith(shipped)
    assert style.index("--busy: #5b2a86") > style.index("--busy: #0072b2")
    body = re.compile(r"<main>.*</main>", re.DOTALL)
    assert body.findall(page) == body.findall(plain)


def test_the_guide_names_every_block_and_colour_it_may() -> None:
    """Blocks and colours of the guide are those of the templates."""
    templates = resources.find_shipped_folder("templates")
    blocks = set(re.findall(r"{% block (\w+) %}", (templates / "report.html").read_text(encoding="utf-8")))
    assert {name for name in blocks if f"| `{name}` |" not in GUIDE} == set()
    style = (templates / "colours.css").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"`(--[a-z]+)`", GUIDE) if f"{name}: " not in style] == []


def test_a_colour_of_the_charts_has_one_home() -> None:
    """No template repeats what the palette holds, and the site of these pages has the same accent."""
    shipped = resources.find_shipped_folder("templates")
    shared = {name: value for name, value in palette.SHARED.items() if value != palette.PAPER.fixed}
    files = {path: path.read_text(encoding="utf-8").lower() for path in shipped.rglob("*.*")}
    assert [(path.name, name) for path, text in files.items() for name, value in shared.items() if value in text] == []
    site = (ROOT / "docs/site/theme/assets/gpureport.css").read_text(encoding="utf-8")
    for name in ("accent", "accent_dark", "busy", "busy_dark"):
        assert f": {shared[name]};" in site


def test_colours_alone_can_be_replaced(report: Report, tmp_path: Path) -> None:
    """A theme of one file sets the colours of the page, whose style stays as shipped."""
    page = html.render(report, theme(tmp_path, colours_css=":root { --link: teal }"))
    assert "--link: teal" in page
    assert "--paper: #fff" not in page
    assert ".tiles {" in page


def test_a_file_of_parts_replaces_parts(report: Report, tmp_path: Path) -> None:
    """The page shipped uses a person's macros, and takes the others from the file shipped."""
    parts = """{% import 'shipped/parts.html' as shipped %}
{% macro table(content, label) %}<table title="{{ label }}"></table>{% endmacro %}
{% set command, facts, link = shipped.command, shipped.facts, shipped.link %}
{% set card, canvas, fold = shipped.card, shipped.canvas, shipped.fold %}
{% set chip, beneath, panels, dots = shipped.chip, shipped.beneath, shipped.panels, shipped.dots %}
"""
    page = html.render(report, theme(tmp_path, parts_html=parts))
    assert '<table title="GPU time by class"></table>' in page
    assert 'id="F1"' in page


@pytest.mark.parametrize(
    ("files", "line", "what"),
    [
        ({"report_html": "<p>\n{% if %}</p>"}, "report.html:2", "Expected an expression"),
        ({"report_html": "<p>\n\n{{ report.titel }}"}, "report.html:3", "has no attribute 'titel'"),
        ({"report_html": "{{ reprot.title }}"}, "report.html:1", "'reprot' is undefined"),
        ({"report_html": "\n{% include 'logo.html' %}"}, "report.html:2", "logo.html"),
        ({"report_html": "\n\n{{ picture('logo.svg') }}"}, "report.html:3", "no picture 'logo.svg'"),
        ({"report_html": "{{ 1 / 0 }}"}, "report.html:1", "division by zero"),
        ({"report_html": "{{ report.title | shout }}"}, "report.html:1", "No filter named 'shout'"),
        ({"report_html": "{% extends 'report.html' %}"}, "report.html:1", "shipped"),
        ({"report_css": "body {}\n{% include 'report.css' %}"}, "report.css:2", "shipped"),
        ({"report_css": "body {\n{{ colour }}"}, "report.css:2", "'colour' is undefined"),
    ],
)
def test_a_mistake_names_file_and_line(
    files: dict[str, str], line: str, what: str, report: Report, tmp_path: Path
) -> None:
    """One line: the person's file, the line in it, what is wrong, what to do."""
    folder = theme(tmp_path / "theme", **files)
    with pytest.raises(RenderError) as raised:
        html.render(report, folder)
    assert raised.value.where == str(folder / line)
    assert what in raised.value.what
    assert "\n" not in str(raised.value)


def test_a_folder_is_checked_before_any_work(tmp_path: Path) -> None:
    """No folder, one that replaces nothing, a mistake of syntax, and bytes that are no text are found at once."""
    with pytest.raises(RenderError, match="no such folder"):
        themes.check_theme(tmp_path / "none")
    with pytest.raises(
        RenderError, match=r"no template of a name that is used \(found: Report\.html\); did you mean report\.html\?"
    ):
        themes.check_theme(theme(tmp_path / "other", Report_html="<p>"))
    with pytest.raises(RenderError, match=r"report\.html:2: "):
        themes.check_theme(theme(tmp_path / "syntax", report_html="\n{% for %}"))
    folder = theme(tmp_path / "bytes", report_html="")
    (folder / "report.html").write_bytes(b"<p>\n<p>\xff")
    with pytest.raises(RenderError, match=r"report\.html:2: is not text as UTF-8"):
        themes.check_theme(folder)


def test_copies_of_what_is_shipped_are_a_theme(report: Report, tmp_path: Path) -> None:
    """Where a person begins: each file as it is, checked and rendered to the same page."""
    folder = tmp_path / "copies"
    copytree(resources.find_shipped_folder("templates"), folder)
    themes.check_theme(folder)
    assert html.render(report, folder) == html.render(report)


def test_a_fault_of_ours_is_not_blamed_on_a_theme(tmp_path: Path) -> None:
    """What fails outside the person's templates is raised as it is."""
    folder = theme(tmp_path / "theme", report_css="body {}")
    with pytest.raises(TypeError), themes.locate_template_errors(folder):
        raise TypeError


def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    """Exit code 2 before a log is read, also where no file would use the theme."""

    def run(folder: Path, out: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "gpureport", "report", "missing.csv", "-o", str(tmp_path / out)]
        done = subprocess.run([*command, "--templates", str(folder)], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    broken = theme(tmp_path / "broken", report_html="\n{% if %}")
    code, said = run(broken, "r.html")
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"gpureport: {broken / 'report.html'}:2: ")
    code, said = run(guided(tmp_path / "theme"), "r.md")
    assert code == 2
    assert "no file to be written is made from templates" in said


def test_a_colour_that_a_pdf_does_not_take_is_said(tmp_path: Path) -> None:
    """In one line before any work, and not where it is a hex colour or no PDF is written."""
    folder = theme(tmp_path / "theme", report_css="{% include 'shipped/report.css' %}:root { --link: teal }")
    log = str(tmp_path / "gpu.csv")

    def said(*outputs: str) -> str:
        written = [part for name in outputs for part in ("-o", str(tmp_path / name))]
        words = [sys.executable, "-m", "gpureport", "report", log, *written, "--templates", str(folder)]
        return subprocess.run(words, capture_output=True, text=True, check=False).stderr.splitlines()[0]

    gap = f"gpureport: {folder}: the PDF keeps its own colour for --link (teal), which is no hex colour such as #5b2a86"
    assert said("a.html", "a.pdf") == gap
    assert said("a.html") != gap
    theme(folder, report_css=":root { --link: #5b2a86 }")
    assert said("a.pdf") != gap


def test_a_theme_of_a_logo_alone_is_one(report: Report, tmp_path: Path) -> None:
    """It stands where the name of the tool stood; a block of one's own wins."""
    folder = theme(tmp_path / "theme", logo_svg='<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>')
    themes.check_theme(folder)
    page = html.render(report, folder)
    assert '<p><img src="data:image/svg+xml;base64,' in page
    assert "<b>gpureport</b>" not in page
    # no sign parts the logo from the words after it
    assert re.search(r'alt="Logo" height="24" class="paper"> [^ ·<]', page)
    theme(folder, report_html="{% extends 'shipped/report.html' %}{% block brand %}Example Ltd{% endblock %}")
    assert "<p>Example Ltd" in html.render(report, folder)


@pytest.mark.parametrize("own", ["", "@media (prefers-color-scheme: dark) { path { fill: #fff } }"])
def test_a_logo_stands_on_white_where_the_page_is_dark(report: Report, tmp_path: Path, own: str) -> None:
    """Unless it brings colours for the dark."""
    logo = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><style>{own}</style></svg>'
    page = html.render(report, theme(tmp_path / "theme", logo_svg=logo))
    assert ('height="24" class="paper">' in page) == (not own)


def test_a_theme_of_fonts_alone_is_one(tmp_path: Path) -> None:
    """A folder that brings a font for the PDF needs no template; one with neither is refused."""
    with pytest.raises(RenderError, match=r"holds no template of a name that is used \(found: nothing\); call a lo"):
        themes.check_theme(tmp_path)
    (tmp_path / "acme.svg").write_bytes(b"")
    with pytest.raises(RenderError, match=r"\(found: acme\.svg\); call a logo logo\.svg or logo\.png; the guide"):
        themes.check_theme(tmp_path)
    (tmp_path / "font.ttf").write_bytes(b"")
    themes.check_theme(tmp_path)
