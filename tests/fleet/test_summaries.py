"""The table of summaries: only what is new is analysed, and what is damaged is made again."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.program import Program
from tests.fleet.fleet_logs import Card, report, write_job

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


def test_a_table_of_an_earlier_version_lacks_a_column(gpureport: Program, table: Path) -> None:
    read = parquet.ParquetFile(pa.BufferReader(table.read_bytes())).read().drop_columns(["source"])
    parquet.write_table(read, table, write_page_checksum=True)
    make_up(table)
    assert (energy(gpureport), gpureport("fleet").err) == (2 * MADE_UP, "")


def test_a_corrupt_run_is_tried_again(gpureport: Program, tmp_path: Path, table: Path) -> None:
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
