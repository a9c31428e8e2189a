"""A theme of somebody else: it reads its own folder and the content of the report, runs nothing, and ends."""

import os
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.report.formats import html, theme_sandbox, themes, typesetting
from gpureport.report.model.report_content import Report

HIDDEN = "text of somebody else"
DATA = "report.timeline[0].recording.series"
REFUSED = {
    # Python behind a value
    "{{ ''.__class__.__mro__ }}": "'__class__'",
    "{{ cycler.__init__.__globals__.os.popen('touch OUT').read() }}": "'__init__'",
    "{{ picture.__globals__ }}": "'__globals__'",
    "{{ report['__class__'] }}": "'__class__'",
    "{{ report|attr('__class__') }}": "'__class__'",
    "{{ '{0.__class__}'.format(report) }}": "'__class__'",
    # libraries behind the content
    f"{{{{ {DATA}.to_pandas().to_csv('OUT') }}}}": "'to_pandas'",
    f"{{{{ {DATA}.slice(0) }}}}": "'slice'",
    f"{{{{ {DATA}|attr('to_pandas') }}}}": "'to_pandas'",
    "{{ report.timeline[0].recording.to_pandas() }}": "'to_pandas'",
    "{{ report.timeline[0].recording|attr('with_series') }}": "'with_series'",
    "{{ [report]|map(attribute='__class__')|join }}": "'__class__'",
    "{{ [report]|sum(attribute='__class__') }}": "'__class__'",
    "{{ self._TemplateReference__context }}": "'_TemplateReference__context'",
    "{{ lipsum.__globals__ }}": "'__globals__'",
    "{{ (self.main)|attr('__func__') }}": "'__func__'",
    # content stays as it is
    "{{ folds.update({}) }}": "'update'",
    "{{ folds.clear() }}": "'clear'",
    # files
    "{{ picture('../secret.png') }}": "leads out of the folder",
    "{{ picture('../absent.png') }}": "leads out of the folder",
    "{{ picture('SECRET') }}": "leads out of the folder",
    "{{ picture('link.png') }}": "leads out of the folder",
    "{{ picture('out/secret.png') }}": "leads out of the folder",
    "{{ picture('pipe.png') }}": "is no regular file",
    "{{ picture('folder.png') }}": "is no regular file",
    "{{ picture('large.png') }}": "is larger than 8 MiB",
    "{% include 'link.txt' %}": "leads out of the folder",
    "{% include 'out/secret.png' %}": "leads out of the folder",
    "{% include '../secret.png' %}": "../secret.png",
    "{% import 'link.txt' as x %}": "leads out of the folder",
    "{% include 'large.png' %}": "is larger than 8 MiB",
    # without an end
    "{% for a in range(10**9) %}{% endfor %}": "range",
    "{% for a in range(900) %}{% for b in range(900) %}{% endfor %}{% endfor %}": "it takes more than 10,000 steps",
    "{% for a in range(99) recursive %}{{ loop(range(99)) if loop.depth < 9 }}{% endfor %}": "it takes more than",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}": "it takes more than",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "it extends or includes itself",
    "{{ 'x' * 10**9 }}": "larger than",
    "{{ 10 ** (10 ** 9) }}": "larger than",
}


@pytest.fixture(scope="module")
def theme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ways out of it."""
    around = tmp_path_factory.mktemp("around")
    (around / "secret.png").write_text(HIDDEN)
    folder = around / "theme"
    (folder / "folder.png").mkdir(parents=True)
    (folder / "link.png").symlink_to(around / "secret.png")
    (folder / "link.txt").symlink_to(around / "secret.png")
    (folder / "out").symlink_to(around)
    os.mkfifo(folder / "pipe.png")
    with (folder / "large.png").open("wb") as file:
        file.truncate(9 * 2**20)
    return folder


@pytest.mark.parametrize(("template", "expected"), REFUSED.items(), ids=REFUSED)
def test_what_a_theme_may_not_do_is_one_line(
    template: str, expected: str, report: Report, theme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file and the line; nothing is read, written or started."""
    monkeypatch.setattr(theme_sandbox, "MOST_STEPS", 10_000)
    out, secret = theme.parent / "out.txt", theme.parent / "secret.png"
    text = template.replace("OUT", str(out)).replace("SECRET", str(secret))
    (theme / "report.html").write_text(f"\n{text}")
    page = html.template_environment(theme)
    with pytest.raises(RenderError) as raised, themes.locate_template_errors(theme):
        page.get_template("report.html").render(report=report, folds={})
    assert raised.value.where == f"{theme}/report.html:2"
    assert expected in raised.value.what
    assert "\n" not in str(raised.value)
    assert HIDDEN not in str(raised.value)
    assert not out.exists()


@pytest.mark.parametrize("name", ["report.css", "report.js", "parts.html", "sections/verdict.html"])
def test_a_file_of_a_theme_is_no_way_out(name: str, report: Report, tmp_path: Path) -> None:
    """A template that is itself a link to a file elsewhere is refused."""
    (tmp_path / "secret").write_text(HIDDEN)
    folder = tmp_path / "theme"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(tmp_path / "secret")
    with pytest.raises(RenderError, match="leads out of the folder of the theme"):
        html.render(report, folder)


def test_text_of_a_log_stays_text_in_a_theme(report: Report, tmp_path: Path) -> None:
    """Templates of a theme escape as the shipped ones do."""
    (tmp_path / "report.html").write_text("{{ '<script>' }}{{ ('<b>', )|join }}{{ '%s'|format('<i>') }}")
    assert html.render(report, tmp_path) == "&lt;script&gt;&lt;b&gt;&lt;i&gt;"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('#read("logo.svg")', "'logo.svg' leads out of the folder of the theme"),
        ('#read("sections/secret.png")', "'sections/secret.png' leads out of the folder of the theme"),
        ('#read("/etc/hostname")', "file not found"),
        ('#read("../secret.png")', "escape the project root"),
        ('#import "@preview/cetz:0.3.0"', "packages are not fetched"),
        ('#import "@local/own:0.1.0"', "package not found"),
        ("#while true {}", "condition is always true"),
    ],
)
def test_typst_reads_the_theme_alone(
    template: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither through a link, nor by a path, nor a package of this machine or the network."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    package = tmp_path / "data/typst/packages/local/own/0.1.0"
    package.mkdir(parents=True)
    (package / "typst.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nentrypoint = "a.typ"\n')
    (package / "a.typ").write_text("#let a = 1")
    (tmp_path / "secret.png").write_text(HIDDEN)
    folder = tmp_path / "theme"
    folder.mkdir()
    if "logo" in template:
        (folder / "logo.svg").symlink_to(tmp_path / "secret.png")
    if "sections" in template:
        (folder / "sections").symlink_to(tmp_path)
    (folder / "report.typ").write_text(template)
    with pytest.raises(RenderError) as raised:
        typesetting.set_document("report.typ", None, lambda _: {}, templates=folder)
    assert expected in str(raised.value)
    assert (HIDDEN in str(raised.value), str(raised.value).count("\n")) == (False, 0)


def test_a_font_is_a_file_of_the_theme(tmp_path: Path) -> None:
    """Neither a link out of the folder nor a pipe, which would never end."""
    folder = tmp_path / "theme"
    folder.mkdir()
    os.mkfifo(folder / "pipe.ttf")
    (tmp_path / "other.ttf").write_text(HIDDEN)
    (folder / "link.ttf").symlink_to(tmp_path / "other.ttf")
    with pytest.raises(RenderError, match=r"'link\.ttf' leads out of the folder of the theme"):
        typesetting.set_document("report.typ", None, lambda _: {}, templates=folder)
