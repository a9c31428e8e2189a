"""The page as a document: its file, its brand, Markdown and HTML."""

import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.image
import pytest

import gpureport
from gpureport.cli.main import main
from gpureport.errors import RenderError
from gpureport.testing import analyze, build_page, finding
from tests.support import pdf_reading, runs
from tests.support.hostile import TEXTS, steps_with
from tests.support.logs import SAMPLES
from tests.support.runs import CHAIN, ReadPage, plain, run, with_run
from tests.support.tables import read_table

FORMS = ("html", "json", "md", "pdf", "png", "svg", "txt")


def test_every_format_is_written_and_repeatable(tmp_path: Path) -> None:
    results = steps_with(TEXTS["script"])
    folder = tmp_path / "a" / "b"
    for form in FORMS:
        for name in ("r", "s"):
            assert gpureport.report(results, folder / f"{name}.{form}") == folder / f"{name}.{form}"
        assert (folder / f"r.{form}").read_bytes() == (folder / f"s.{form}").read_bytes(), form
    assert len(list(folder.iterdir())) == 2 * len(FORMS)


@pytest.mark.slow
def test_same_bytes_whatever_the_hash_seed_and_the_zone(tmp_path: Path) -> None:
    written = []
    for seed in ("0", "1", "4242"):
        names = [f"report.{form}" for form in FORMS]
        outputs = [part for name in names for part in ("-o", str(tmp_path / seed / name))]
        command = [sys.executable, "-m", "gpureport", "report", *(str(SAMPLES / name) for name in CHAIN), *outputs]
        setting = {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000", "TZ": f"UTC{seed[0]}"}
        subprocess.run([*command, "--title", "steps"], env={**os.environ, **setting}, capture_output=True, check=True)
        written.append({name: (tmp_path / seed / name).read_bytes() for name in names})
    assert all(written[0].values())
    assert [name for other in written[1:] for name, content in written[0].items() if other[name] != content] == []


def test_what_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    unknown = dict.fromkeys(("report.docx", "report", "report.xml", "report.prom", "metrics.txt"), "unknown_file_type")
    for name, code in {**unknown, "file/report.html": "cannot_write"}.items():
        with pytest.raises(RenderError) as raised:
            gpureport.report(run(), tmp_path / name)
        assert (raised.value.code, raised.value.where) == (code, str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RenderError) as raised:
        gpureport.report(run(), target)
    assert raised.value.code == "cannot_write"
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


SAMPLE = str(SAMPLES / "healthy")
SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {w} 24">'
LOGO = f'{SVG}<rect width="{{w}}" height="24" fill="#00ff00"/></svg>'
BRAND = '[report]\nlogo = "brand/logo.svg"\naccent = "#ff00ff"\nfont = "cmr10.ttf"\nfooter = "Example <b>Ltd</b>"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a logo and a font, in which the program is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brand").mkdir()
    (tmp_path / "brand/logo.svg").write_text(LOGO.format(w=24))
    shutil.copy(Path(mpl.get_data_path()) / "fonts/ttf/cmr10.ttf", tmp_path)
    return tmp_path


def call(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return ended.value.code


@pytest.mark.parametrize("command", ["report", "fleet"])
def test_page_and_pdf_carry_logo_accent_font_and_footer(folder: Path, command: str) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    assert call(command, SAMPLE, "-o", "r.html", "-o", "r.pdf") == 0
    page = (folder / "r.html").read_text()
    assert b64encode(LOGO.format(w=24).encode()).decode() in page
    assert "--link: light-dark(#ff00ff, " in page
    assert "Example &lt;b&gt;Ltd&lt;/b&gt;" in page
    assert pdf_reading.text(folder / "r.pdf", 1).count("Example <b>Ltd</b>") == 1
    assert 150 <= count_pixels(folder / "r.pdf", (0, 255, 0)) <= 260


@pytest.mark.parametrize(("width", "least", "most"), [(96, 700, 1000), (2400, 100, 500)])
def test_a_wide_logo_takes_a_third_of_a_line_at_most(folder: Path, width: int, least: int, most: int) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    (folder / "brand/logo.svg").write_text(LOGO.format(w=width))
    assert call("report", SAMPLE, "-o", "r.pdf") == 0
    assert least <= count_pixels(folder / "r.pdf", (0, 255, 0)) <= most
    assert "UA-1" in pdf_reading.metadata(folder / "r.pdf") or "pdfuaid" in pdf_reading.metadata(folder / "r.pdf")


def test_a_logo_pulls_no_other_file_into_a_pdf(folder: Path) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    (folder / "secret.svg").write_text(LOGO.format(w=24))
    images = (
        f'<image width="24" height="24" {to}/>' for to in (f'xlink:href="{folder}/secret.svg"', 'href="../secret.svg"')
    )
    (folder / "brand/logo.svg").write_text(f"{SVG.format(w=24)}{''.join(images)}</svg>")
    call("report", SAMPLE, "-o", "r.pdf")
    assert not (folder / "r.pdf").exists() or count_pixels(folder / "r.pdf", (0, 255, 0)) == 0


@pytest.mark.parametrize(("settings", "place"), read_table(Path(__file__).with_name("brand.tsv")))
def test_what_cannot_be_used_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], settings: str, place: str
) -> None:
    (folder / "gpureport.toml").write_text(f"[report]\n{settings}\n")
    (folder / "large.png").write_bytes(b" " * (8 * 2**20 + 1))
    (folder / "broken.svg").write_text("<svg broken")
    (folder / "broken.ttf").write_text("no font")
    assert call("report", SAMPLE, "-o", "r.pdf") == 2
    (error,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("gpureport: "))
    assert (place in error, (folder / "r.pdf").exists()) == (True, False)


