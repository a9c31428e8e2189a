"""Nights from logs with dates: their history, its pages, whose files stay, baselines, and what a kill leaves."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.rules.nights import add_night, date, history, site, write_log
from tests.support.program import run_program
from tests.support.runs import ReadPage

NIGHTS, WORSE = 15, 12
EARLIER = Path(__file__).with_name("earlier")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grown")
    for number in range(NIGHTS):
        is_worse = number >= WORSE
        more = ("--label", f"build {number}", "--param", f"workers={2 if is_worse else 8}", "--param", "lr=0.1")
        add_night(folder, number, *more, util=70 if is_worse else 90)
    return folder


@pytest.fixture
def folder(grown: Path, tmp_path: Path) -> Path:
    shutil.copytree(grown, tmp_path / "copy")
    return tmp_path / "copy"


def test_the_history_is_one_table_for_any_tool(tmp_path: Path) -> None:
    add_night(tmp_path, 0, "--label", "abc", "--param", 'opt=a "b"→')
    run_program(tmp_path, "nightly", str(tmp_path / "secret" / "gone.csv"), "--site", "site", "--date", date(1))
    rows = history(tmp_path)
    first, last = rows[0], rows[-1]
    told = (first["night"].isoformat(), *(first[name] for name in ("label", "status", "run_name", "params")))
    assert told == ("2026-01-01", "abc", "measured", "night", '{"opt": "a \\"b\\"→"}')
    values = {row["metric"]: row["value"] for row in rows if row["metric"]}
    known = [values[name] for name in ("gpu_utilization_ratio", "waiting_ratio", "cost_per_1000_work")]
    assert known == [pytest.approx(0.9, abs=0.01), None, None]
    assert (last["status"], last["metric"], last["source"]) == ("no data", None, "gone.csv")
    assert all(path.stat().st_size < 12_000 for path in (tmp_path / ".gpureport" / "history").iterdir())


def test_a_quiet_night_and_none_have_a_page(tmp_path: Path) -> None:
    assert run_program(tmp_path, "nightly", "--site", "site").code == 0
    assert list(site(tmp_path)) == ["index.html"]
    first, *_ = [add_night(tmp_path, 0, "--label", label).out for label in ("a", "a", "b", "a")]
    assert first.startswith("1 Jan: GPU time lost ")
    assert first.splitlines()[0].endswith(", 9 more nights needed before changes show.")
    assert len({row["label"] for row in history(tmp_path)}) == 2
    assert "Not enough data" in site(tmp_path)["index.html"]
    index = site(tmp_path)["index.html"].split("<h2>Nights</h2>")[1]
    assert (index.count('<th scope="row">'), "<small>a</small>" in index) == (1, True)


def test_a_source_found_later_fills_its_gap_and_no_other(tmp_path: Path) -> None:
    for number, sources in ((0, ("night.csv", "other.csv")), (1, ("night.csv",))):
        run_program(tmp_path, "nightly", *sources, "--site", "site", "--date", date(number))
    add_night(tmp_path, 0)
    rows = site(tmp_path)["index.html"].split("<h2>Nights</h2>")[1].split("<tr")[2:]
    shown = [(re.findall(r"2026-01-\d\d", each)[0], "No data." in each, "other.csv" in each) for each in rows]
    assert sorted(shown) == [(date(0), False, False), (date(0), True, True), (date(1), True, False)]


def test_a_night_that_counts_other_work_has_no_figure_of_work(tmp_path: Path) -> None:
    for number, unit in enumerate(("steps", "images")):
        assert f"per 1,000 {unit}" in add_night(tmp_path, number, "--work", f"5000:{unit}").out
    (page,) = (text for name, text in site(tmp_path).items() if "gpu_seconds_per_1000_work" in name)
    assert "work in another unit" in page
    logs = [write_log(tmp_path / f"{number}.csv", number).name for number in (3, 4)]
    works = ("--work", "5000:images", "--work", "5000:tokens")
    assert run_program(tmp_path, "nightly", *logs, *works, "--site", "mixed", "--store", "mixed").code == 0


@pytest.mark.slow
def test_merging_is_copying(folder: Path, tmp_path: Path) -> None:
    files = sorted((folder / ".gpureport" / "history").glob("*.parquet"))
    for place in (files[::-1][:9], files[:9]):
        for path in place:
            (tmp_path / "both" / ".gpureport" / "history").mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / "both" / ".gpureport" / "history")
    shutil.copytree(folder / ".gpureport" / "runs", tmp_path / "both" / ".gpureport" / "runs")
    shutil.copy(folder / ".gpureport" / "store.json", tmp_path / "both" / ".gpureport")
    assert run_program(tmp_path / "both", "nightly", "--site", "site", "--all-reports").code == 0
    assert site(tmp_path / "both") == site(folder)
    before = {path: path.stat().st_mtime_ns for path in (folder / "site").rglob("*.html")}
    assert run_program(folder, "nightly", "--site", "site").code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("damage", ["cut", "renamed", "other", "newer", "empty", "params", "deep"])
def test_a_damaged_night_is_said(tmp_path: Path, damage: str) -> None:
    add_night(tmp_path, 0)
    (path,) = (tmp_path / ".gpureport" / "history").glob("*.parquet")
    table = parquet.read_table(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "renamed":
        path = path.rename(path.with_name("2026-01-02-0123456789abcdef.parquet"))
    elif damage in {"params", "deep"}:
        params = pa.array(["[1]" if damage == "params" else "[" * 9999] * len(table)).dictionary_encode()
        place = table.schema.get_field_index("params")
        parquet.write_table(table.set_column(place, table.schema.field(place), params), path)
    elif damage == "newer":
        parquet.write_table(table.replace_schema_metadata({b"gpureport.history": b"2"}), path)
    else:
        parquet.write_table(table[:0] if damage == "empty" else pa.table({"a": [1]}), path)
    done = run_program(tmp_path, "--debug", "nightly", "--site", "site")
    assert (done.code, done.error, path.name in done.err) == (3, "damaged_night", True)


def test_any_flipped_byte_is_said_or_harmless(tmp_path: Path) -> None:
    add_night(tmp_path, 0, "--label", "abc")
    (path,) = (tmp_path / ".gpureport" / "history").glob("*.parquet")
    content, whole = path.read_bytes(), site(tmp_path)
    said = 0
    places = range(0, len(content), len(content) // 40)
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x21]) + content[place + 1 :])
        done = run_program(tmp_path, "nightly", "--site", "site")
        said += done.code == 3
        assert done.code == 3 or site(tmp_path) == whole, place
    assert said > len(places) / 4


def test_records_of_earlier_versions_are_read(tmp_path: Path) -> None:
    shutil.copytree(EARLIER, tmp_path / ".gpureport" / "history")
    assert run_program(tmp_path, "nightly", "--site", "site").code == 0
    index = site(tmp_path)["index.html"]
    rows = index.split("<h2>Nights</h2>")[1].split("<tr")[2:]
    assert [("No data." in each, "NVIDIA A100" in index) for each in rows].count((True, True)) == 2
    assert sum("25%" in each for each in rows) == 2
    assert sum(">FAILED<" in each for each in rows) == 1


def test_a_change_is_told_with_its_night_size_and_params(folder: Path) -> None:
    pages = site(folder)
    (name,) = (name for name in pages if name.endswith("gpu_utilization_ratio.html"))
    for text in (pages["index.html"], pages[name]):
        plain = re.sub(r"<[^>]+>", " ", text).replace("\xa0", " ")
        assert date(WORSE) in plain
        assert f"build {WORSE}" in plain
        assert re.search(r"workers 8 → 2\s", plain)
        assert "lr " not in plain
        assert re.search(r"90 ?%\s+70 ?%\s+90 ?% → 70 ?%\s+−2\d.\d to −1\d.\d points", plain)
    assert '<b class="worse">worse</b>' in pages["index.html"]
    # the first chart is of the figure in the headline
    assert "GPU utilisation" in re.findall(r"<h2>.*?</h2>", pages["index.html"])[0]
    assert 'class="mark worse"' in pages[name]
    assert (pages[name].count('class="level"'), pages[name].count("<circle")) == (2, NIGHTS)


def test_a_night_without_data_is_seen(folder: Path) -> None:
    run_program(folder, "nightly", "gone.csv", "--site", "site", "--date", date(NIGHTS))
    pages = site(folder)
    (row,) = (part for part in pages["index.html"].split("<tr") if "No data." in part)
    assert (date(NIGHTS) in row, "gone.csv" in row) == (True, True)
    (main,) = re.findall(r"<figure.*?</figure>", pages["index.html"], re.DOTALL)
    assert main.count('class="absent"') == 1
    (name,) = (name for name in pages if name.endswith("gpu_utilization_ratio.html"))
    assert (pages[name].count('class="absent"'), pages[name].count('class="line"')) == (1, 1)


def test_a_night_without_stated_work_is_not_called_one_without_data(tmp_path: Path) -> None:
    for number, code in enumerate((0, 0, 0, 0, 7)):
        add_night(tmp_path, number, "--tag", f"exit_code={code}", *(("--work", "600:steps") if number >= 2 else ()))
    pages = site(tmp_path)
    figure = next(page for name, page in pages.items() if "gpu_seconds_per_1000_work" in name)
    said = [figure.split(f">{date(number)}<")[1][:80] for number in (1, 4)]
    assert ("no work stated" in said[0], "job failed (exit 7)" in said[1], "not recorded" in figure) == (1, 1, 0)
    assert not [name for name in pages if "cost_per_1000_work" in name]


def test_another_gpu_model_starts_a_history_and_is_said(tmp_path: Path) -> None:
    add_night(tmp_path, 0)
    log = write_log(tmp_path / "other.csv", 1)
    log.write_text(log.read_text().replace("NVIDIA L4", "NVIDIA A10G"))
    said = run_program(tmp_path, "nightly", "other.csv", "--site", "site", "--date", date(1)).out
    assert any("New GPU model" in line and "A10G" in line for line in said.splitlines()), said
    pages = [page for name, page in site(tmp_path).items() if name.startswith("figures/")]
    assert pages
    assert all("measured on other GPUs" in page and "no data" not in page for page in pages)


def test_every_page_is_static_and_every_link_leads_somewhere(folder: Path) -> None:
    pages = site(folder)
    assert {name.partition("/")[0] for name in pages} == {"index.html", "nights", "figures"}
    for name, content in pages.items():
        if not name.startswith("nights/"):
            page = ReadPage(content)
            assert "script" not in page.tags, name
            assert not [each for each, _ in page.attributes if each == "style" or each.startswith("on")], name
            for link in page.values("href", "src"):
                assert "//" not in link
                assert (folder / "site" / name).parent.joinpath(link.partition("#")[0]).is_file(), (name, link)
    assert max(map(len, pages.values())) < 900_000
    assert len(pages["index.html"]) < 300_000


def test_text_from_outside_is_only_text(tmp_path: Path) -> None:
    hostile = "<script>x</script>\x1b[31m ../../`$("
    names = ("--name", hostile, "--step", hostile, "--label", hostile, "--param", f"{hostile}={hostile}")
    for number in range(2):
        add_night(tmp_path, number, *names)
    run_program(tmp_path, "nightly", hostile, "--site", "site", "--date", date(2))
    pages = {name: text for name, text in site(tmp_path).items() if not name.startswith("nights/")}
    assert all("<script" not in text and "\x1b" not in text for text in pages.values())
    assert {path.name for path in tmp_path.iterdir()} == {".gpureport", "site", "night.csv"}


def test_several_jobs_are_apart(tmp_path: Path) -> None:
    for number in range(2):
        for step in "ab":
            write_log(tmp_path / f"{step}.csv", 10 * number + ord(step))
            run_program(tmp_path, "nightly", f"{step}.csv", "--step", step, "--site", "site", "--date", date(number))
    pages = site(tmp_path)
    assert len([name for name in pages if name.endswith("gpu_utilization_ratio.html")]) == 2
    rows = pages["index.html"].split("<h2>Nights</h2>")[1]
    assert sorted(re.findall(r"<small>(\w) · NVIDIA L4</small>", rows)) == ["a", "a", "b", "b"]


def put(place: Path, files: dict[str, str]) -> None:
    """Write files of somebody else, older than what killed writers leave."""
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
        for path in (place / name, (place / name).parent):
            os.utime(path, (1, 1))


FOREIGN = {"2026-01-01/index.html": "photos", "nights/2025-01-01/data.csv": "1,2", "figures/logo.svg": "<svg/>"}
FOREIGN |= dict.fromkeys(("nights/mine.html", ".tmp-mine/thesis.txt", ".tmp-index.html", "about.html"), "mine")


def test_what_others_put_into_a_site_stays(tmp_path: Path) -> None:
    add_night(tmp_path, 0)
    own = (tmp_path / "site" / "index.html").read_text()
    put(tmp_path / "site", {**FOREIGN, ".tmp-index.html-7-0123abcd": "half", "nights.html": own})
    (tmp_path / "site" / "gpureport-site").unlink()
    assert run_program(tmp_path, "nightly", "--site", "site").code == 0
    files = {path.relative_to(tmp_path / "site").as_posix(): path for path in (tmp_path / "site").rglob("*")}
    assert {name: files[name].read_text() for name in FOREIGN} == FOREIGN
    assert not {".tmp-index.html-7-0123abcd", "nights.html"} & files.keys()
    assert (files["index.html"].read_text(), "gpureport-site" in files) == (own, True)


def test_a_page_of_somebody_else_is_refused(tmp_path: Path) -> None:
    add_night(tmp_path, 0)
    pages = site(tmp_path)
    for name in ("index.html", *(name for name in pages if name != "index.html")):
        theirs = {name: "<!doctype html><title>Photos of gpureport</title>"}
        put(tmp_path / "theirs", theirs)
        done = run_program(tmp_path, "--debug", "nightly", "--site", "theirs", "--all-reports")
        assert (done.code, done.error, site(tmp_path, "theirs")) == (2, "foreign_page", theirs), name
        shutil.rmtree(tmp_path / "theirs")
    put(tmp_path / "site", {"index.html": "<title>Photos</title>"})
    assert run_program(tmp_path, "--debug", "nightly", "--site", "site").error == "foreign_page"
    (tmp_path / "file").write_text("in the way")
    assert run_program(tmp_path, "nightly", "--site", "file").code in {2, 3}


def test_a_report_that_is_there_stays(folder: Path) -> None:
    first, second, *_ = sorted((folder / "site" / "nights").glob("*.html"))
    first.write_text(first.read_text().replace("</body>", "kept</body>"))
    second.unlink()
    shutil.rmtree(folder / ".gpureport" / "runs")
    assert run_program(folder, "nightly", "--site", "site", "--all-reports").code == 0
    assert "kept</body>" in first.read_text()
    index = site(folder)["index.html"]
    assert (index.count("report not kept"), second.name in index) == (1, False)


def baseline(folder: Path, *arguments: str) -> str:
    return run_program(folder, "--debug", "baseline", *arguments).error


def test_baselines_are_copies(tmp_path: Path) -> None:
    for name, number in (("a", 1), ("b", 2)):
        write_log(tmp_path / f"{name}.csv", number)
        run_program(tmp_path, "ingest", f"{name}.csv", "--name", name)
    assert not baseline(tmp_path, "set", "main", "a")
    run_program(tmp_path, "runs", "rm", "a", "--yes")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / ".gpureport" / "baselines", elsewhere / ".gpureport" / "baselines")
    shutil.copy(tmp_path / "b.csv", elsewhere / "tonight.csv")
    rule = ("--baseline", "main", "--fail-on", "change gpu_utilization_ratio >= -50 points")
    assert "no_such_baseline" not in run_program(elsewhere, "check", "tonight.csv", *rule, "--format", "json").out
    for sources in (("b.csv", "a.csv"), ("b",)):
        assert not baseline(tmp_path, "set", "main", *sources)
    runs = list((tmp_path / ".gpureport" / "baselines" / "main" / "runs").iterdir())
    assert (len(runs), [path.name for path in (tmp_path / ".gpureport" / "baselines").iterdir()]) == (1, ["main"])
    assert not baseline(tmp_path, "rm", "main")
    assert baseline(tmp_path, "rm", "main") == "no_such_baseline"


def test_a_baseline_that_is_damaged_says_so(tmp_path: Path) -> None:
    write_log(tmp_path / "a.csv", 1)
    run_program(tmp_path, "ingest", "a.csv", "--name", "a")
    assert not baseline(tmp_path, "set", "main", "a")
    (series,) = (tmp_path / ".gpureport" / "runs").rglob("hardware.parquet")
    series.write_bytes(series.read_bytes()[:-8])
    assert baseline(tmp_path, "set", "main", "a")
    place = tmp_path / ".gpureport" / "baselines" / "main" / "runs"
    assert len(list(place.iterdir())) == 1
    shutil.rmtree(place)
    rule = ("--baseline", "main", "--fail-on", "change gpu_utilization_ratio >= -50 points", "--format", "json")
    assert '"reason_code": "damaged_baseline"' in run_program(tmp_path, "check", "a.csv", *rule).out
    mistyped = run_program(tmp_path, "check", "a.csv", "--baseline", "mian", *rule[2:])
    assert '"reason_code": "no_such' in mistyped.out or mistyped.code == 4
    for name in ("", "..", "../out", "a/b", ".hidden", "a b", "x" * 65):
        assert baseline(tmp_path, "set", name, "a.csv") == "not_a_baseline_name", name


@pytest.mark.stress
def test_a_killed_command(tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv", 0)
    command = [sys.executable, "-m", "gpureport", "nightly", "gpu.csv", "--site", "site", "--date", date(0)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for delay in (0.4, 0.8, 1.2, 1.6, 2.0, None):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert len({row["run_id"] for row in history(tmp_path)}) in {0, 1}
        for text in site(tmp_path).values():
            assert text.rstrip().endswith("</html>")
    assert process.returncode == 0
    assert len({row["run_id"] for row in history(tmp_path)}) == 1


@pytest.mark.stress
def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for trial in range(6):
        place = tmp_path / str(trial)
        for number in range(3):
            write_log(place / f"{number}.csv", number)
        commands = (f"0.csv 1.csv --site site0 --date {date(0)}", f"1.csv 2.csv --site site1 --date {date(0)}")
        words = [[sys.executable, "-m", "gpureport", "-q", "nightly", *each.split()] for each in commands]
        running = [subprocess.Popen(each, cwd=place, env=environment, stdout=subprocess.DEVNULL) for each in words]
        assert [process.wait() for process in running] == [0, 0]
        assert len({row["run_id"] for row in history(place)}) == 3
        files = list((place / ".gpureport" / "history").iterdir())
        assert all(path.suffix == ".parquet" for path in files)
        left = place / ".gpureport" / "history" / ".tmp-night.parquet-7-0123abcd"
        left.write_bytes(b"half")
        os.utime(left, (1, 1))
        write_log(place / "3.csv", 3)
        assert run_program(place, "nightly", "3.csv", "--site", "site", "--date", date(1)).code == 0
        assert not left.exists()
