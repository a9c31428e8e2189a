"""`gpureport analyze`, `report`, `demo` and `--job`: JSON, prices, models, text and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import gapped, log, stamp
from tests.support.program import Program


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    """A log of five minutes with half a minute of idleness in the middle."""
    (tmp_path / "gpu.csv").write_text(gapped())


def analyze(gpureport: Program, *words: str) -> Any:
    done = gpureport("analyze", *words, "--format", "json")
    assert (done.code, len(json.loads(done.out)["runs"])) == (0, 1), done
    return json.loads(done.out)["runs"][0]


def kinds(gpureport: Program, *words: str) -> set[str]:
    return {finding["kind"] for finding in analyze(gpureport, *words)["findings"]}


def test_times_carry_an_offset_where_the_zone_is_known(gpureport: Program) -> None:
    assert json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)["schema"] == "gpureport.analysis/1"
    for options, zone, offset in (((), None, ""), (("--tz", "Asia/Kolkata"), "Asia/Kolkata", "+05:30")):
        run = analyze(gpureport, "gpu.csv", *options)["run"]
        assert (run["started"], run["timezone"]) == (f"2026-03-14T09:00:00.000{offset}", zone)


def test_kinds_are_selected_and_thresholds_set(gpureport: Program, tmp_path: Path) -> None:
    assert kinds(gpureport, "gpu.csv", "--select", "idle_gap") == {"idle_gap"}
    assert "idle_gap" not in kinds(gpureport, "gpu.csv", "--ignore", "idle_gap")
    plain = gpureport("analyze", "gpu.csv", "--format", "json")
    # a threshold that can no longer be set is ignored and named
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nbridge = 45\nhang = 5\n")
    gone = gpureport("analyze", "gpu.csv", "--format", "json")
    assert (gone.code, gone.out) == (plain.code, plain.out)
    assert ("gpureport.toml:2: bridge, hang in [rules.idle_gap]" in gone.err, gone.err.count("\n")) == (True, 1)
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nshortst = 45\n")
    assert gpureport("analyze", "gpu.csv").err.endswith("; known keys are idle, problem, shortest, still, warning\n")
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nshortest = 45\n")
    assert "idle_gap" not in kinds(gpureport, "gpu.csv")


def test_a_price_gives_a_cost_and_names_its_currency(gpureport: Program, tmp_path: Path) -> None:
    cost = analyze(gpureport, "gpu.csv", "--gpu-hour-price", "3.6")["cost"]
    assert (cost["price"], round(cost["total"], 3), cost["currency"]) == (3.6, 0.299, None)
    assert 0.02 < cost["idle"] < 0.04
    full = gpureport("analyze", "gpu.csv", "--gpu-hour-price", "2.49", "--detail", "full")
    assert (" ".join(full.out.split()).count("no currency given"), "has no currency" in full.err) == (1, True)
    assert "has no currency" not in gpureport("analyze", "gpu.csv", "--gpu-hour-price", "2.49 EUR").err
    (tmp_path / "gpureport.toml").write_text('[prices]\ncurrency = "CHF"\ndate = 2026-03-01\n')
    currencies = {"€3.6": "€", "3.6 $": "$", "3.6": "CHF"} | dict.fromkeys(("3.6 EUR", "EUR 3.6", "3.6EUR"), "EUR")
    for price, currency in currencies.items():
        cost = analyze(gpureport, "gpu.csv", "--gpu-hour-price", price)["cost"]
        assert (cost["price"], cost["currency"]) == (3.6, currency), price
    rates = "gpu_hour = 9\n[[prices.rate]]\nspot = true\ngpu_hour = 3.6\n"
    (tmp_path / "gpureport.toml").write_text(f'[prices]\ncurrency = "EUR"\ndate = 2026-03-01\n{rates}')
    cost = analyze(gpureport, "gpu.csv", "--tag", "spot=yes")["cost"]
    assert (cost["price"], cost["currency"], round(cost["total"], 3)) == (3.6, "EUR", 0.299)
    text = " ".join(gpureport("analyze", "gpu.csv", "--carbon-intensity", "400", "--detail", "full").out.split())
    assert [word in text for word in ("€9.00", "gpureport.toml:4", "2026-03-01", "400 g/kWh")] == [True] * 4


def test_a_gpu_without_a_name_gets_the_model_that_is_given(gpureport: Program, tmp_path: Path) -> None:
    def write(name: str = "") -> None:
        cell, column = (f"{name}, ", "name, ") if name else ("", "")
        rows = [f"{stamp(second)}, 0, {cell}90 %" for second in range(40)]
        (tmp_path / "gpu.csv").write_text("\n".join([f"timestamp, index, {column}utilization.gpu [%]", *rows, ""]))

    def read(*words: str) -> tuple[str, int]:
        """Return the model of the GPU and how many notes speak of the option."""
        run = analyze(gpureport, *words)
        notes = [note for note in run["quality"]["notes"] if "--gpu-model" in note]
        return next(device["model"] for device in run["run"]["devices"]), len(notes)

    write()
    assert read("gpu.csv", "--gpu-model", "A100 80GB") == ("A100 80GB", 1)
    gpureport("ingest", "gpu.csv", "--name", "base")
    assert read("base", "--gpu-model", "T4")[0] == "T4"
    rates = '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\n[[prices.rate]]\nmodel = "T4"\ngpu_hour = 0.5\n'
    (tmp_path / "gpureport.toml").write_text(rates, encoding="utf-8")
    assert analyze(gpureport, "gpu.csv")["cost"]["total"] is None
    assert analyze(gpureport, "gpu.csv", "--gpu-model", "T4")["cost"]["total"] > 0
    write("Tesla T4")
    assert read("gpu.csv", "--gpu-model", "A10") == ("Tesla T4", 1)
    # another spelling is no difference
    assert read("gpu.csv", "--gpu-model", "t4") == ("Tesla T4", 0)


def test_several_files_from_one_analysis(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(log(300))
    names = ("r.html", "r.json", "r.txt")
    for folder in ("one", "two"):
        outputs = [word for name in names for word in ("-o", f"{folder}/{name}")]
        done = gpureport("report", "gpu.csv", "b.csv", *outputs)
        assert (done.code, done.out, done.err.count("\n")) == (0, "", 1)
        assert done.err.endswith(" → " + ", ".join(f"{folder}/{name}" for name in names) + "\n")
    written = [[(tmp_path / folder / name).read_bytes() for name in names] for folder in ("one", "two")]
    assert written[0] == written[1]
    assert (tmp_path / "one" / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    shown = gpureport("report", "gpu.csv", "-o", "-")
    assert (shown.code, bool(shown.out)) == (0, True)


def test_the_demo_needs_nothing(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").unlink()
    done = gpureport("demo", "-o", "report.html")
    lines = done.out.splitlines()
    assert (done.code, len(lines) <= 30, max(map(len, lines)) <= 80) == (0, True, True)
    assert ("  1-starved " in done.out, "gpureport analyze gpu.csv" in done.err) == (True, True)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    full = gpureport("demo", "--detail", "full")
    assert (full.code, len(full.out) > 2 * len(done.out)) == (0, True)


def test_a_part_of_a_log_and_of_a_stored_run_are_judged_alike(gpureport: Program) -> None:
    gpureport("ingest", "gpu.csv", "--name", "whole")
    for source in ("gpu.csv", "whole"):
        run = analyze(gpureport, source, "--from", "170s")
        assert run["run"]["started"] == "2026-03-14T09:02:50.000"
        assert "idle_gap" not in {finding["kind"] for finding in run["findings"]}
        assert [each["rows"] for each in run["quality"]["rejected"]] == [170]


def test_several_runs_say_more_together(gpureport: Program, tmp_path: Path) -> None:
    fields = ("timestamp", "index", "name", "utilization.gpu [%]", "memory.used [MiB]", "memory.total [MiB]")
    for size, peak in ((8, 9), (16, 12), (32, 18)):
        held = [min(second, 100) * peak * 10 for second in range(300)]
        rows = [f"{stamp(at)}, 0, NVIDIA L4, 95 %, {memory} MiB, 23034 MiB" for at, memory in enumerate(held)]
        (tmp_path / f"{size}.csv").write_text("\n".join([", ".join(fields), *rows, ""]))
        gpureport("ingest", f"{size}.csv", "--name", f"b{size}", "--param", f"batch_size={size}")
    alone = json.loads(gpureport("analyze", "b8", "--format", "json").out)
    several = json.loads(gpureport("analyze", "b8", "b16", "b32", "--format", "json").out)
    assert alone["across_runs"] == []
    assert {"gpu_kinds", "batch_size"} <= {finding["kind"] for finding in several["across_runs"]}
    assert all(finding["summary"] and finding["steps"] for finding in several["across_runs"])
