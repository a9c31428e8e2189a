"""Figures of a comparison on its runs of MLflow: as MLflow's own client reads them, and nothing else changed."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpureport.errors import SourceError
from gpureport.publishing import publish
from tests.cli.program import Program, program
from tests.importers.trackers.mlflow import real
from tests.importers.trackers.mlflow.stores import HARDWARE, START, Made, database, folder, monitored, run_id
from tests.importers.trackers.mlflow.test_safety import state

TICKS = [10_000 + 10_000 * place for place in range(30)]
NAMES = ("base", "workers", "amp")


def made(place: int) -> Made:
    """Return a run of five minutes that is faster than the one before."""
    begun = 400_000 * place
    ticks = [begun + tick for tick in TICKS]
    hardware = monitored(ticks, HARDWARE | {"gpu_0_utilization_percentage": 30.0 + 20 * place})
    speed = {"samples_per_second": [(START + tick, 100.0 * (place + 1), tick) for tick in ticks]}
    return Made(
        id=run_id(place + 1),
        name=NAMES[place],
        series=hardware | speed,
        start=START + begun,
        end=START + begun + 310_000,
    )


RUNS = [made(place) for place in range(3)]


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The program, run in a folder, in an environment of MLflow."""
    for name, value in real.environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="2").items():
        monkeypatch.setenv(name, value)
    return program(capsys, monkeypatch, tmp_path)


def compared(gpureport: Program, *sources: str) -> dict[str, Any]:
    """Write the comparison of runs to a file; return it."""
    done = gpureport("compare", *sources, "--format", "json")
    Path("comparison.json").write_text(done.out, encoding="utf-8")
    found: dict[str, Any] = json.loads(done.out)
    return found


def record(uri: str, artifacts: str | None = None) -> None:
    """Record the runs with MLflow's own client, with a place for their artifacts."""
    from mlflow import MlflowClient  # noqa: PLC0415 - an extra
    from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - as above

    client = MlflowClient(uri)
    experiment = client.create_experiment("tuning", artifacts)
    for run in RUNS:
        key = client.create_run(experiment, start_time=run.start, run_name=run.name).info.run_id
        points = [
            Metric(name, value, time, step) for name, series in run.series.items() for time, value, step in series
        ]
        client.log_batch(key, metrics=points, tags=[RunTag("team", "vision")])
        client.set_terminated(key, end_time=run.end)


def published(found: dict[str, Any]) -> dict[str, tuple[dict[str, float], dict[str, str]]]:
    """Return the metrics and tags that runs have got, by name, each metric with one point."""
    own: dict[str, tuple[dict[str, float], dict[str, str]]] = {}
    for run in found.values():
        metrics = {key: points for key, points in run["metrics"].items() if key.startswith("gpureport.")}
        assert {len(points) for points in metrics.values()} <= {1}
        own[run["name"]] = (
            {key: float(points[-1][2]) for key, points in metrics.items()},
            {key: text for key, text in run["tags"] if key.startswith("gpureport.")},
        )
    return own


def bare(found: dict[str, Any]) -> dict[str, Any]:
    """Return what runs hold besides what was published."""
    return {
        key: run
        | {
            "metrics": {name: points for name, points in run["metrics"].items() if not name.startswith("gpureport.")},
            "tags": [pair for pair in run["tags"] if not pair[0].startswith("gpureport.")],
        }
        for key, run in found.items()
    }


