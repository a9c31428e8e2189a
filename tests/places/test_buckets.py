"""The program on a bucket of a real server: stores, sources, reports, sites, published files, and a broken road."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import gpureport as api
from tests.places.conftest import Bucket
from tests.store.runs import noisy
from tests.support.logs import log, write
from tests.support.program import Outcome, Program
from tests.support.tables import read_table, words_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14 09:{s // 60:02}:{s % 60:02},50\n" for s in range(0, 240, 5))
LARGE = 25_000_000
"""Bytes of an object that is written in three parts, by five requests."""


@pytest.fixture
def logs(bucket: Bucket) -> str:
    for name, rows in (("base", 240), ("next", 180)):
        bucket.put(f"logs/{name}/gpu.csv", log(rows).encode())
    return f"{bucket}/logs"


def ok(done: Outcome, code: int = 0) -> str:
    """Return what a command printed, after having checked how it ended, and that no path of a copy shows."""
    assert done.code == code, done.err
    assert "/gpureport-" not in done.out + done.err
    return done.out


def read_runs(bucket: Bucket, folder: str = "store") -> dict[str, dict[str, Any]]:
    """Return what `run.json` says of each run that counts, by its name; its series are those that were hashed."""
    found = {}
    for name in bucket.names(folder):
        if name.startswith("runs/") and name.endswith("/run.json"):
            said = json.loads(bucket.get(f"{folder}/{name}"))
            series = bucket.get(f"{folder}/{name.removesuffix('run.json')}hardware.parquet")
            assert said["series_sha256"] == sha256(series).hexdigest()
            found[said["run"]["name"]] = said
    return found


def test_a_store_is_that_of_a_folder(gpureport: Program, bucket: Bucket, logs: str, tmp_path: Path) -> None:
    store = ("--store", f"{bucket}/store")
    for place in (store, ("--store", "here")):
        assert "base" in ok(gpureport("ingest", f"{logs}/base", "--name", "base", "--step", "one", *place))
        ok(gpureport("ingest", logs, *place))
    here = {path.relative_to("here").as_posix(): path.read_bytes() for path in Path("here").rglob("*.*")}
    assert {name: bucket.get(f"store/{name}") for name in bucket.names("store")} == here
    assert "step two" in ok(gpureport("runs", "step", "next", "two", *store))
    assert json.loads(ok(gpureport("runs", "show", "base", *store)))["run"]["name"] == "base"
    ok(gpureport("runs", "export", "base", "-o", f"{bucket}/base.parquet", *store))
    ok(gpureport("runs", "export", "base", "-o", "base.parquet", *store))
    assert bucket.get("base.parquet") == (tmp_path / "base.parquet").read_bytes()
    ok(gpureport("compare", "base", "next", *store))
    ok(gpureport("baseline", "set", "main", "base", *store))
    assert "base" in ok(gpureport("report", "baseline:main", "-o", "-", *store, "-o", f"{bucket}/main.html"))
    ok(gpureport("check", "next", "--baseline", "main", "--fail-on", "problem", *store))
    ok(gpureport("runs", "rm", "base", *store))
    assert [*read_runs(bucket)] == ["next"]
    assert len(ok(gpureport("runs", *store)).splitlines()) == 1


def test_damage_is_found(gpureport: Program, bucket: Bucket, logs: str) -> None:
    store = ("--store", f"{bucket}/store")
    ok(gpureport("ingest", logs, *store))
    for kind, words, code in (("hardware.parquet", ("analyze", "base"), 3), ("run.json", ("runs", "list"), 0)):
        name = next(name for name in bucket.names("store") if name.endswith(kind))
        content = bytearray(bucket.get(f"store/{name}"))
        content[100] ^= 1
        bucket.put(f"store/{name}", bytes(content))
        done = [gpureport(*words, *store), gpureport("analyze", "next", *store)]
        assert code in {each.code for each in done}


def test_a_site_is_that_of_a_folder(
    gpureport: Program, bucket: Bucket, logs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1773480000")
    store = ("--store", f"{bucket}/store")
    for place in (("--store", "s", "--site", "here"), (*store, "--site", f"{bucket}/site")):
        for date, name in (("2026-03-13", "base"), ("2026-03-14", "next")):
            ok(gpureport("nightly", f"{logs}/{name}", "--date", date, *place))
    names = [name for name in bucket.names("site") if name.endswith(".html")]
    assert len([name for name in names if name.startswith("nights/")]) == 2
    # a night is called after what was typed as well, so that its hash differs
    here = (path.relative_to("here").as_posix() for path in Path("here").rglob("*.html"))
    assert sorted(name[:18] for name in names) == sorted(name[:18] for name in here)
    kept = f"site/{min(name for name in names if name.startswith('nights/'))}"
    bucket.put(kept, b"kept")
    ok(gpureport("nightly", *store, "--site", f"{bucket}/site"))
    assert bucket.get(kept) == b"kept"
    bucket.put("theirs/index.html", b"<title>Photos</title>")
    assert gpureport("nightly", *store, "--site", f"{bucket}/theirs").code == 2
    assert bucket.names("theirs") == ["index.html"]


@pytest.mark.smoke
def test_sources_and_files(gpureport: Program, bucket: Bucket, logs: str, tmp_path: Path) -> None:
    bucket.put("host.csv", HOST.encode())
    write(tmp_path, gpu=log(240), host=HOST)
    told = []
    for gpu, host in ((f"{logs}/base/gpu.csv", f"{bucket}/host.csv"), ("gpu.csv", "host.csv")):
        out = ok(gpureport("analyze", gpu, "--host", host, "--name", "a", "--format", "json"))
        (analysis,) = json.loads(out)["runs"]
        assert {each["locator"] for each in analysis["run"].pop("sources")} == {gpu, host}
        told.append(analysis)
    assert told[0] == told[1]
    # names of objects differ by case
    outputs = [f"{bucket}/out/{name}" for name in ("r.html", "r.md", "R.md", "r.json")]
    ok(gpureport("report", f"{logs}/base", f"{logs}/next", *(word for each in outputs for word in ("-o", each))))
    assert bucket.names("out") == ["R.md", "r.html", "r.json", "r.md"]
    assert b"/gpureport-" not in bucket.get("out/r.json")
    ok(gpureport("publish", outputs[0], "gpu.csv", "--to", f"{bucket}/public", "--to", "public"))
    assert bucket.names("public") == ["gpu.csv", "r.html"]
    assert bucket.get("public/r.html") == (tmp_path / "public/r.html").read_bytes() == bucket.get("out/r.html")
    with bucket.client.open_input_stream(f"{bucket.name}/out/r.html") as stream:
        assert dict(stream.metadata())["Content-Type"] == b"text/html"
    ok(gpureport("check", f"{logs}/base", "--fail-on", "idle_ratio <= 50%", "--junit", f"{bucket}/ci/j.xml"))
    assert bucket.names("ci") == ["j.xml"]
    (run,) = api.read(f"{logs}/base/gpu.csv")
    assert run.run.sources[0].locator == f"{logs}/base/gpu.csv"
    assert str(api.report(run, f"{bucket}/r.md")) == f"{bucket}/r.md"


def test_fleet(gpureport: Program, bucket: Bucket, logs: str) -> None:
    bucket.put("logs/base/gpu.csv.json", b'{"tags": {"user": "ann"}}')
    store = ("--store", f"{bucket}/store")
    ok(gpureport("fleet", logs, *store, "-o", f"{bucket}/fleet.html", "-o", f"{bucket}/fleet.json"))
    runs = json.loads(ok(gpureport("runs", "list", "--where", "tag:user=ann", "--format", "json", *store)))["runs"]
    assert read_runs(bucket)[runs[0]["name"]]["run"]["sources"][0]["locator"] == f"{logs}/base/gpu.csv"
    assert b"/gpureport-" not in bucket.get("fleet.json")


def test_what_goes_wrong(gpureport: Program, bucket: Bucket, logs: str) -> None:
    lost = "s3://no-such-bucket-here"
    table = read_table(Path(__file__).with_name("lost_buckets.tsv"))
    for command in (command for when, _, command in table if when == "no bucket"):
        done = gpureport(*words_of(command, lost=lost, logs=logs, bucket=str(bucket)))
        assert (ok(done, 3), done.err.count("\n"), lost in done.err) == ("", 1, True)
    assert bucket.names() == ["logs/base/gpu.csv", "logs/next/gpu.csv"]
    # its copy would lie outside the folder of the copies, and whatever lies there would be removed
    outside = gpureport("analyze", f"{bucket}/../../../x")
    assert (ok(outside, 3), outside.err.count("\n")) == ("", 1)
    with pytest.raises(api.errors.PlaceError) as refused:
        api.read(f"{lost}/gpu.csv")
    assert refused.value.code == "no_such_bucket"
    ok(gpureport("ingest", logs, "--store", f"{bucket}/store"))
    bucket.road.open(received=0)
    for code, command in ((code, command) for when, code, command in table if when == "no road"):
        ok(gpureport(*words_of(command, logs=logs, bucket=str(bucket))), int(code))
    with pytest.raises(api.errors.PlaceError) as dropped:
        api.read(f"{logs}/base/gpu.csv")
    assert dropped.value.code == "no_connection"


def test_a_process_ends(bucket: Bucket, logs: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gpureport", "report", f"{logs}/base", "-o", f"{bucket}/r.html"]
    where = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=where, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), list(tmp_path.iterdir())) == (0, 1, [])


def test_a_large_object_that_is_dropped(gpureport: Program, bucket: Bucket, tmp_path: Path) -> None:
    old, new = b"old", os.urandom(LARGE)
    (tmp_path / "object").write_bytes(new)
    for drop in range(6):
        bucket.put("public/object", old)
        bucket.road.open(changes=drop)
        done = gpureport("publish", "object", "--to", f"{bucket}/public")
        bucket.road.open()
        content = bucket.get("public/object")
        # the last request may have arrived although its answer did not
        assert content in ([old, new] if drop == 4 else [old] if drop < 4 else [new])
        assert done.code == 0 or content in {old, new}
    text = log(2) + "x" * 100 + "\n"
    (tmp_path / "large.csv").write_text(text * (LARGE // len(text)))
    ok(gpureport("publish", "large.csv", "--to", f"{bucket}/logs"))
    bucket.road.open(received=LARGE // 2)
    assert gpureport("analyze", f"{bucket}/logs/large.csv").code == 3
    bucket.road.open()


def drop_each(bucket: Bucket, before: Callable[[], object], change: Callable[[], Outcome]) -> list[tuple[int, str]]:
    """Cut the road before each request of a change in turn; return how it ended, with the state `before` makes it."""
    ended: list[tuple[int, str]] = []
    while not ended or ended[-1][0] != 0:
        bucket.road.open()
        before()
        bucket.road.open(changes=len(ended))
        code = change().code
        bucket.road.open()
        runs = read_runs(bucket)
        assert "1" in runs, "another run is gone"
        ended.append((code, runs["0"]["run"]["step"] if "0" in runs else "none"))
        assert len(ended) < 40
    return ended


def test_a_run_that_is_replaced(gpureport: Program, bucket: Bucket, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path, **{str(number): noisy(number, rows=60)})
    store = ("--store", f"{bucket}/store")

    def ingest(step: str, name: str = "0") -> Outcome:
        return gpureport("ingest", f"{name}.csv", "--force", "--name", name, "--step", step, *store)

    ok(ingest("b", "1"))
    ended = drop_each(bucket, lambda: ingest("old"), lambda: ingest("new"))
    assert {*ended} >= {(3, "none"), (0, "new")}
    assert ended[0] == (3, "old")
    assert {step for _, step in ended} <= {"old", "new", "none"}
    ok(gpureport("baseline", "set", "main", "1", *store))
    for drop in range(14):
        bucket.road.open(changes=drop)
        gpureport("baseline", "set", "main", "0", "1", *store)
        bucket.road.open()
        ok(gpureport("baseline", "list", *store))
    assert bucket.names("store/baselines/main/runs")


@pytest.mark.parametrize("changes", [0, 4])
def test_a_writer_that_is_killed(gpureport: Program, bucket: Bucket, tmp_path: Path, changes: int) -> None:
    for number in range(2):
        write(tmp_path, **{str(number): noisy(number, rows=60)})
        ok(gpureport("ingest", f"{number}.csv", "--name", str(number), "--store", f"{bucket}/store"))
    old = read_runs(bucket)
    bucket.road.open(changes=changes, stall=True)
    words = ["ingest", str(tmp_path / "0.csv"), "--force", "--store", f"{bucket}/store"]
    writer = subprocess.Popen([sys.executable, "-m", "gpureport", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        assert bucket.road.is_cut.wait(60)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    bucket.road.open()
    left = read_runs(bucket)
    assert all(each == old[name] for name, each in left.items())
    assert "1" in left
    ok(gpureport("ingest", "0.csv", "--name", "0", "--store", f"{bucket}/store"))
    assert read_runs(bucket) == old
