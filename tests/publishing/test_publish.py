"""A report put where people look, whole; and figures of a comparison on its runs of MLflow."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.importers.trackers.mlflow.real import oracle, served
from tests.importers.trackers.mlflow.servers import Reply, answering
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule
from tests.importers.trackers.tracked import state
from tests.publishing.conftest import NAMES, RUNS, refuse
from tests.support.program import Program
from tests.support.tables import read_table

EXPERIMENT = "mlruns/900000000000000000"
RUN = Made(id=run_id(1), name="baseline", series=monitored([10_000 * (place + 1) for place in range(30)]))
PUT = Path("artifacts/gpureport/report.html")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "out" / "report.html"
    path.parent.mkdir()
    path.write_text("<html>one</html>", encoding="utf-8")
    return path


def publish(gpureport: Program, *words: str) -> str:
    done = gpureport("publish", "out/report.html", *words)
    assert (done.code, done.out) == (0, ""), done
    return done.err.removeprefix("published ").rstrip("\n")


def put_artifacts(source: Path, uri: str | Path) -> None:
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("update runs set artifact_uri = ?", (str(uri),))


def test_a_folder_is_made_and_a_report_replaced(gpureport: Program, report: Path, tmp_path: Path) -> None:
    target = tmp_path / "site" / "tonight"
    assert publish(gpureport, "--to", str(target)) == f"{target}/report.html"
    report.write_text("<html>two</html>", encoding="utf-8")
    publish(gpureport, "--to", str(target))
    assert {path.name: path.read_text() for path in target.iterdir()} == {"report.html": "<html>two</html>"}
    assert publish(gpureport, "--to", "./a:b") == "a:b/report.html"
    assert publish(gpureport, "--to", "late/night:2") == "late/night:2/report.html"
    assert publish(gpureport, "--to", str(tmp_path / "c#")).startswith(str(tmp_path / "c#"))


def test_a_store_gets_a_report_and_stays_as_it_is(gpureport: Program, report: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    source = database(tmp_path / "store" / "mlflow.db", [RUN])
    files = folder(tmp_path / "mlruns", [RUN])
    for store, home in ((source, source.parent / "mlruns" / "1"), (files, tmp_path / EXPERIMENT)):
        before = state(store.parent)
        read = gpureport("analyze", f"mlflow:{store}#baseline", "--format", "json").out
        where = publish(gpureport, "--to", f"{store}#{RUN.id}")
        assert Path(where.partition(";")[0]) == home / RUN.id / PUT
        assert (home / RUN.id / PUT).read_bytes() == report.read_bytes()
        assert {path: each for path, each in state(store.parent).items() if path in before} == before
        # a report is no log
        assert gpureport("analyze", f"mlflow:{store}#baseline", "--format", "json").out == read
        assert publish(gpureport, "--to", f"mlflow:{store}#baseline") == where
    assert [path for path in tmp_path.iterdir() if "#" in path.name] == []
    put_artifacts(source, "/srv/absent/mlruns/1/run/artifacts")
    assert "; MLflow looks in /srv/absent/mlruns/1/run/artifacts" in publish(gpureport, "--to", f"{source}#baseline")


@contextmanager
def tracking(artifacts: str, sent: set[str]) -> Iterator[str]:
    """Give the URL of a server whose run keeps its artifacts somewhere, and note what it is sent."""

    def answer(method: str, path: str, _: dict[str, str]) -> Reply:
        sent.add(f"{method} {path.partition('?')[0]}")
        info = {"run_id": RUN.id, "experiment_id": "1", "status": "FINISHED", "artifact_uri": artifacts}
        return Reply(200, {"run": {"info": info, "data": {}}} if "runs/get" in path else {})

    with answering(answer) as url:
        yield url


@pytest.mark.usefixtures("report")
def test_a_server_gets_a_report_and_a_tag_and_names_no_folder_here(gpureport: Program, tmp_path: Path) -> None:
    sent = set[str]()
    with tracking(f"mlflow-artifacts:/1/{RUN.id}/artifacts", sent) as url:
        assert publish(gpureport, "--to", f"mlflow:{url}#{RUN.id}") == f"{url}#{RUN.id}, gpureport/report.html"
    assert f"PUT /api/2.0/mlflow-artifacts/artifacts/1/{RUN.id}/{PUT}" in sent
    assert "POST /api/2.0/mlflow/runs/set-tag" in sent
    (tmp_path / "theirs").mkdir()
    with tracking(f"{tmp_path}/theirs/run", sent) as url:
        for more in ((), ("--follow-artifact-uri",)):
            target = ("--to", f"mlflow:{url}#{RUN.id}", *more)
            assert refuse(gpureport, tmp_path, "out/report.html", *target) == "foreign_artifacts"


@pytest.mark.parametrize(
    "uri", ["{home}/theirs", "file://{home}/theirs", "../theirs", "{home}/theirs/new/run", "{link}"]
)
def test_artifacts_outside_a_store_need_a_word(uri: str, report: Path, tmp_path: Path, gpureport: Program) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store/link").symlink_to(tmp_path / "theirs")
    source = database(tmp_path / "store/mlflow.db", [RUN])
    put_artifacts(source, uri.format(home=tmp_path, link=tmp_path / "store/link"))
    target = ("--to", f"mlflow:{source}#baseline")
    assert refuse(gpureport, tmp_path, "out/report.html", *target) == "foreign_artifacts"
    publish(gpureport, *target, "--follow-artifact-uri")
    (found,) = (tmp_path / "theirs").rglob("report.html")
    assert found.read_bytes() == report.read_bytes()


@pytest.mark.usefixtures("report")
def test_what_cannot_be_published_stops_all(gpureport: Program, tmp_path: Path) -> None:
    for name in ("other/report.html", "other/index.html", "kept/runs/x", "taken/report.html/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "kept/store.json").write_text('{"format": 1}')
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "beside").mkdir()
    folder(tmp_path / "mlruns", [RUN])
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 3])))
    publish(gpureport, "--to", f"{database(tmp_path / 'beside/mlflow.db', [RUN])}#baseline")
    put_artifacts(database(tmp_path / "bucket.db", [RUN]), "s3://bucket/1")
    for words, code in read_table(Path(__file__).with_name("refused.tsv")):
        assert code in {"-", refuse(gpureport, tmp_path, *words.split())}, words
    assert "word" not in gpureport("publish", "out/report.html", "--to", "postgresql://me:word@host/db").err
    assert json.loads((tmp_path / "kept/store.json").read_text()) == {"format": 1}


OURS = "gpureport"
FIGURES = ("comparison.json", "--to")


def compared(gpureport: Program, *sources: str) -> Any:
    done = gpureport("compare", *sources, "--format", "json")
    Path("comparison.json").write_text(done.out, encoding="utf-8")
    return json.loads(done.out)


def written(document: object) -> None:
    Path("comparison.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def record(uri: str, artifacts: str | None = None) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, RunTag

    client = MlflowClient(uri)
    experiment = client.create_experiment("tuning", artifacts)
    for run in RUNS:
        key = client.create_run(experiment, start_time=run.start, run_name=run.name).info.run_id
        points = [Metric(name, value, at, step) for name, series in run.series.items() for at, value, step in series]
        client.log_batch(key, metrics=points, tags=[RunTag("team", "vision")])
        client.set_terminated(key, end_time=run.end)


@contextmanager
def recorded(kind: str, home: Path) -> Iterator[tuple[str, str]]:
    """Record the runs in a store; give how it is called in a target, and the URI by which MLflow knows it."""
    uri = f"file://{home}/mlruns" if kind == "file store" else f"sqlite:///{home}/mlflow.db"
    record(uri, "mlflow-artifacts:/tuning" if kind == "server" else None)
    if kind == "server":
        with served(home / "mlflow.db", home / "artifacts") as url:
            yield url, url
    else:
        yield uri.removeprefix("file://"), uri


@pytest.mark.tracker
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["database", "file store", "server"])
def test_every_run_gets_the_figures_of_the_comparison(kind: str, gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<html>", encoding="utf-8")
    with recorded(kind, tmp_path) as (store, uri):
        before = oracle(uri)
        document = compared(gpureport, f"mlflow:{store}")
        put = ("publish", "comparison.json", "report.html", "--to", f"mlflow:{store}")
        done = gpureport(*put)
        assert (done.code, done.out, "3 of 3 runs changed" in done.err) == (0, "", True)
        after = oracle(uri)
        runs = {run["name"]: run for step in document["steps"] for run in step["runs"]}
        for run in after.values():
            own = {key: points for key, points in run["metrics"].items() if key.startswith(f"{OURS}.")}
            expected = runs[run["name"]]["measures"] | {"lost_ratio": runs[run["name"]]["lost_ratio"]}
            assert {key: [float(point[2]) for point in points] for key, points in own.items()} == {
                f"{OURS}.{name}": [value] for name, value in expected.items() if value is not None
            }
        tags = {run["name"]: dict(run["tags"]) for run in after.values()}
        assert [tags[name][f"{OURS}.step"] for name in NAMES] == list(NAMES)
        assert [tags[name].get(f"{OURS}.compared_with") for name in NAMES] == [None, "base", "workers"]
        for run in after.values():
            run["metrics"] = {
                name: points for name, points in run["metrics"].items() if not name.startswith(f"{OURS}.")
            }
            run["tags"] = [pair for pair in run["tags"] if not pair[0].startswith(f"{OURS}.")]
        assert after == before
        assert "0 of 3 runs changed" in gpureport(*put).err
        # what was published is no measurement: the comparison stays the same
        assert compared(gpureport, f"mlflow:{store}") == document


def read_tags(store: Path, number: int) -> dict[str, str]:
    files = next(store.glob(f"*/{run_id(number)}")).glob(f"tags/{OURS}.*")
    return {path.name.removeprefix(f"{OURS}."): path.read_text(encoding="utf-8") for path in files}


def test_what_no_longer_holds_is_replaced_or_removed(gpureport: Program, tmp_path: Path) -> None:
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    gpureport("publish", *FIGURES, f"mlflow:{store}")
    document = compared(gpureport, *(f"mlflow:{store}#{name}" for name in ("workers", "amp")))
    document["steps"][1]["runs"][0]["measures"]["gpu_seconds"] = 1.25
    written(document)
    assert gpureport("publish", *FIGURES, f"mlflow:{store}").code == 0
    assert set(read_tags(store, 2)) == {"step", "judged_by"}
    points = next(store.glob(f"*/{run_id(3)}/metrics/{OURS}.gpu_seconds")).read_text(encoding="utf-8").splitlines()
    assert [float(line.split()[1]) for line in points][1:] == [1.25]
    assert len(next(store.glob(f"*/{run_id(3)}/metrics/{OURS}.idle_ratio")).read_text().splitlines()) == 1
    # a run that is named gets it as a file
    before = read_tags(store, 1)
    assert gpureport("publish", *FIGURES, f"mlflow:{store}#base").code == 0
    assert next(store.glob(f"*/{run_id(1)}/artifacts/gpureport/comparison.json")).is_file()
    assert read_tags(store, 1) == before


def test_changes_are_tags_in_per_cent_or_points(gpureport: Program, tmp_path: Path) -> None:
    store = folder(tmp_path / "mlruns", RUNS)
    known = compared(gpureport, f"mlflow:{store}")
    quality = {"base": "base", "step": "workers", "leading": True, "verdict": "worse"}
    quality["before"] = {"final": 0.791, "diverged": 0}
    known["quality"] = [
        quality | {"name": "accuracy", "after": {"final": 0.612, "diverged": 0}},
        quality | {"name": "score", "after": {"final": None, "diverged": 1}},
        quality | {"name": "f1", "after": {"final": None, "diverged": 0}},
        quality | {"name": "loss", "leading": False, "after": {"final": 1, "diverged": 0}},
    ]
    plain = {"verdict": "better", "before": 4.0, "difference": -2.0, "interval": [-2.4, -1.6], "unit": "s"}
    for more, expected in (
        ({}, "-50% (-60 to -40%)"),
        ({"interval": None}, "-50%"),
        ({"unit": "1", "difference": 0.12, "interval": [0.05, 0.19]}, "+12 points (+5 to +19 points)"),
        ({"difference": None, "interval": None}, None),
        ({"before": 0.0}, None),
        ({"device": "gpu:0"}, None),
        ({"interval": None, "verdict": "not enough data"}, None),
    ):
        document = known | {"deltas": [dict(each) for each in known["deltas"]]}
        for each in document["deltas"]:
            if (each["metric"], each["base"], each["step"]) == (known["primary"], "base", "workers"):
                each.update(plain | more)
            if each["metric"] == "training_rate_hertz":
                each.update(before=None, after=None, difference=None)
        written(document)
        assert gpureport("publish", *FIGURES, f"mlflow:{store}").code == 0
        tags = read_tags(store, 2)
        assert tags.get("change") == tags.get("change_since_first") == expected, (more, tags)
        assert tags.get("verdict") == (None if "device" in more else more.get("verdict", "better")), more
        assert ("training_verdict" in tags, tags["judged_by"]) == (False, known["primary"])
        assert tags["quality"] == "accuracy 0.791 to 0.612: worse; score 0.791 to not a number: worse"


def test_nothing_is_written_where_anything_is_wrong(gpureport: Program, tmp_path: Path) -> None:
    store = folder(tmp_path / "mlruns", RUNS)
    other = folder(tmp_path / "other", [Made(id=run_id(9), name="other", series=RUNS[0].series)])
    old = database(tmp_path / "mlflow.db", RUNS)
    document = compared(gpureport, f"mlflow:{store}")
    target = f"mlflow:{store}"
    assert refuse(gpureport, tmp_path, *FIGURES, f"mlflow:{other}", "--skip-missing") == "not_a_tracked_run"
    assert refuse(gpureport, tmp_path, "comparison.json", *FIGURES, target) == "unknown_run"
    # MLflow's client would bring it to its own version by opening it
    refused = "other_schema" if find_spec("mlflow") else "not_installed"
    assert refuse(gpureport, tmp_path, *FIGURES, f"mlflow:{old}") == refused
    shutil.rmtree(next(store.glob(f"*/{run_id(2)}")))
    assert refuse(gpureport, tmp_path, *FIGURES, target) == "unknown_run"
    assert gpureport("publish", *FIGURES, target, "--skip-missing").code == 0
    (tmp_path / "page.html").write_text("<html>", encoding="utf-8")
    for meta in store.glob("*/*/meta.yaml"):
        kept = [line for line in meta.read_text(encoding="utf-8").splitlines() if not line.startswith("artifact_uri")]
        meta.write_text("\n".join([*kept, f"artifact_uri: {tmp_path}/theirs/{meta.parent.name}"]), encoding="utf-8")
    (tmp_path / "theirs").mkdir()
    both = ("page.html", "--to", "site", "--to", target, "--skip-missing")
    assert refuse(gpureport, tmp_path, "comparison.json", *both) == "foreign_artifacts"
    # a comparison of an earlier version does not say where its runs come from; no float holds every number of JSON
    document["steps"][0]["runs"][0]["measures"]["gpu_seconds"] = 10**400
    written(document)
    assert refuse(gpureport, tmp_path, *FIGURES, target) == "not_a_comparison_document"
    del document["steps"][0]["runs"]
    written(document)
    assert refuse(gpureport, tmp_path, *FIGURES, target) == "not_a_comparison_document"
    for text in ("", "<html>", "\xff", '{"schema": "gpureport.analysis/1"}', "[" * 100_000):
        (tmp_path / "comparison.json").write_text(text, encoding="latin-1")
        assert refuse(gpureport, tmp_path, *FIGURES, target) == "unknown_run", text[:40]


@pytest.mark.parametrize("link", ["tags/gpureport.step", "metrics/gpureport.lost_ratio", "tags", "metrics"])
def test_figures_go_through_no_link_out_of_a_store(link: str, gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/file").write_text("mine")
    store = folder(tmp_path / "mlruns", RUNS)
    compared(gpureport, f"mlflow:{store}")
    path = next(store.glob(f"*/{run_id(1)}")) / link
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        path.rename(path.with_name("moved"))
        shutil.copytree(path.with_name("moved"), tmp_path / "theirs", dirs_exist_ok=True)
    path.symlink_to(tmp_path / "theirs" / ("file" if "/" in link else ""))
    before = state(tmp_path / "theirs")
    assert gpureport("publish", *FIGURES, f"mlflow:{store}").code == 3
    assert state(tmp_path / "theirs") == before
