"""What `gpureport` alone says, and of a path or a price that lacks a word."""

import shutil
from pathlib import Path

from tests.cli.logs import SAMPLE
from tests.cli.program import Program

TRACKERS = ("mlflow.db", "mlruns", ".neptune")


def test_it_shows_the_ways_to_something(gpureport: Program) -> None:
    done = gpureport()
    assert (done.code, done.err) == (0, "")
    ways = ("gpureport record -- COMMAND", "gpureport report . -o report.html", "gpureport demo", "gpureport --help")
    assert [way for way in ways if way not in done.out] == []


def test_it_names_what_the_folder_holds_in_ten_lines(gpureport: Program, tmp_path: Path) -> None:
    for folder in ("runs/base", "mlruns", ".neptune", ".gpureport"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "runs/base/run.json").write_text("{}", encoding="utf-8")
    (tmp_path / "mlflow.db").touch()
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    lines = gpureport().out.splitlines()
    ways = ("analyze runs/base", "analyze gpu.csv.gz", *(f"ingest {name} --list" for name in TRACKERS), "runs", "demo")
    assert [way for way in ways if not any(line.endswith(f" gpureport {way}") for line in lines)] == []
    assert len(lines) <= 10


def test_a_path_is_proposed_to_be_analysed(gpureport: Program, tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    done = gpureport("gpu.csv.gz", "--tz", "UTC")
    assert done.code == 2
    assert "did you mean gpureport analyze gpu.csv.gz --tz UTC?" in done.err


def test_a_price_without_a_currency_is_said(gpureport: Program, tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    notes = {price: gpureport("analyze", "gpu.csv.gz", "--gpu-hour-price", price).err for price in ("2.49", "2.49 EUR")}
    assert {price: "names no currency" in text for price, text in notes.items()} == {"2.49": True, "2.49 EUR": False}