def count_pixels(path: Path, colour: tuple[int, int, int]) -> int:
    """Return how many points of the first page, 72 to an inch, have a colour."""
    points = mpl.image.imread(pdf_reading.draw_first_page(path))[:, :, :3]
    return int((abs(points * 255 - colour).max(axis=2) < 2).sum())


def test_markdown_has_the_result_first_and_bars_of_gpu_time() -> None:
    content = runs.page_of(*runs.recorded_steps())
    lines = build_page(runs.recorded_steps(), "md").splitlines()
    assert plain(lines[0]) == plain(f"# {content['verdict']['sentence']}")
    assert lines[-1].startswith("gpureport ")
    assert len([line for line in lines if line.startswith("#")]) >= 4
    drawn = re.findall(r"^\| (\d-[a-z-]+)[^|]* \| `([^`]*)` \|", "\n".join(lines), re.MULTILINE)
    bars = {name: len(signs) for name, signs in drawn}
    amounts = {bar["label"]: sum(part["value"] for part in bar["segments"]) for bar in content["spent"]["bars"]}
    longest = max(amounts.values())
    assert max(bars.values()) == 24
    assert [name for name, count in bars.items() if abs(count - 24 * amounts[name] / longest) > 1] == []


def test_a_page_of_many_steps_of_long_names_stays_below_the_limit() -> None:
    made = []
    for place in range(40):
        one = analyze(with_run(run(f"{place} {'训' * 500}", seconds=60), step=f"{place} {'练' * 300}"))
        found = [finding(f"{kind}{place}", (10, 40), lost=9.0) for kind in ("idle_gap", "io_bound")]
        made.append(replace(one, findings=tuple(found)))
    text = build_page(made, "md")
    assert 10_000 < len(text.encode()) <= 20_000
    assert text.splitlines()[-1].startswith("gpureport ")


def test_a_name_is_no_list_by_chance() -> None:
    for name, shown in (("1. one", "1\\. one"), ("- three", "\\- three"), ("=== four", "\\=== four")):
        assert shown in build_page(with_run(run(), step=name, name=name), "md", title=name), name


FETCHING = {"src", "srcset", "poster", "data", "action", "formaction", "background"}
RESULTS: dict[str, Callable[[], Any]] = {
    "a run with findings": lambda: runs.sample("thermal_throttle"),
    "a broken log": lambda: runs.sample("faulty_hardware"),
    "steps": runs.recorded_steps,
    "64 GPUs": lambda: run(gpus=64, seconds=120),
    "no finding": lambda: runs.divided(computing=600),
    "hostile names": lambda: steps_with(TEXTS["script"]),
}


@pytest.fixture(scope="module", params=RESULTS)
def page(request: pytest.FixtureRequest) -> str:
    return build_page(RESULTS[request.param](), "html")


def digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def test_nothing_is_fetched_and_one_script_runs(page: str) -> None:
    parsed = ReadPage(page)
    names = {name for name, _ in parsed.attributes}
    assert not names & (FETCHING | {"style"})
    assert not [name for name in names if name.startswith("on")]
    assert not {"link", "img", "iframe", "object", "form"} & set(parsed.tags)
    assert not re.search("https?://", page)
    openings = re.findall(r"<script([^>]*)>", page)
    # any other script element is data, which a browser does not run
    data = [each for each in openings if re.match(r' type="application/(json|octet-stream)" id="[a-z0-9-]+"', each)]
    assert (len(openings) - len(data), page.count("</script>")) == (1, len(openings))


def test_the_policy_allows_style_sheet_and_script_and_nothing_else(page: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    sources = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; img-src data:"
    assert policy.replace("&#39;", "'") == f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    # small enough to read
    assert len(style.encode()) + len(script.encode()) <= 40_000


def test_a_page_is_nested_and_whole(page: str) -> None:
    parsed = ReadPage(page)
    assert parsed.open == []
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    targets = {value.removeprefix("#") for value in parsed.values("href") if value}
    painted = set(re.findall(r"url\(#([^)]+)\)", page))
    assert (targets | painted) - set(ids) == set()
    parts = ("verdict", "gpu-time", "findings", "timeline", "gpus", "quality", "not-assessed", "method")
    assert [part for part in parts if f'<section id="{part}"' not in page] == []


def test_a_page_leads_from_findings_to_marks_and_explains_terms() -> None:
    found = ReadPage(build_page(runs.sample("thermal_throttle"), "html"))
    links = [value.removeprefix("#") for value in found.values("href") if value.startswith("#run")]
    assert links
    assert set(links) <= set(found.values("id"))
    titles = found.values("title")
    assert len([title for title in titles if len(title.split()) > 4]) >= 20
    assert not [title for title in titles if "<" in title]
    for title in ("Training for Norvik", ""):
        assert ("<b>Training for Norvik</b><br>" in build_page(run(), "html", title)) == bool(title)
    assert not re.search("<script|script-src", build_page(run(seconds=0), "html"))
