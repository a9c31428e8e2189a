"""A report put where people look: whole, and with everything else as it was."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.importers.trackers.mlflow.servers import Reply, answering
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule
from tests.importers.trackers.tracked import state
from tests.publishing.conftest import refuse
from tests.support.program import Program

EXPERIMENT = "mlruns/900000000000000000"
RUN = Made(id=run_id(1), name="baseline", series=monitored([10_000 * (place + 1) for place in range(30)]))
PUT = Path("artifacts/gpureport/report.html")


@pytest.fixture(autouse=True)
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


def test_a_server_gets_a_report_and_a_tag(gpureport: Program) -> None:
    sent: set[str] = set()

    def answer(method: str, path: str, _: dict[str, str]) -> Reply:
        sent.add(f"{method} {path.partition('?')[0]}")
        if path.startswith("/api/2.0/mlflow/runs/get"):
            uri = f"mlflow-artifacts:/1/{RUN.id}/artifacts"
            info = {"run_id": RUN.id, "experiment_id": "1", "status": "FINISHED", "artifact_uri": uri}
            return Reply(200, {"run": {"info": info, "data": {}}})
        return Reply(200, {})

    with answering(answer) as url:
        assert publish(gpureport, "--to", f"mlflow:{url}#{RUN.id}") == f"{url}#{RUN.id}, gpureport/report.html"
    assert f"PUT /api/2.0/mlflow-artifacts/artifacts/1/{RUN.id}/{PUT}" in sent
    assert "POST /api/2.0/mlflow/runs/set-tag" in sent


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


def test_a_server_names_no_folder_of_this_machine(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()

    def answer(_: str, path: str, __: dict[str, str]) -> Reply:
        info = {"run_id": RUN.id, "experiment_id": "1", "status": "FINISHED", "artifact_uri": f"{tmp_path}/theirs/run"}
        return Reply(200, {"run": {"info": info, "data": {}}} if "runs/get" in path else {})

    with answering(answer) as url:
        for more in ((), ("--follow-artifact-uri",)):
            target = ("--to", f"mlflow:{url}#{RUN.id}", *more)
            assert refuse(gpureport, tmp_path, "out/report.html", *target) == "foreign_artifacts"


REPORT = "out/report.html"
REFUSED = {
    # a file that is missing, and one put where it is
    ("out/absent.html", "--to", "site"): "no_such_file",
    (REPORT, "--to", "out"): "file_taken",
    (REPORT, "other/index.html", "--to", "other"): "file_taken",
    (REPORT, "link/index.html", "--to", "site", "--to", "other"): "file_taken",
    # two files in one place, and places of somebody else
    (REPORT, "other/report.html", "--to", "site"): None,
    (REPORT, "--to", "site", "--to", "site/."): None,
    (REPORT, "--to", "site", "--to", "kept/runs"): None,
    (REPORT, "--to", "site", "--to", EXPERIMENT): None,
    (REPORT, "--to", "site", "--to", "taken"): None,
    (REPORT, "--to", "beside/mlruns"): None,
    (REPORT, "--to", REPORT): None,
    # what is no target
    (REPORT, "--to", "site", "--to", "mistyped://x"): None,
    (REPORT, "--to", "site", "--to", "mistyped:x"): "not_a_publish_target",
    (REPORT, "--to", "site", "--to", "http://x:1#a"): "not_a_publish_target",
    (REPORT, "--to", "site", "--to", "uc:main"): "not_a_publish_target",
    (REPORT, "--to", "site", "--to", "postgresql+psycopg2://me:word@host/db"): None,
    (REPORT, "--to", "site", "--to", "neptune:../runs"): "read_only_store",
    (REPORT, "--to", "data#OPT-1"): "read_only_store",
    # no run, no store, no server
    (REPORT, "--to", "mlruns"): "unknown_run",
    (REPORT, "--to", "mlflow:beside/mlflow.db"): "unknown_run",
    (REPORT, "--to", "site", "--to", "mlflow:mlruns#none"): None,
    (REPORT, "--to", "mlflow:absent.db#x"): None,
    (REPORT, "--to", "bucket.db#baseline"): "foreign_artifacts",
}
"""By what is published where: the code; None where another room of the package says no."""


def test_what_cannot_be_published_stops_all(gpureport: Program, tmp_path: Path) -> None:
    for name in ("other/report.html", "other/index.html", "kept/runs/x", "taken/report.html/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "kept/store.json").write_text('{"format": 1}')
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "beside").mkdir()
    folder(tmp_path / "mlruns", [RUN])
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 3])))
    source = database(tmp_path / "beside/mlflow.db", [RUN])
    publish(gpureport, "--to", f"{source}#baseline")
    put_artifacts(database(tmp_path / "bucket.db", [RUN]), "s3://bucket/1")
    for words, code in REFUSED.items():
        said = refuse(gpureport, tmp_path, *words)
        assert code is None or said == code, (words, said)
    assert "word" not in gpureport("publish", REPORT, "--to", "postgresql://me:word@host/db").err
    assert json.loads((tmp_path / "kept/store.json").read_text()) == {"format": 1}
