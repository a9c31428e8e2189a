"""A study of eighteen runs in a store of MLflow: best setting and effects are those that another script finds."""

import json
import sqlite3
import subprocess
import sys
from math import expm1
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gpureport
from gpureport.report.formats.json import comparison_json
from gpureport.report.wording.display import GAP
from tests.cli.program import Program, program
from tests.comparison.study.write_study import GAIN, SPEED
from tests.importers.trackers.mlflow import real
from tests.support import pdf_reading

pytestmark = pytest.mark.tracker
BY = "param:framework,param:batch_size"
BATCHES = ("8", "16", "32")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database that MLflow's client wrote."""
    pytest.importorskip("mlflow")
    folder = tmp_path_factory.mktemp("study")
    script = Path(__file__).with_name("write_study.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=real.environment(), capture_output=True)
    return folder / "mlflow.db"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Return the command line, run in a folder of its own."""
    return program(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def document(store: Path) -> Any:  # noqa: ANN401 - JSON
    """Return what the comparison of the API holds, as JSON."""
    comparison = gpureport.compare(gpureport.read(f"mlflow:{store}", tracker={"experiment": "sweep"}), by=BY)
    return json.loads(comparison_json.render(comparison, None, comparison.by))


def read_rates(store: Path) -> pd.DataFrame:
    """Return setting, training rate, whole-job rate and GPU time of every run, straight from the store.

    The points lie equally far apart. The first took as long as its rate says for as much work as others hold. The
    monitor logs what it measured since the point before, so that the recording ends one point before the last.
    """
    with sqlite3.connect(store) as connection:
        query = "select run_uuid, timestamp, value from metrics where key = 'samples_per_second'"
        points = pd.read_sql(query, connection)
        monitored = pd.read_sql("select run_uuid, timestamp from metrics where key like 'system/%'", connection)
        params = pd.read_sql("select run_uuid, key, value from params", connection)
    settings = params.pivot_table(index="run_uuid", columns="key", values="value", aggfunc="first")
    logged = monitored.groupby("run_uuid")["timestamp"]
    length = (logged.max() - logged.min()) / 1000
    rates, work = {}, {}
    for run, rows in points.groupby("run_uuid"):
        first, *others = rows.sort_values("timestamp")["value"]
        usual = np.median(others)
        rates[run] = (sum(others) + usual) / (len(others) + usual / first)
        work[run] = 5 * (sum(others[:-1]) + usual)
    whole = pd.Series(work) / length
    return settings.assign(training_rate_hertz=pd.Series(rates), work_rate_hertz=whole, per_work=1000 / whole)


FIGURES = (("training_rate_hertz", 1), ("work_rate_hertz", 1), ("gpu_seconds_per_1000_work", -1))


@pytest.mark.parametrize(("place", "figure", "better"), [(at, *each) for at, each in enumerate(FIGURES)])
def test_effects_are_those_of_another_script(
    store: Path,
    document: Any,  # noqa: ANN401 - JSON
    place: int,
    figure: str,
    better: int,
) -> None:
    """In a design with as many runs of every setting, effects are differences of marginal means of logarithms."""
    frame = read_rates(store).rename(columns={"per_work": FIGURES[2][0]})
    frame["log"] = np.log(frame[figure])
    by_framework, by_batch = (frame.groupby(key)["log"].mean() for key in ("framework", "batch_size"))
    left = frame["log"] - frame["framework"].map(by_framework) - frame["batch_size"].map(by_batch) + frame["log"].mean()
    degrees = 18 - 1 - 1 - 2
    scatter = np.sqrt((left**2).sum() / degrees)
    effects = document["study"]["effects"][place]
    assert (effects["metric"], effects["runs"], effects["degrees"]) == (figure, 18, degrees)
    framework, batch = effects["settings"]
    assert [level["value"] for level in batch["levels"]] == list(BATCHES)
    expected = [
        (framework["levels"][1], by_framework["jax"] - by_framework["torch"], 9),
        (batch["levels"][1], by_batch["16"] - by_batch["8"], 6),
        (batch["levels"][2], by_batch["32"] - by_batch["8"], 6),
    ]
    for level, change, runs in expected:
        half = stats.t.ppf(0.975, degrees) * scatter * np.sqrt(2 / runs)
        assert level["runs"] == runs
        assert level["change"] == pytest.approx(expm1(change), rel=1e-6)
        assert level["interval"] == pytest.approx([expm1(change - half), expm1(change + half)], rel=1e-6)
        assert level["verdict"] == "better"
    known = [(1 + change) ** better - 1 for change in (SPEED["jax"] - 1, GAIN[16] - 1, GAIN[32] - 1)]
    assert [level["change"] for level, _, _ in expected] == pytest.approx(known, abs=0.04)


@pytest.mark.parametrize(("kind", "column", "better"), [("speed", "training_rate_hertz", 1), ("cost", "per_work", -1)])
def test_the_best_setting_is_that_of_another_script(
    store: Path,
    document: Any,  # noqa: ANN401 - JSON
    kind: str,
    column: str,
    better: int,
) -> None:
    """The best geometric mean, its margin over the next by Welch's degrees of 1947."""
    frame = read_rates(store)
    logs = {key: np.log(rows[column].to_numpy()) for key, rows in frame.groupby(["framework", "batch_size"])}
    ranked = sorted(logs, key=lambda key: -better * logs[key].mean())
    best, following = logs[ranked[0]], logs[ranked[1]]
    parts = [side.var(ddof=1) / len(side) for side in (best, following)]
    degrees = min(1 / sum((part / sum(parts)) ** 2 / 4 for part in parts) - 2, 4)
    change, half = best.mean() - following.mean(), stats.t.ppf(0.975, degrees) * np.sqrt(sum(parts))
    found = document["study"]["best"][kind]
    assert ranked[0] == ("jax", "32")
    assert found["label"] == "framework=jax, batch_size=32"
    assert found["next"] == "framework={}, batch_size={}".format(*ranked[1])
    assert found["change"] == pytest.approx(expm1(change), rel=1e-6)
    assert found["interval"] == pytest.approx([expm1(change - half), expm1(change + half)], rel=1e-6)
    assert (found["verdict"], found["tested"], found["rivals"]) == ("better", 5, [])


def test_groups_stand_in_the_order_of_their_values(document: Any) -> None:  # noqa: ANN401 - JSON
    """8 before 16 before 32, whatever the order of the runs; what tells repetitions apart has no effect of its own."""
    labels = [f"framework={framework}, batch_size={batch}" for framework in ("torch", "jax") for batch in BATCHES]
    study = document["study"]
    assert [step["label"] for step in document["steps"]] == labels
    assert [group["label"] for group in study["groups"]] == labels
    assert study["by"] == [
        {"kind": "param", "key": "framework", "values": ["torch", "jax"]},
        {"kind": "param", "key": "batch_size", "values": list(BATCHES)},
    ]
    names = {key: [each["key"] for each in study[key]] for key in ("also_varied", "repetitions", "names")}
    assert names == {"also_varied": [], "repetitions": ["seed"], "names": ["output_dir"]}


@pdf_reading.needs_poppler
def test_every_format_says_the_best_and_the_effects(command: Program, store: Path, tmp_path: Path) -> None:
    """Two panels of three bars on one scale; the same words in each format, in text and PDF with everything in them."""
    files = [word for kind in ("html", "json", "md", "txt", "pdf") for word in ("-o", f"study.{kind}")]
    asked = ("report", f"mlflow:{store}", "--experiment", "sweep", "--by", BY)
    assert command(*asked, "--detail", "full", *files).code == 0
    part = json.loads((tmp_path / "study.json").read_text())["comparison"]
    assert [chart["title"].partition(": ")[2] for chart in part["charts"]] == ["framework=torch", "framework=jax"]
    for chart in part["charts"]:
        assert [row["label"] for row in chart["rows"]] == [f"batch_size={batch} (3 runs)" for batch in BATCHES]
        assert all(row["interval"] for row in chart["rows"])
    assert len({chart["end"] for chart in part["charts"]}) == 1
    facts = [fact for section in part["study"] for fact in section["facts"]]
    said = [fact["text"] for fact in facts if fact["name"] in {"Least GPU time", "Fastest"}]
    assert len(said) == 2
    changes = [
        row["cells"][1]["text"] for section in part["study"] if section["table"] for row in section["table"]["rows"]
    ]
    for kind in ("html", "md", "txt", "pdf"):
        path = tmp_path / f"study.{kind}"
        written = pdf_reading.text(path) if kind == "pdf" else path.read_text()
        text = " ".join(written.replace(GAP, " ").replace("\\", "").split())
        assert all(words in text for words in (*said, *changes)), kind


def test_the_command_says_the_same(command: Program, store: Path, document: Any) -> None:  # noqa: ANN401 - JSON
    """`compare` groups as the API does, and prints the best setting: on one screen, and in full by each figure."""
    asked = ("compare", f"mlflow:{store}", "--experiment", "sweep", "--by", BY)
    assert json.loads(command(*asked, "--format", "json").out)["study"] == document["study"]
    short, full = command(*asked), command(*asked, "--detail", "full")
    assert short.code == full.code == 0
    assert "Least GPU time: framework=jax, batch_size=32: " in short.out
    assert "FIRST → LAST" not in short.out, "groups have no order"
    assert "BEST SETTING" in full.out
    assert all(name in full.out.partition("BEST SETTING")[2] for name in ("Least GPU time", "Fastest"))
