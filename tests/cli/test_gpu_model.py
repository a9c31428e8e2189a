"""The GPU model that a person names."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program

HEADER = "timestamp, index, {name}utilization.gpu [%]\n"


def write_log(path: Path, name: str = "") -> None:
    """Write a log with or without a name of its GPU."""
    cell = f"{name}, " if name else ""
    rows = [f"2026/03/14 09:00:{second:02}.000, 0, {cell}90 %\n" for second in range(40)]
    path.write_text(HEADER.format(name="name, " if name else "") + "".join(rows), encoding="utf-8")


def read_run(gpureport: Program, *arguments: str) -> dict[str, object]:
    """Return the run that `analyze` prints as JSON."""
    done = gpureport("analyze", *arguments, "--format", "json")
    assert done.code == 0
    run: dict[str, object] = json.loads(done.out)["runs"][0]
    return run


def test_a_log_without_a_name_gets_the_model(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv")
    text = json.dumps(read_run(gpureport, "gpu.csv", "--gpu-model", "A100 80GB"))
    assert '"model": "A100 80GB"' in text
    assert "the GPU model A100 80GB was given by --gpu-model" in text


def test_the_log_wins(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv", "Tesla T4")
    text = json.dumps(read_run(gpureport, "gpu.csv", "--gpu-model", "A10"))
    assert '"model": "Tesla T4"' in text
    assert "gpu:0 is known as Tesla T4: --gpu-model A10 is not used for it" in text


def test_the_same_model_needs_no_note(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv", "Tesla T4")
    assert "--gpu-model" not in json.dumps(read_run(gpureport, "gpu.csv", "--gpu-model", "t4"))


def test_a_stored_run_can_be_named_later(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv")
    gpureport("ingest", "gpu.csv", "--name", "base")
    assert '"model": "T4"' in json.dumps(read_run(gpureport, "base", "--gpu-model", "T4"))


def test_a_price_of_the_model_holds(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv")
    rates = '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\n[[prices.rate]]\nmodel = "T4"\ngpu_hour = 0.5\n'
    (tmp_path / "gpureport.toml").write_text(rates, encoding="utf-8")
    assert '"total": null' in json.dumps(read_run(gpureport, "gpu.csv")["cost"])
    assert '"total": null' not in json.dumps(read_run(gpureport, "gpu.csv", "--gpu-model", "T4")["cost"])


@pytest.mark.parametrize(("typed", "hint"), [("H10O", "did you mean 'H100"), ("Radeon", "known are ")])
def test_a_mistyped_model_is_refused(gpureport: Program, tmp_path: Path, typed: str, hint: str) -> None:
    write_log(tmp_path / "gpu.csv")
    done = gpureport("analyze", "gpu.csv", "--gpu-model", typed)
    assert done.code == 2
    assert hint in done.err


@pytest.mark.parametrize("price", ["2.49 EUR", "EUR 2.49", "2.49EUR", "€2.49"])
def test_a_price_names_its_currency(gpureport: Program, tmp_path: Path, price: str) -> None:
    write_log(tmp_path / "gpu.csv")
    cost = read_run(gpureport, "gpu.csv", "--gpu-hour-price", price)["cost"]
    assert isinstance(cost, dict)
    assert cost["currency"] in {"EUR", "€"}


def test_a_cost_without_currency_says_so_once(gpureport: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "gpu.csv")
    out = gpureport("analyze", "gpu.csv", "--gpu-hour-price", "2.49", "--detail", "full").out
    assert " ".join(out.split()).count("no currency given") == 1
