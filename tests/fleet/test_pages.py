"""A fleet: cards that are watched or pulled, what is kept of each run, and the pages."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.fleet.fleet_logs import FAULTY, MINUTE, Card, generate_fleet, report, write_job
from tests.support import pdf_reading
from tests.support.logs import SAMPLES
from tests.support.program import Program
from tests.support.runs import ReadPage

COOL = Card(spans=(("work", 3),), uuid="GPU-1", uncorrected=0)
HOT = Card(spans=(("work", 1), ("hot", 2)), uuid="GPU-1", uncorrected=0)


def assess(gpureport: Program, folder: Path, *cards: Card, node: str = "n1") -> Any:
    for place, card in enumerate(cards):
        write_job(folder / "jobs", f"r{place}", card, start=f"2026-10-0{place + 1}T12:00", node=node)
    return report(gpureport, str(folder / "jobs"), "--store", str(folder / "store"))["health"]


def test_a_card_is_watched_or_pulled(gpureport: Program, tmp_path: Path) -> None:
    table = [
        ([HOT, HOT, COOL], {"GPU-1": ("pull", ["heat_slowed"])}),
        ([HOT, COOL, COOL], {"GPU-1": ("watch", ["heat_slowed"])}),
        ([HOT, HOT, COOL, COOL, COOL], {"GPU-1": ("watch", ["heat_slowed"])}),
        ([Card(uuid="GPU-2", uncorrected=1)], {"GPU-2": ("pull", ["ecc_uncorrected"])}),
        ([Card(uuid="GPU-2", corrected=40)], {"GPU-2": ("watch", ["ecc_corrected"])}),
        # only a rise from run to run is a symptom
        ([replace(COOL, remapped=5, spans=(("work", n),)) for n in (3, 4)], {}),
        ([replace(COOL, remapped=n) for n in (0, 2)], {"GPU-1": ("watch", ["remapped_rows"])}),
        ([COOL, COOL], {}),
    ]
    for place, (cards, expected) in enumerate(table):
        health = assess(gpureport, tmp_path / str(place), *cards)
        cards_shown = ((card, [each["symptom"] for each in card["symptoms"]]) for card in health["cards"])
        shown = {card["uuid"]: (card["verdict"], symptoms) for card, symptoms in cards_shown}
        assert shown == expected, (place, health)
        assert health["healthy"] == int(not expected)


def judge_days(gpureport: Program, folder: Path, sample: str) -> Iterator[list[Any]]:
    """Yield the cards after one day and after two with a log like the sample, which has no uuid, from one node."""
    text = gzip.decompress((SAMPLES / sample / "nvidia-smi.csv.gz").read_bytes()).decode()
    for day in (1, 2):
        place = folder / "jobs" / f"day{day}"
        place.mkdir(parents=True)
        (place / "gpu.csv").write_text(re.sub(r"^2026/0\d/", f"2026/0{day}/", text, flags=re.MULTILINE))
        (place / "labels.json").write_text('{"tags": {"node": "n1"}}')
        yield report(gpureport, "jobs")["health"]["cards"]


def test_a_lost_gpu_and_a_slow_link(gpureport: Program, tmp_path: Path) -> None:
    for again, cards in zip(("watch", "pull"), judge_days(gpureport, tmp_path, "faulty_hardware"), strict=True):
        assert {card["device"]: (card["verdict"], card["symptoms"][0]["symptom"]) for card in cards} == {
            "gpu:0": (again, "slow_link"),
            "gpu:1": ("pull", "ecc_uncorrected"),
            "gpu:2": (again, "gpu_lost"),
        }


def test_a_card_that_is_slow_again_is_pulled(gpureport: Program, tmp_path: Path) -> None:
    days = judge_days(gpureport, tmp_path, "slow_gpu")
    for day, verdict, (card,) in zip((1, 2), ("watch", "pull"), days, strict=True):
        (symptom,) = card["symptoms"]
        assert (card["verdict"], symptom["symptom"], symptom["assessed"]) == (verdict, "slow_gpu", day)
        assert (len(symptom["runs"]), symptom["amount"]) == (day, None)


def test_a_card_is_known_by_its_uuid_wherever_it_sits(gpureport: Program, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    write_job(jobs, "late", Card(), HOT, start="2026-10-06T12:00", node="n2")
    write_job(jobs, "early", HOT, start="2026-10-05T12:00", node="n1")
    write_job(jobs, "other", Card(uuid="GPU-2", uncorrected=0), start="2026-10-04T12:00", node="n1")
    write_job(jobs, "nobody", Card(spans=HOT.spans, uncorrected=1), start="2026-10-03T12:00")
    health = report(gpureport, "jobs")["health"]
    (card,) = [each for each in health["cards"] if each["uuid"] == "GPU-1"]
    (heat,) = card["symptoms"]
    assert (card["node"], card["device"], card["runs"], card["max_temperature_celsius"]) == ("n2", "gpu:1", 2, 90.0)
    assert ([run["name"] for run in heat["runs"]], heat["assessed"]) == (["early", "late"], 2)
    assert heat["amount"] == pytest.approx(4 * MINUTE, rel=0.1)
    (pulled,) = [each for each in health["cards"] if each["uuid"] is None]
    assert (pulled["verdict"], pulled["symptoms"][0]["runs"][0]["name"]) == ("pull", "nobody")
    assert (health["identified_gpus"], health["unidentified_gpu_seconds"]) == (3, 3 * MINUTE)


MADE_UP = 4321.0


@pytest.fixture
def table(gpureport: Program, tmp_path: Path) -> Path:
    for place, name in enumerate("ab"):
        write_job(tmp_path / "jobs", name, start=f"2026-10-0{place + 1}T12:00")
    report(gpureport, "jobs")
    return tmp_path / ".gpureport" / "fleet" / "summaries.parquet"


def energy(gpureport: Program, *words: str) -> float:
    found: float = report(gpureport, *words)["energy_joules"]
    return found


def make_up(table: Path) -> None:
    """Write another energy into every row, which is shown as long as no run is analysed again."""
    read = parquet.ParquetFile(pa.BufferReader(table.read_bytes())).read()
    place = read.column_names.index("energy_joules")
    made_up = pa.array([MADE_UP] * len(read), read.schema.field(place).type)
    parquet.write_table(read.set_column(place, read.schema.field(place), made_up), table, write_page_checksum=True)


def test_only_what_is_new_is_analysed(gpureport: Program, tmp_path: Path, table: Path) -> None:
    true = energy(gpureport)
    make_up(table)
    assert energy(gpureport) == 2 * MADE_UP
    write_job(tmp_path / "jobs", "c", start="2026-10-03T12:00")
    assert energy(gpureport, "jobs") == pytest.approx(2 * MADE_UP + true / 2)
    # whose a run is, and what it costs, changes nothing of it
    run = json.loads(gpureport("runs", "show", "a").out)["run"]["id"]
    assert gpureport("ingest", "jobs/a.csv", "--tag", "user=eve", "--tag", "node=n7").code == 0
    found = report(gpureport, "--gpu-hour-price", "2", "--by", "user")
    assert (found["energy_joules"], found["nodes"]) == (pytest.approx(2 * MADE_UP + true / 2), 1)
    assert "eve" in {group["name"] for group in found["groupings"][0]["groups"]}
    # its params, tags that checks read, and thresholds do
    assert gpureport("ingest", "jobs/a.csv", "--param", "lr=0.1").code == 0
    assert energy(gpureport) == pytest.approx(MADE_UP + true)
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nshortest = 99\n")
    assert energy(gpureport) == pytest.approx(1.5 * true)
    assert gpureport("runs", "rm", run).code == 0
    assert report(gpureport)["use"]["runs"] == 2
    assert set(parquet.read_table(table).column("run_name").to_pylist()) == {"b", "c"}


@pytest.mark.parametrize("damage", ["empty", "torn", "flipped", "foreign"])
def test_a_damaged_table_is_named_and_made_again(gpureport: Program, table: Path, damage: str) -> None:
    whole, before = table.read_bytes(), report(gpureport)
    if damage == "foreign":
        parquet.write_table(pa.table({"key": ["a"]}), table)
    else:
        flipped = bytes([*whole[:200], whole[200] ^ 1, *whole[201:]])
        table.write_bytes({"empty": b"", "torn": whole[: len(whole) // 2], "flipped": flipped}[damage])
    done = gpureport("fleet", "--format", "json")
    assert (done.code, json.loads(done.out), "summaries.parquet" in done.err) == (0, before, True)
    assert table.read_bytes() == whole


def test_kept_summaries_that_are_corrupt_or_of_an_earlier_version(
    gpureport: Program, table: Path, tmp_path: Path
) -> None:
    read = parquet.ParquetFile(pa.BufferReader(table.read_bytes())).read().drop_columns(["source"])
    parquet.write_table(read, table, write_page_checksum=True)
    make_up(table)
    assert (energy(gpureport), gpureport("fleet").err) == (2 * MADE_UP, "")
    table.unlink()
    before = report(gpureport)
    series = max((tmp_path / ".gpureport" / "runs").glob("*/hardware.parquet"))
    whole = series.read_bytes()
    series.write_bytes(whole[:1000])
    table.unlink()
    broken = report(gpureport)
    assert (broken["use"]["runs"], len(broken["failed"])) == (1, 1)
    series.write_bytes(whole)
    assert report(gpureport) == before


def test_what_was_not_recorded_is_null(gpureport: Program, tmp_path: Path) -> None:
    rows = "".join(f"2026/03/14 09:00:{second:02}.000, 0, 1024 MiB\n" for second in range(60))
    (tmp_path / "memory.csv").write_text(f"timestamp, index, memory.used [MiB]\n{rows}")
    found = report(gpureport, "memory.csv")
    assert (found["energy_joules"], found["use"]["cost"]) == (None, None)
    assert found["use"]["unknown_gpu_seconds"] == found["use"]["gpu_seconds"] == 59.0
    row = parquet.read_table(tmp_path / ".gpureport" / "fleet" / "summaries.parquet").to_pylist()[0]
    nulls = ("energy_joules", "utilisation", "ecc_corrected", "heat_slowed_seconds", "work_amount", "uuid")
    assert [name for name in nulls if row[name] is not None] == []
    assert gpureport("fleet", "memory.csv", *OUTPUTS).code == 0
    assert all((tmp_path / f"fleet.{form}").stat().st_size for form in FORMS)
    assert re.findall(r"\b0%", (tmp_path / "fleet.txt").read_text()) == []


def test_a_finding_on_a_job_is_shared_by_its_gpus(gpureport: Program, tmp_path: Path) -> None:
    spans = (("idle", 10), ("work", 20))
    write_job(tmp_path, "job", Card(spans=spans), Card(spans=spans))
    (run,) = json.loads(gpureport("analyze", "job.csv", "--format", "json").out)["runs"]
    lost = sum(each["lost_gpu_seconds"] or 0 for each in run["findings"] if each["kind"] == "startup_idle")
    found = report(gpureport, "job.csv")
    assert lost > 0
    assert found["use"]["lost_gpu_seconds"] == pytest.approx(lost)
    rows = parquet.read_table(tmp_path / ".gpureport" / "fleet" / "summaries.parquet").to_pylist()
    shares = [each["lost_gpu_seconds"] for row in rows for each in row["findings"] if each["kind"] == "startup_idle"]
    assert shares == pytest.approx([lost / 2] * 2)


HOSTILE = "<script>@all \x1b[31m`|*[x](http://h) " + "long" * 60
FORMS = ("html", "md", "txt", "json", "pdf")
OUTPUTS = [word for form in FORMS for word in ("-o", f"fleet.{form}")]


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
    page = ReadPage((month / "fleet.html").read_text())
    texts = {"html": plain("".join(page.words)), "txt": plain((month / "fleet.txt").read_text())}
    texts["md"] = plain((month / "fleet.md").read_text())
    lost = f"{found['use']['lost_ratio']:.0%}"
    worst, pulled = found["groupings"][0]["groups"][0]["name"], found["health"]["cards"][0]["node"]
    for form, text in texts.items():
        wanted = [lost, worst, found["savings"][0]["title"], pulled, found["worst_runs"][0]["run"]["name"]]
        assert [word for word in wanted if word.lower() not in text.lower()] == [], form
    assert [card["uuid"] for card in found["health"]["cards"]] == [FAULTY]


def test_the_page_needs_nothing_else_and_is_the_same_again(gpureport: Program, month: Path) -> None:
    content = (month / "fleet.html").read_text()
    page = ReadPage(content)
    assert not {*page.tags} & {"script", "link", "img", "iframe"}
    assert page.values("style", "src", "onclick") == []
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
    assert (len(short.splitlines()) <= 30, max(map(len, short.splitlines())) <= 80) == (True, True)
    assert len(full) > 2 * len(short)
    assert ("€" in (month / "fleet.txt").read_text(), "€" in full) == (True, False)
    assert (month / "fleet.md").stat().st_size <= 20_000


def test_hostile_names_stay_text(gpureport: Program, tmp_path: Path) -> None:
    tags = dict.fromkeys(("user", "project", "node"), HOSTILE)
    card = replace(HOT, spans=(("hot", 9), ("idle", 4), ("hot", 9)))
    for place in range(2):
        write_job(tmp_path / "jobs", f"j{place}", card, **tags)
        (tmp_path / "jobs" / f"j{place}.json").write_text(json.dumps({"name": HOSTILE, "tags": tags}))
    assert gpureport("fleet", "jobs", "--title", HOSTILE, *OUTPUTS).code == 2
    assert gpureport("fleet", "jobs", *OUTPUTS).code == 0
    html, markdown, text = ((tmp_path / f"fleet.{form}").read_text() for form in ("html", "md", "txt"))
    assert ("<script" in html, "&lt;script&gt;" in html) == (False, True)
    assert ("<script" in markdown.replace("\\<script", ""), "@all" in markdown) == (False, False)
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
