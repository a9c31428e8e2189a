"""A report put where people look: whole, and with everything else as it was."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import pytest

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local.file_store import FileStore
from gpureport.publishing import publish
from gpureport.publishing.mlflow_figures import FolderWriter
from tests.cli.program import Program, program
from tests.importers.trackers.mlflow.servers import Reply, answering
from tests.importers.trackers.mlflow.stores import TICKS, Made, database, folder, monitored, run_id
from tests.importers.trackers.mlflow.test_safety import state
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule
from tests.importers.trackers.tracked import recording as read

EXPERIMENT = "mlruns/900000000000000000"
RUN = Made(id=run_id(1), name="baseline", series=monitored(TICKS))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report."""
    path = tmp_path / "out" / "report.html"
    path.parent.mkdir()
    path.write_text("<html>one</html>", encoding="utf-8")
    return path


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The program, run in a folder."""
    return program(capsys, monkeypatch, tmp_path)


def test_a_folder_is_made_and_a_report_replaced(report: Path, tmp_path: Path, gpureport: Program) -> None:
    """Only the report is there, nothing half-written."""
    target = tmp_path / "site" / "tonight"
    done = gpureport("publish", str(report), "--to", str(target))
    assert (done.code, done.out, done.err) == (0, "", f"published {target}/report.html\n")
    report.write_text("<html>two</html>", encoding="utf-8")
    publish([report], str(target))
    assert [path.name for path in target.iterdir()] == ["report.html"]
    assert (target / "report.html").read_text(encoding="utf-8") == "<html>two</html>"


def test_a_database_gets_a_report_and_stays_as_it_is(report: Path, tmp_path: Path) -> None:
    """The report lies where MLflow looks for the run's artifacts."""
    (tmp_path / "store").mkdir()
    source = database(tmp_path / "store" / "mlflow.db", [RUN])
    before = state(source.parent)
    (where,) = publish([report], f"mlflow:{source}#baseline")
    target = source.parent / "mlruns" / "1" / RUN.id / "artifacts" / "gpureport" / "report.html"
    assert Path(where.partition(";")[0]) == target
    assert target.read_bytes() == report.read_bytes()
    assert {path: each for path, each in state(source.parent).items() if path in before} == before
    # a report is no log
    assert len(read(source).rows_of("gpu:0")) == len(TICKS)


def test_a_file_store_gets_a_report(report: Path, tmp_path: Path) -> None:
    """Beside the run's metrics."""
    source = folder(tmp_path / "mlruns", [RUN])
    where = Path(publish([report], f"mlflow:{source}#{RUN.id}")[0].partition(";")[0])
    assert where.relative_to(source).parts[1:] == (RUN.id, "artifacts", "gpureport", "report.html")
    assert where.read_bytes() == report.read_bytes()


def test_the_path_of_a_store_needs_no_prefix(report: Path, tmp_path: Path, gpureport: Program) -> None:
    """A database and a `mlruns` folder are stores of MLflow in a target as in a source, with a run or without."""
    (tmp_path / "store").mkdir()
    for store in (folder(tmp_path / "mlruns", [RUN]), database(tmp_path / "store/mlflow.db", [RUN])):
        (where,) = publish([report], f"{store}#{RUN.id}")
        assert [where] == publish([report], f"mlflow:{store}#{RUN.id}")
        assert Path(where.partition(";")[0]).parts[-3:] == ("artifacts", "gpureport", "report.html")
        before = state(tmp_path)
        done = gpureport("publish", str(report), "--to", str(store))
        assert (done.code, done.err.count("\n")) == (3, 1)
        assert f"{store}: it names no run; give mlflow:STORE#RUN" in done.err
        assert state(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir() if "#" in path.name) == []
    assert publish([report], str(tmp_path / "c#"))[0].startswith(str(tmp_path / "c#"))


def test_a_run_of_neptune_is_no_folder(report: Path, tmp_path: Path) -> None:
    """No folder is made that is called after one."""
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 3])))
    with pytest.raises(SourceError, match="nothing can be published to Neptune; give a folder, or mlflow:STORE#"):
        publish([report], f"{tmp_path}/data#OPT-1")
    assert sorted(path.name for path in tmp_path.iterdir() if "#" in path.name) == []


def test_the_folder_of_artifacts_is_no_folder_for_reports(report: Path, tmp_path: Path) -> None:
    """Beside a database MLflow keeps artifacts in `mlruns`, which is no store by itself."""
    source = database(tmp_path / "mlflow.db", [RUN])
    publish([report], f"mlflow:{source}#baseline")
    before = state(tmp_path)
    with pytest.raises(SourceError, match="mlruns: MLflow keeps the artifacts of its runs in it; give the database"):
        publish([report], str(tmp_path / "mlruns"))
    assert state(tmp_path) == before


