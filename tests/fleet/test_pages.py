"""The page on many runs in every format: the figures of its JSON, on their own, whatever names hold."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.fleet.fleet_logs import Card, report, write_job
from tests.fleet.generated_fleet import FAULTY, generate_fleet
from tests.support import pdf_reading

HOSTILE = "<script>@all \x1b[31m`|*[x](http://h) " + "long" * 60
FORMS = ("html", "md", "txt", "json", "pdf")
OUTPUTS = [word for form in FORMS for word in ("-o", f"fleet.{form}")]


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of thirty jobs in every format, made once."""
    folder = tmp_path_factory.mktemp("month")
    generate_fleet(folder / "jobs", 30)
    command = [sys.executable, "-m", "gpureport", "fleet", "jobs", "--gpu-hour-price", "2 EUR", *OUTPUTS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return folder


@pytest.fixture
def month(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def plain(text: str) -> str:
    """Return text without line breaks, no-break spaces and marks of Markdown."""
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").replace("\\", "").split())


def test_every_format_states_the_figures_of_the_json(month: Path) -> None:
    found = json.loads((month / "fleet.json").read_text())
    page = _Elements()
    page.feed((month / "fleet.html").read_text())
    texts = {"html": plain(page.text), "txt": plain((month / "fleet.txt").read_text())}
    texts["md"] = plain((month / "fleet.md").read_text())
    lost = f"{found['use']['lost_ratio']:.0%}"
    worst, pulled = found["groupings"][0]["groups"][0]["name"], found["health"]["cards"][0]["node"]
    for form, text in texts.items():
        wanted = [lost, worst, found["savings"][0]["title"], pulled, found["worst_runs"][0]["run"]["name"]]
        assert [word for word in wanted if word.lower() not in text.lower()] == [], form
    assert [card["uuid"] for card in found["health"]["cards"]] == [FAULTY]


def test_the_page_needs_nothing_else_and_is_the_same_again(gpureport: Program, month: Path) -> None:
    content = (month / "fleet.html").read_text()
    page = _Elements()
    page.feed(content)
    assert not page.names & {"script", "link", "img", "iframe"}
    assert not page.attributes & {"style", "src", "onclick"}
    assert not re.findall(r"https?://", content)
    assert len(content.encode()) < 300_000
    assert "default-src &#39;none&#39;" in content
    identifiers = re.findall(r' id="([^"]+)"', content)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"url\(#([^)]+)\)", content)) <= set(identifiers)
    before = {form: (month / f"fleet.{form}").read_bytes() for form in FORMS}
    assert gpureport("fleet", "jobs", "--gpu-hour-price", "2 EUR", *OUTPUTS).code == 0
    assert {form: (month / f"fleet.{form}").read_bytes() for form in FORMS} == before


def test_text_is_one_screen_and_files_are_bounded(gpureport: Program, month: Path) -> None:
    short, full = (gpureport("fleet", *words).out for words in ((), ("--detail", "full")))
    assert len(short.splitlines()) <= 30
    assert max(map(len, short.splitlines())) <= 80
    assert len(full) > 2 * len(short)
    assert ("€" in (month / "fleet.txt").read_text(), "€" in full) == (True, False)
    assert (month / "fleet.md").stat().st_size <= 20_000


def test_a_fleet_without_gpu_time_makes_a_page(gpureport: Program, tmp_path: Path) -> None:
    rows = "".join(f"2026/03/14 09:00:{second:02}.000, 0, 1024 MiB\n" for second in range(60))
    (tmp_path / "memory.csv").write_text(f"timestamp, index, memory.used [MiB]\n{rows}")
    assert gpureport("fleet", "memory.csv", *OUTPUTS).code == 0
    assert all((tmp_path / f"fleet.{form}").stat().st_size for form in FORMS)
    assert re.findall(r"\b0%", (tmp_path / "fleet.txt").read_text()) == []


def test_hostile_names_stay_text(gpureport: Program, tmp_path: Path) -> None:
    tags = {"user": HOSTILE, "project": HOSTILE, "node": HOSTILE}
    for place in range(2):
        write_job(
            tmp_path / "jobs", f"j{place}", Card(uuid="GPU-1", spans=(("hot", 9), ("idle", 4), ("hot", 9))), **tags
        )
        (tmp_path / "jobs" / f"j{place}.json").write_text(json.dumps({"name": HOSTILE, "tags": tags}))
    assert gpureport("fleet", "jobs", "--title", HOSTILE, *OUTPUTS).code == 2
    assert gpureport("fleet", "jobs", *OUTPUTS).code == 0
    html, markdown, text = ((tmp_path / f"fleet.{form}").read_text() for form in ("html", "md", "txt"))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<script" not in markdown.replace("\\<script", "")
    assert "@all" not in markdown
    assert [form for form in (html, markdown, text, gpureport("fleet").out) if "\x1b" in form] == []
    assert len(markdown.encode()) <= 20_000


@pdf_reading.needs_poppler
def test_a_pdf_is_two_pages_and_an_appendix(gpureport: Program, month: Path) -> None:
    path = month / "fleet.pdf"
    found = report(gpureport)
    assert f"{found['use']['lost_ratio']:.0%}" in pdf_reading.text(path, 1)
    assert found["health"]["cards"][0]["node"] in pdf_reading.text(path, 2)
    pages = int(pdf_reading.info(path)["Pages"])
    assert gpureport("fleet", "--detail", "full", "-o", "full.pdf").code == 0
    assert pages <= 6 <= int(pdf_reading.info(month / "full.pdf")["Pages"]) + 4


def test_wrong_files_and_options_are_refused_before_any_work(gpureport: Program, tmp_path: Path) -> None:
    write_job(tmp_path, "job")
    for words, code in (
        (("-o", "fleet.xml"), ""),
        (("-o", "fleet.html", "--detail", "full"), "nothing_to_show"),
        (("-o", "fleet.md", "--open"), "nothing_to_open"),
        (("--scheduler", "tcp://head:8786"), "needs_dask"),
    ):
        done = gpureport("--debug", "fleet", "job.csv", *words)
        said = [line.removeprefix("code: ") for line in done.err.splitlines() if line.startswith("code: ")]
        assert (done.code, done.out, [each for each in said if code]) == (2, "", [code] * bool(code)), words
    assert not (tmp_path / ".gpureport").exists()
