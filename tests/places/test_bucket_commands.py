"""The program on a bucket of a real server: stores, sources, reports, sites and published files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport import api
from gpureport.nightly.site.site_files import MARKER
from gpureport.places import RemotePath
from gpureport.places.fetching import fetch
from tests.cli.program import Outcome, Program
from tests.importers.written_logs import log
from tests.places.conftest import objects
from tests.places.s3_server import BreakingRoad

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14 09:{s // 60:02}:{s % 60:02},50\n" for s in range(0, 240, 5))


@pytest.fixture
def logs(bucket: RemotePath) -> RemotePath:
    """A folder of two runs in a bucket."""
    for name, rows in (("base", 240), ("next", 180)):
        (bucket / f"logs/{name}/gpu.csv").write_bytes(log(rows).encode())
    return bucket / "logs"


def expect(done: Outcome, code: int = 0) -> str:
    """Return what a command printed, after having checked how it ended, and that no path of a copy shows."""
    assert done.code == code, done.err
    assert "/gpureport-" not in done.out + done.err
    return done.out


def test_store_and_history(gpureport: Program, bucket: RemotePath, logs: RemotePath) -> None:
    """A store in a bucket serves every command on runs, and a history with its pages lives there."""
    place = ["--store", f"{bucket}/store"]
    assert "base" in expect(gpureport("ingest", f"{logs}/base", "--name", "base", "--step", "one", *place))
    expect(gpureport("ingest", str(logs), *place))
    assert "step two" in expect(gpureport("runs", "step", "next", "two", *place))
    assert len(expect(gpureport("runs", *place)).splitlines()) == 2
    assert json.loads(expect(gpureport("runs", "show", "base", *place)))["run"]["name"] == "base"
    expect(gpureport("analyze", "base", *place))
    expect(gpureport("compare", "base", "next", *place))
    expect(gpureport("baseline", "set", "main", "base", *place))
    assert "main" in expect(gpureport("baseline", *place))
    assert "base" in expect(gpureport("report", "baseline:main", "-o", "-", *place, "-o", f"{bucket}/main.html"))
    expect(gpureport("check", "next", "--baseline", "main", "--fail-on", "problem", *place))
    expect(gpureport("runs", "rm", "base", *place))
    assert len(expect(gpureport("runs", *place)).splitlines()) == 1


def test_site(gpureport: Program, bucket: RemotePath, logs: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages in a bucket are those of a folder; a report that is there is not made again."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1773480000")
    place = ["--store", f"{bucket}/store", "--site", f"{bucket}/site"]
    for date, name in (("2026-03-13", "base"), ("2026-03-14", "next")):
        done = gpureport("nightly", f"{logs}/{name}", "--date", date, *place)
        expect(done)
        assert f"wrote {bucket}/site/index.html" in done.err
    expect(gpureport("nightly", "--store", str(fetch(bucket / "store")), "--site", "here"))
    files = {path.relative_to("here").as_posix(): path.read_bytes() for path in Path("here").rglob("*.html")}
    pages = {name: (bucket / "site" / name).read_bytes() for name in objects(bucket / "site")}
    assert len([name for name in pages if name.startswith("nights/")]) == 2
    assert pages.pop(MARKER) == Path("here", MARKER).read_bytes()
    assert pages == files
    first = min(name for name in pages if name.startswith("nights/"))
    (bucket / "site" / first).write_bytes(b"kept")
    expect(gpureport("nightly", *place))
    assert (bucket / "site" / first).read_bytes() == b"kept"
    missing = gpureport("nightly", f"{logs}/none", *place)
    assert f"{logs}/none: no such file" in missing.err
    (bucket / "theirs/index.html").write_bytes(b"<title>Photos</title>")
    refused = gpureport("nightly", "--store", f"{bucket}/store", "--site", f"{bucket}/theirs")
    assert (refused.code, "is no page of gpureport" in refused.err) == (2, True)
    assert objects(bucket / "theirs") == ["index.html"]


def test_sources_and_files(gpureport: Program, bucket: RemotePath, logs: RemotePath, tmp_path: Path) -> None:
    """Logs of a bucket give what local ones give, named by their URLs; files are written and published there."""
    (bucket / "host.csv").write_bytes(HOST.encode())
    (tmp_path / "gpu.csv").write_text(log(240))
    (tmp_path / "host.csv").write_text(HOST)
    told = []
    for top in (f"{logs}/base", "."):
        host = f"{bucket}/host.csv" if top != "." else "host.csv"
        out = expect(gpureport("analyze", f"{top}/gpu.csv", "--host", host, "--name", "a", "--format", "json"))
        (analysis,) = json.loads(out)["runs"]
        told.append(analysis)
    assert {each["locator"] for each in told[0]["run"].pop("sources")} == {f"{logs}/base/gpu.csv", f"{bucket}/host.csv"}
    del told[1]["run"]["sources"]
    assert told[0] == told[1]
    outputs = [f"{bucket}/out/r.{suffix}" for suffix in ("html", "md", "json")]
    done = gpureport("report", f"{logs}/base", f"{logs}/next", *(word for each in outputs for word in ("-o", each)))
    expect(done)
    assert objects(bucket / "out") == ["r.html", "r.json", "r.md"]
    assert b"/gpureport-" not in (bucket / "out/r.json").read_bytes()
    report = (bucket / "out/r.html").read_bytes()
    expect(gpureport("publish", outputs[0], "gpu.csv", "--to", f"{bucket}/public", "--to", "public"))
    assert objects(bucket / "public") == ["gpu.csv", "r.html"]
    assert (bucket / "public/r.html").read_bytes() == (tmp_path / "public/r.html").read_bytes() == report
    files = ["--junit", f"{bucket}/ci/j.xml", "--export", f"openmetrics={bucket}/ci/m.prom"]
    expect(gpureport("check", f"{logs}/base", "--fail-on", "idle_ratio <= 50%", *files))
    assert objects(bucket / "ci") == ["j.xml", "m.prom"]


def test_fleet(gpureport: Program, bucket: RemotePath, logs: RemotePath) -> None:
    """Other processes read logs of a bucket into a store there, named by their URLs and by the files beside them."""
    (logs / "base/gpu.csv.json").write_bytes(b'{"tags": {"user": "ann"}}')
    place = ["--store", f"{bucket}/store"]
    expect(gpureport("fleet", str(logs), *place, "-o", f"{bucket}/fleet.html", "-o", f"{bucket}/fleet.json"))
    runs = json.loads(expect(gpureport("runs", "list", "--where", "tag:user=ann", "--format", "json", *place)))["runs"]
    (name,) = [run["id"] for run in runs]
    stored = json.loads((bucket / f"store/runs/{name}/run.json").read_bytes())
    assert stored["run"]["sources"][0]["locator"] == f"{logs}/base/gpu.csv"
    assert b"/gpureport-" not in (bucket / "fleet.json").read_bytes()
    assert "2 runs" in expect(gpureport("fleet", *place, "--by", "user"))


def test_from_python(bucket: RemotePath, logs: RemotePath) -> None:
    """`gpureport.read` and `gpureport.report` take URLs."""
    (run,) = api.reading.read(f"{logs}/base/gpu.csv")
    assert run.run.sources[0].locator == f"{logs}/base/gpu.csv"
    assert str(api.reporting.report(run, f"{bucket}/r.md")) == f"{bucket}/r.md"
    assert objects(bucket) == ["logs/base/gpu.csv", "logs/next/gpu.csv", "r.md"]


def test_what_goes_wrong(gpureport: Program, bucket: RemotePath, logs: RemotePath, road: BreakingRoad) -> None:
    """Each error is one line with what to do; a gate is not green, and nothing is written."""
    lost = "s3://no-such-bucket-here"
    for arguments in (
        ["analyze", f"{lost}/gpu.csv"],
        ["report", f"{logs}/base", "-o", f"{lost}/r.html"],
        ["ingest", f"{logs}/base", "--store", f"{lost}/store"],
        ["nightly", f"{logs}/base", "--site", f"{lost}/site", "--store", f"{bucket}/store"],
        ["publish", f"{logs}/base/gpu.csv", "--to", f"{lost}/x"],
    ):
        done = gpureport(*arguments)
        assert (done.out, done.err.count("\n")) == ("", 1)
        assert "there is no such bucket; create it" in done.err
        expect(done, 3)
    assert objects(bucket) == ["logs/base/gpu.csv", "logs/next/gpu.csv"]
    road.open(received=0)
    for arguments, code in (
        (["analyze", f"{logs}/base"], 3),
        (["check", f"{logs}/base", "--fail-on", "problem"], 4),
        (["runs", "--store", f"{bucket}/store"], 3),
    ):
        done = gpureport(*arguments)
        expect(done, code)
        assert "the connection failed" in done.out + done.err


def test_a_process_ends(bucket: RemotePath, logs: RemotePath, tmp_path: Path) -> None:
    """A process that used a bucket ends cleanly, and leaves no copies."""
    words = ["report", f"{logs}/base", "-o", f"{bucket}/r.html"]
    where = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "gpureport", *words],
        cwd=ROOT,
        env=os.environ | where,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert list(tmp_path.iterdir()) == []