def test_a_server_gets_a_report_and_a_tag(report: Path) -> None:
    """The report as it is, by its artifacts' own path."""
    sent: dict[str, object] = {}

    def answer(method: str, path: str, _: dict[str, str]) -> Reply:
        sent.setdefault(f"{method} {path.partition('?')[0]}", path)
        if path.startswith("/api/2.0/mlflow/runs/get"):
            uri = f"mlflow-artifacts:/1/{RUN.id}/artifacts"
            info = {"run_id": RUN.id, "experiment_id": "1", "status": "FINISHED", "artifact_uri": uri}
            return Reply(200, {"run": {"info": info, "data": {}}})
        return Reply(200, {})

    with answering(answer) as url:
        (where,) = publish([report], f"mlflow:{url}#{RUN.id}")
    assert where == f"{url}#{RUN.id}, gpureport/report.html"
    assert f"PUT /api/2.0/mlflow-artifacts/artifacts/1/{RUN.id}/artifacts/gpureport/report.html" in sent
    assert "POST /api/2.0/mlflow/runs/set-tag" in sent


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("mlflow:{source}", "it names no run; give mlflow:STORE#RUN"),
        ("mlflow:{source}#nobody", "no run 'nobody'"),
        ("mlflow:{source}.absent#x", "no MLflow database or mlruns folder here"),
        ("{report}", "no folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    target: str, expected: str, report: Path, tmp_path: Path, gpureport: Program
) -> None:
    """With exit code 3."""
    source = database(tmp_path / "mlflow.db", [RUN])
    done = gpureport("publish", str(report), "--to", target.format(source=source, report=report))
    assert (done.code, done.out) == (3, "")
    assert expected in done.err
    assert done.err.count("\n") == 1


def test_a_report_that_is_not_there_is_said(tmp_path: Path) -> None:
    """And a report is not put where it is."""
    with pytest.raises(SourceError, match="no such file; write a report first"):
        publish([tmp_path / "absent.html"], str(tmp_path))
    (tmp_path / "report.html").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(SourceError, match="it is there already"):
        publish([tmp_path / "report.html"], unquote(str(tmp_path)))


def test_artifacts_that_lie_elsewhere_need_the_server(report: Path, tmp_path: Path) -> None:
    """A database whose artifacts lie in a bucket."""
    source = database(tmp_path / "mlflow.db", [RUN])
    put_artifacts(source, "s3://bucket/1")
    with pytest.raises(SourceError, match="the artifacts of its runs lie in s3; give the URL of its server"):
        publish([report], f"mlflow:{source}#baseline")


def test_a_store_that_was_moved_says_where_mlflow_looks(report: Path, tmp_path: Path, gpureport: Program) -> None:
    """The report lies beside the store, where it can be written; MLflow lists what is where the store says."""
    source = database(tmp_path / "mlflow.db", [RUN])
    put_artifacts(source, "/srv/absent/mlruns/1/run/artifacts")
    done = gpureport("publish", str(report), "--to", f"{source}#baseline")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert done.err.endswith(
        "/artifacts/gpureport/report.html; MLflow looks in /srv/absent/mlruns/1/run/artifacts, which is not on this "
        "machine: copy it there\n"
    )
    assert (tmp_path / "mlruns/1" / RUN.id / "artifacts/gpureport/report.html").is_file()


def put_artifacts(source: Path, uri: str | Path) -> None:
    """Say in a database where the artifacts of its runs lie."""
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("update runs set artifact_uri = ?", (str(uri),))