def expected_metrics(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the metrics that each run is to have, by the name of the run."""
    runs = [run for step in document["steps"] for run in step["runs"]]
    return {
        run["name"]: {
            f"gpureport.{name}": value
            for name, value in (*run["measures"].items(), ("lost_ratio", run["lost_ratio"]))
            if value is not None
        }
        for run in runs
    }


@contextmanager
def _database(folder: Path) -> Iterator[tuple[str, str]]:
    uri = f"sqlite:///{folder}/mlflow.db"
    record(uri)
    yield uri, uri


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, str]]:
    record(f"sqlite:///{folder}/mlflow.db", "mlflow-artifacts:/tuning")
    with real.served(folder / "mlflow.db", folder / "artifacts") as url:
        yield url, url


@contextmanager
def _file_store(folder: Path) -> Iterator[tuple[str, str]]:
    record(f"file://{folder}/mlruns")
    yield f"{folder}/mlruns", f"file://{folder}/mlruns"


@pytest.mark.tracker
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [_database, _file_store, _server], ids=["database", "file store", "server"])
def test_every_run_gets_the_figures_of_the_comparison(kind: Any, gpureport: Program, tmp_path: Path) -> None:  # noqa: ANN401 - a function above
    """To the last digit, as MLflow's own client reads them; a second time changes nothing."""
    report = tmp_path / "report.html"
    report.write_text("<html>", encoding="utf-8")
    with kind(tmp_path) as (store, uri):
        before = real.oracle(uri)
        document = compared(gpureport, f"mlflow:{store}")
        done = gpureport("publish", "comparison.json", "report.html", "--to", f"mlflow:{store}")
        assert (done.code, done.out) == (0, "")
        assert f"published figures of base, workers, amp to {store}: 3 of 3 runs changed" in done.err
        after = real.oracle(uri)
        assert {name: metrics for name, (metrics, _) in published(after).items()} == expected_metrics(document)
        tags = {name: tags for name, (_, tags) in published(after).items()}
        assert [tags[name]["gpureport.step"] for name in NAMES] == list(NAMES)
        assert [tags[name].get("gpureport.compared_with") for name in NAMES] == [None, "base", "workers"]
        took = {name: metrics["gpureport.gpu_seconds_per_1000_work"] for name, (metrics, _) in published(after).items()}
        for base, name in pairwise(NAMES):
            assert tags[name]["gpureport.change"].startswith(f"{(took[name] / took[base] - 1) * 100:+.0f}%")
        assert bare(after) == before
        again = gpureport("publish", "comparison.json", "report.html", "--to", f"mlflow:{store}")
        assert f"published figures of base, workers, amp to {store}: 0 of 3 runs changed" in again.err
        assert real.oracle(uri) == after
        # what was published is no measurement: the comparison stays the same
        assert compared(gpureport, f"mlflow:{store}") == document


def test_what_no_longer_holds_is_replaced_or_removed(gpureport: Program, tmp_path: Path) -> None:
    """A run that becomes the first step keeps no verdict; a changed figure is logged once more."""
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    gpureport("publish", "comparison.json", "--to", f"mlflow:{store}")
    document = compared(gpureport, *(f"mlflow:{store}#{name}" for name in ("workers", "amp")))
    document["steps"][1]["runs"][0]["measures"]["gpu_seconds"] = 1.25
    Path("comparison.json").write_text(json.dumps(document), encoding="utf-8")
    done = gpureport("publish", "comparison.json", "--to", f"mlflow:{store}")
    assert "figures of workers, amp" in done.err
    first, later = (next(store.glob(f"*/{run_id(number)}")) for number in (2, 3))
    kept = {path.name for path in (first / "tags").iterdir()}
    assert kept == {"gpureport.step", "gpureport.judged_by"}
    points = (later / "metrics" / "gpureport.gpu_seconds").read_text(encoding="utf-8").splitlines()
    assert [float(line.split()[1]) for line in points][1:] == [1.25]
    assert len((later / "metrics" / "gpureport.idle_ratio").read_text(encoding="utf-8").splitlines()) == 1


def test_nothing_is_written_where_a_run_is_missing(gpureport: Program, tmp_path: Path) -> None:
    """Unless that is wanted; it is named."""
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    shutil.rmtree(next(store.glob(f"*/{run_id(2)}")))
    before = state(store)
    done = gpureport("publish", "comparison.json", "--to", f"mlflow:{store}")
    assert done.code == 3
    assert "nothing was written; missing: workers" in done.err
    assert state(store) == before
    done = gpureport("publish", "comparison.json", "--to", f"mlflow:{store}", "--skip-missing")
    assert (done.code, "figures of base, amp to" in done.err) == (0, True)


def test_nothing_is_written_where_an_artifact_cannot_be(gpureport: Program, tmp_path: Path) -> None:
    """No figure either, and nothing into the other targets: all is checked before."""
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    (tmp_path / "theirs").mkdir()
    for meta in store.glob("*/*/meta.yaml"):
        kept = [line for line in meta.read_text(encoding="utf-8").splitlines() if not line.startswith("artifact_uri")]
        meta.write_text("\n".join([*kept, f"artifact_uri: {tmp_path}/theirs/{meta.parent.name}"]), encoding="utf-8")
    (tmp_path / "page.html").write_text("<html>", encoding="utf-8")
    before = state(tmp_path)
    done = gpureport("publish", "comparison.json", "page.html", "--to", "site", "--to", f"mlflow:{store}")
    assert (done.code, done.err.count("\n"), "add --follow-artifact-uri" in done.err) == (3, 1, True)
    assert state(tmp_path) == before


def test_runs_of_no_tracker_are_refused(gpureport: Program, tmp_path: Path) -> None:
    """A comparison of another store, and a target that names no run without a comparison."""
    other, store = folder(tmp_path / "other", RUNS[:2]), folder(tmp_path / "mlruns", RUNS[2:])
    compared(gpureport, f"mlflow:{other}")
    with pytest.raises(SourceError, match="none of the runs of this comparison is in the store"):
        publish([Path("comparison.json")], f"mlflow:{store}", skip_missing=True)
    (tmp_path / "report.html").write_text("<html>", encoding="utf-8")
    with pytest.raises(SourceError, match="it names no run"):
        publish([Path("report.html")], f"mlflow:{store}")
    with pytest.raises(SourceError, match="two comparisons"):
        publish([Path("comparison.json"), Path("comparison.json")], f"mlflow:{store}")


@pytest.mark.filterwarnings("ignore")
def test_a_database_of_another_version_is_not_migrated(gpureport: Program, tmp_path: Path) -> None:
    """MLflow's client would do that by opening it."""
    source = database(tmp_path / "mlflow.db", RUNS)
    compared(gpureport, f"mlflow:{source}")
    before = state(tmp_path)
    with pytest.raises(SourceError, match="its schema acf3f17fdcc7 is not that of MLflow 3") as raised:
        publish([Path("comparison.json")], f"mlflow:{source}")
    assert "mlflow db upgrade" in raised.value.hint
    assert state(tmp_path) == before


def test_a_named_run_gets_a_comparison_as_a_file(gpureport: Program, tmp_path: Path) -> None:
    """As it gets any other, and the line says that no figures were written, and what writes them."""
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    (tmp_path / "report.html").write_text("<html>", encoding="utf-8")
    done = gpureport("publish", "comparison.json", "report.html", "--to", f"mlflow:{store}#amp")
    line, other = done.err.splitlines()
    moved = "; MLflow looks in /nowhere/"
    assert (done.code, other.partition(moved)[0]) == (0, line.partition("comparison.json")[0] + "report.html")
    path, _, said = line.partition(moved)
    assert path.endswith(f"{run_id(3)}/artifacts/gpureport/comparison.json")
    said = said.partition("; ")[2]
    assert said == f"no figures were written: --to mlflow:{store} writes them to base, workers and amp"


def test_a_comparison_of_runs_without_a_tracker_says_why_none_are_written(gpureport: Program, tmp_path: Path) -> None:
    """Of logs there is no run of MLflow that could get them; one of another version is a file as well."""
    store = folder(tmp_path / "mlruns", RUNS[:1])
    document = compared(gpureport, f"mlflow:{folder(tmp_path / 'other', RUNS[:2])}")
    for step in document["steps"]:
        for run in step["runs"]:
            run["sources"] = [{"kind": "nvidia-smi", "locator": "gpu.csv", "sha256": None}]
    Path("comparison.json").write_text(json.dumps(document), encoding="utf-8")
    (line,) = publish([Path("comparison.json")], f"mlflow:{store}#base")
    assert line.endswith("; no figures were written: none of its runs was read from MLflow")
    del document["steps"][0]["runs"]
    Path("comparison.json").write_text(json.dumps(document), encoding="utf-8")
    (line,) = publish([Path("comparison.json")], f"mlflow:{store}#base")
    assert line.endswith("; no figures were written: not the JSON of a comparison by this version")