@pytest.mark.parametrize(
    "uri", ["{home}/theirs", "file://{home}/theirs", "../theirs", "{home}/theirs/new/run", "{link}"]
)
def test_artifacts_outside_a_store_need_a_word(uri: str, report: Path, tmp_path: Path, gpureport: Program) -> None:
    """Whoever wrote a database says where artifacts lie, which may be a folder of somebody else."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store/link").symlink_to(tmp_path / "theirs")
    source = database(tmp_path / "store/mlflow.db", [RUN])
    put_artifacts(source, uri.format(home=tmp_path, link=tmp_path / "store/link"))
    before = state(tmp_path)
    command = ("publish", str(report), "--to", f"mlflow:{source}#baseline")
    done = gpureport(*command)
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "it keeps artifacts outside its own folder, in " in done.err
    assert "add --follow-artifact-uri" in done.err
    assert state(tmp_path) == before
    assert gpureport(*command, "--follow-artifact-uri").code == 0
    (found,) = (tmp_path / "theirs").rglob("report.html")
    assert found.read_bytes() == report.read_bytes()


def test_a_server_names_no_folder_of_this_machine(report: Path, tmp_path: Path) -> None:
    """A server that says it keeps artifacts in a folder here gets nothing written there without a word."""
    (tmp_path / "theirs").mkdir()

    def answer(_: str, path: str, __: dict[str, str]) -> Reply:
        info = {"run_id": RUN.id, "experiment_id": "1", "status": "FINISHED", "artifact_uri": f"{tmp_path}/theirs/run"}
        return Reply(200, {"run": {"info": info, "data": {}}} if "runs/get" in path else {})

    with answering(answer) as url:
        with pytest.raises(SourceError, match="keeps artifacts in a folder of this machine, /"):
            publish([report], f"mlflow:{url}#{RUN.id}")
        assert list((tmp_path / "theirs").iterdir()) == []
        publish([report], f"mlflow:{url}#{RUN.id}", follow_artifact_uri=True)
    assert (tmp_path / "theirs/run/gpureport/report.html").is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("out/report.html", "other/report.html", "--to", "site"), "site/report.html: two outputs of this command"),
        (("out/report.html", "--to", "site", "--to", "site/."), "site/report.html: two outputs of this command"),
        (("out/report.html", "other/index.html", "--to", "other"), "other/index.html: it is there already"),
        (
            ("out/report.html", "link/index.html", "--to", "site", "--to", "other"),
            "link/index.html: it is there already",
        ),
        (
            ("out/report.html", "--to", "site", "--to", "kept/runs"),
            "kept/runs/report.html: it lies in a store of gpure",
        ),
        (
            ("out/report.html", "--to", "site", "--to", EXPERIMENT),
            f"{EXPERIMENT}/report.html: it lies in an MLflow store",
        ),
        (("out/report.html", "--to", "site", "--to", "taken"), "taken/report.html: this is a folder, not a file"),
        (("out/report.html", "--to", "site", "--to", "mistyped://x"), "mistyped://x: mistyped:// is not supported"),
        (("out/report.html", "--to", "site", "--to", "mistyped:x"), "mistyped:x: mistyped: is not known as the begin"),
        (
            ("out/report.html", "--to", "site", "--to", "http://x:1#a"),
            "http://x:1#a: http: names no folder; write mlflow:",
        ),
        (
            ("out/report.html", "--to", "site", "--to", "postgresql+psycopg2://me:word@host/db"),
            "postgresql+psycopg2://host/db: a database server is not opened directly: that could change its schema",
        ),
        (
            ("out/report.html", "--to", "site", "--to", "uc:main"),
            "uc:main: uc: names no folder; write mlflow:uc:main",
        ),
        (
            ("out/report.html", "--to", "site", "--to", "neptune:../runs"),
            "neptune:../runs: nothing can be published to Neptune; give a folder, or mlflow:STORE#RUN",
        ),
        (("out/report.html", "--to", "site", "--to", "mlflow:mlruns#none"), "mlruns: no run 'none'"),
    ],
)
def test_a_folder_that_cannot_be_written_stops_all(
    words: tuple[str, ...], expected: str, report: Path, tmp_path: Path, gpureport: Program
) -> None:
    """Nothing is put anywhere when a later target is somebody else's, or a file would be lost."""
    for name in ("other/report.html", "other/index.html", "kept/runs/x", "taken/report.html/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "kept/store.json").write_text('{"format": 1}')
    (tmp_path / "link").symlink_to("other")
    folder(tmp_path / "mlruns", [RUN])
    assert report.is_file()
    before = state(tmp_path)
    done = gpureport("publish", *words)
    assert (done.out, done.err.count("\n"), done.err.startswith(f"gpureport: {expected}")) == ("", 1, True), done.err
    assert done.code in {2, 3}
    assert state(tmp_path) == before


def test_a_folder_may_have_a_colon_in_its_name(report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where `./` says that it is one."""
    monkeypatch.chdir(tmp_path)
    assert publish([report], "./a:b") == ["a:b/report.html"]
    assert publish([report], "late/night:2") == ["late/night:2/report.html"]


@pytest.mark.parametrize("link", ["tags/gpureport.step", "metrics/gpureport.lost_ratio", "tags", "metrics"])
def test_figures_go_through_no_link_out_of_a_store(link: str, tmp_path: Path) -> None:
    """A store that somebody else made leads to no file of this machine."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/file").write_text("mine")
    store = FileStore(folder(tmp_path / "mlruns", [RUN]), "mlruns")
    run = store.run(RUN.id)
    assert run is not None
    path = store.home(run) / link
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(tmp_path / "theirs" / ("file" if "/" in link else ""))
    with pytest.raises(SourceError, match="a link leads out of the store"):
        FolderWriter(store).log_figures(run, {"gpureport.lost_ratio": 0.1}, {"gpureport.step": "base"}, 1)
    assert [(each.name, each.read_text()) for each in (tmp_path / "theirs").iterdir()] == [("file", "mine")]
