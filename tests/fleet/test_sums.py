"""The sums over many runs, from logs whose hours are plain; and engines that make the same table, whatever dies."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fleet.fleet_logs import MINUTE, Card, generate_fleet, report, write_job
from tests.support.logs import row, table, write_recording
from tests.support.program import Program

H100 = "NVIDIA H100 80GB HBM3"
PRICES = '[prices]\ncurrency = "EUR"\ndate = 2026-10-01\n[[prices.rate]]\nmodel = "A100-SXM4-80GB"\ngpu_hour = 6.0\n'
PRICES += '[[prices.rate]]\nmodel = "A100S"\ngpu_hour = 9.0\n'
IDLE, UNUSED = (("work", 20), ("idle", 10), ("work", 30)), (("idle", 15), ("unused", 45))


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


def test_hours_and_money_by_class_and_group(gpureport: Program, jobs: Path) -> None:
    (jobs.parent / "gpureport.toml").write_text(PRICES)
    write_job(jobs, "a", Card(spans=IDLE), Card(spans=UNUSED), user="ann", owner="eve", node="n1")
    write_job(jobs, "b", Card(spans=IDLE), owner="bob", node="n2", start="2026-10-06T12:00")
    found = report(gpureport, "jobs", "--by", "user,node")
    sums = {"runs": 2, "gpu_seconds": 180 * MINUTE, "lost_gpu_seconds": 80 * MINUTE, "cost": 18.0, "lost_cost": 8.0}
    assert {name: found["use"][name] for name in sums} == sums
    classes = {each["name"]: (each["gpu_seconds"], each["cost"]) for each in found["classes"]}
    assert (*classes["held"], *classes["unused"]) == pytest.approx((15 * MINUTE, 1.5, 45 * MINUTE, 4.5), rel=0.01)
    assert sum(seconds for seconds, _ in classes.values()) == pytest.approx(180 * MINUTE)
    by_user, by_node = found["groupings"]
    assert [(each["name"], each["use"]["lost_cost"]) for each in by_user["groups"]] == [("ann", 7.0), ("bob", 1.0)]
    assert [each["name"] for each in by_node["groups"]] == ["n1", "n2"]
    assert (found["half_lost_in"], found["half_lost_class"], found["nodes"]) == (1, "unused", 2)
    assert [run["run"]["name"] for run in found["worst_runs"]] == ["a", "b"]
    assert (found["savings"][0]["step"], found["savings"][0]["cost"]) == ("fewer_gpus", 6.0)
    month = report(gpureport, "jobs", "--gpu-hours-per-month", "6000")["month"]
    assert month == {"gpu_seconds": 6000 * 3600, "lost_gpu_seconds": 2000 * 80 * MINUTE, "lost_cost": 16_000.0}
    # a sum that lacks the price of a model is none; groups whose GPUs all have one keep theirs
    write_job(jobs, "c", Card(model=H100), user="cid", start="2026-10-07T12:00")
    found = report(gpureport, "jobs", "--by", "user")
    assert (found["use"]["cost"], *found["prices"].values()) == (None, "EUR", "2026-10-01", [H100], ["A100S"])
    costs = {each["name"]: each["use"]["cost"] for each in found["groupings"][0]["groups"]}
    assert costs == {"ann": 12.0, "bob": 6.0, "cid": None}


def test_twenty_groups_and_the_rest_as_one(gpureport: Program, jobs: Path) -> None:
    for place in range(24):
        spans = (("work", 2), ("idle", 26 - place), ("work", 2))
        write_job(jobs, f"j{place:02}", Card(spans=spans), user=f"u{place:02}", start=f"2026-10-{place + 1:02}T12:00")
    write_job(jobs, "nobody", Card(spans=(("work", 4),)))
    found = report(gpureport, "jobs", "--by", "user")
    (grouping,) = found["groupings"]
    assert [group["name"] for group in grouping["groups"]] == [*(f"u{place:02}" for place in range(20)), None]
    listed = [*grouping["groups"], grouping["rest"]]
    assert grouping["rest"]["groups"] == 4
    assert sum(each["use"]["gpu_seconds"] for each in listed) == pytest.approx(found["use"]["gpu_seconds"])
    assert grouping["rest"]["use"]["lost_gpu_seconds"] == sum(range(3, 7)) * MINUTE
    assert len(found["worst_runs"]) == 20


def test_runs_too_short_and_short_pauses(gpureport: Program, tmp_path: Path) -> None:
    for seconds, is_long in ((300, True), (8, False)):
        rows = [row(second, gpu, util=97 * (gpu == 0)) for second in range(seconds) for gpu in range(2)]
        (tmp_path / f"{seconds}.csv").write_text(table(*rows))
        assert bool(report(gpureport, f"{seconds}.csv")["savings"]) is is_long
    for name, used, idle in (("usual", 95, range(0)), ("long", 66, range(100, 130)), ("longer", 65, range(0))):
        rows = [row(second, util=0 if second in idle else used) for second in range(400)]
        (tmp_path / f"{name}.csv").write_text(table(*rows))
    found = report(gpureport, "usual.csv", "long.csv", "longer.csv")
    assert [run["name"] for run in found["pausing_runs"]] == ["longer", "long"]
    assert [(each["run"]["name"], each["is_lower_bound"]) for each in found["worst_runs"]] == [("long", True)]


def test_weeks_divide_a_run_that_crosses_them(gpureport: Program, jobs: Path) -> None:
    spans = (("work", 40), ("idle", 20), ("work", 60))
    write_job(jobs, "across", Card(spans=spans), start="2026-10-04T23:00")
    write_job(jobs, "later", start="2026-10-19T00:00")
    (jobs / "bare.csv").write_text("index, utilization.gpu [%]\n" + "0, 90 %\n" * 181)
    found = report(gpureport, "jobs", "--interval", "10")
    weeks = {each["monday"]: each["use"]["gpu_seconds"] / MINUTE for each in found["weeks"]}
    assert weeks == {"2026-09-28": 60.0, "2026-10-05": 60.0, "2026-10-12": 0.0, "2026-10-19": 10.0}
    assert [each["use"]["lost_gpu_seconds"] / MINUTE for each in found["weeks"]] == [10.0, 10.0, 0.0, 0.0]
    assert [each["is_partial"] for each in found["weeks"]] == [True, False, False, True]
    assert found["undated_gpu_seconds"] == 30 * MINUTE


def test_runs_that_overlap_on_one_gpu_count_twice(gpureport: Program, jobs: Path) -> None:
    def build(folder: Path, *runs: tuple[Card, int], **tags: str) -> Any:
        for place, (card, hour) in enumerate(runs):
            write_job(folder, f"r{place}", card, start=f"2026-10-05T{hour}:00", **tags)
            # logs of one time in one folder may be one run
            assert gpureport("ingest", str(folder / f"r{place}.csv"), "--store", str(folder)).code == 0
        return report(gpureport, "--store", str(folder))

    def card(minutes: int, uuid: str | None = None) -> Card:
        return Card(uuid=uuid, spans=(("work", minutes),))

    found = build(jobs, (card(127, "1"), 12), (card(128, "1"), 13), (card(60, "2"), 12), (card(30, "1"), 17))
    (overlap,) = found["overlaps"]
    assert (overlap["card"], [run["name"] for run in overlap["runs"]]) == ("1", ["r0", "r1"])
    assert (overlap["seconds"], found["overlapping_gpu_seconds"], found["gpus"]) == (67 * MINUTE, 67 * MINUTE, 2)
    # without uuids a node and a number tell GPUs apart: three runs at once are an hour counted two times too often
    found = build(jobs.parent / "nodes", (card(60), 12), (card(61), 12), (card(62), 12), node="n1")
    assert ({each["card"] for each in found["overlaps"]}, len(found["overlaps"])) == ({"n1 gpu:0"}, 3)
    assert found["overlapping_gpu_seconds"] == 121 * MINUTE
    found = build(jobs.parent / "none", (card(60), 12), (card(61), 12))
    assert (found["overlaps"], found["gpus"]) == ([], None)


@pytest.mark.parametrize(("tags", "nodes"), [({}, 0), ({"node": "n[1-3].site"}, 2), ({"host": "n1, n9"}, 1)])
def test_a_node_that_is_only_a_file_name_identifies_no_gpu(
    gpureport: Program, jobs: Path, tags: dict[str, str], nodes: int
) -> None:
    for name, spans in (("n1", (("work", 60),)), ("n2", (("idle", 10), ("hot", 50)))):
        write_job(jobs, name, Card(spans=spans, uncorrected=0))
        (jobs / f"{name}.json").unlink()
    (jobs / "labels.json").write_text(json.dumps({"tags": tags}))
    found = report(gpureport, "jobs")
    assert (found["use"]["runs"], found["gpus"]) == (1, 2)
    assert (found["nodes"], found["health"]["identified_gpus"]) == (nodes, nodes)


def test_what_is_in_no_sum_is_named(gpureport: Program, jobs: Path) -> None:
    write_job(jobs, "good")
    write_job(jobs, "bad", start="2026-10-06T12:00")
    write_recording(jobs.parent / "machine", "", started=1, ended=2)
    (jobs.parent / "machine" / "gpu.csv").unlink()
    rows = "".join(f"2026-03-14T09:00:{second:02}Z,50\n" for second in range(60))
    (jobs.parent / "machine" / "host.csv").write_text(f"timestamp,cpu_percent\n{rows}")
    gpureport("ingest", "jobs", "machine")
    runs = json.loads(gpureport("runs", "list", "--format", "json").out)["runs"]
    (bad,) = [run["id"] for run in runs if run["name"] == "bad"]
    (jobs.parent / ".gpureport" / "runs" / bad / "hardware.parquet").write_bytes(b"PAR1")
    done = gpureport("fleet", "--format", "json")
    found = json.loads(done.out)
    assert (done.code, done.err.count("left out: ")) == (0, 1)
    assert [each["run"]["name"] for each in found["failed"]] == ["bad"]
    assert [run["name"] for run in found["without_gpu"]] == ["machine"]
    assert (found["use"]["runs"], found["use"]["gpu_seconds"]) == (1, 10 * MINUTE)
    assert {each["kind"]: each["runs"] for each in found["unassessed"]}["io_bound"] == 1


def test_an_anonymised_report_has_no_name_and_the_same_figures(gpureport: Program, jobs: Path) -> None:
    tags = {"user": "ann", "project": "vision", "job": "4711", "node": "node01"}
    write_job(jobs, "resnet", Card(spans=(("work", 10), ("hot", 20)), uuid="GPU-5e0f"), **tags)
    write_job(jobs, "bert", Card(spans=IDLE, uuid="GPU-5e0f"), **tags | {"user": "bob"})
    write_job(jobs, "broken", **tags)
    gpureport("ingest", "jobs")
    series = max((jobs.parent / ".gpureport" / "runs").glob("*/hardware.parquet"))
    series.write_bytes(b"PAR1")
    shown, hidden = report(gpureport, "jobs"), gpureport("fleet", "jobs", "--anonymise", "--format", "json").out
    names = ("ann", "bob", "vision", "4711", "node01", "GPU-5e0f", "resnet", "bert", "broken", "jobs/", ".csv")
    assert [name for name in names if name in hidden] == []
    found = json.loads(hidden)
    assert {group["name"] for group in found["groupings"][0]["groups"]} <= {"user_1", "user_2"}
    first, known = found["worst_runs"][0], shown["worst_runs"][0]["run"]["id"]
    assert (first["user"], first["run"]["name"]) == (found["groupings"][0]["groups"][0]["name"], f"run-{known[:8]}")
    assert [key for key in ("use", "classes", "weeks", "overlapping_gpu_seconds") if found[key] != shown[key]] == []


RUNS = 24
PROGRAM = (sys.executable, "-m", "gpureport")
CODE = """
import psutil; psutil.Process.cpu_affinity = lambda _: [*range({cores})]
from gpureport.cli import main
main(["fleet", *{words!r}])
"""
_PATIENCE = 120


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    generate_fleet(folder / "jobs", RUNS)
    subprocess.run([*PROGRAM, "-q", "ingest", "jobs"], cwd=folder, check=True)
    max(folder.glob(".gpureport/runs/*/hardware.parquet")).write_bytes(b"PAR1")
    return folder


def summarise(folder: Path, *words: str, cores: int = 1, kill: Callable[[int], int] | None = None) -> bytes:
    """Return the table that the command makes from nothing on some cores; a process may be killed in the middle."""
    table = folder / ".gpureport" / "fleet" / "summaries.parquet"
    shutil.rmtree(table.parent, ignore_errors=True)
    # the number of worker processes is that of the cores this process may use
    command = [sys.executable, "-c", CODE.format(cores=cores, words=["--format", "json", *words])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as running:
        if kill is not None:
            wait_for(lambda: len([*table.parent.rglob("*.parquet")]) >= RUNS // 3)
            psutil.Process(kill(running.pid)).kill()
        _, err = running.communicate(timeout=_PATIENCE)
    assert (running.returncode, err.count("left out: ")) == (0, 1), err
    return table.read_bytes()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def expected(fleet: Path) -> bytes:
    return summarise(fleet)


@pytest.mark.slow
def test_four_processes_one_of_them_killed(fleet: Path, expected: bytes) -> None:
    def worker(owner: int) -> int:
        return next(each.pid for each in psutil.Process(owner).children(recursive=True) if each.ppid() != owner)

    assert summarise(fleet, cores=4, kill=worker) == expected


@pytest.fixture
def cluster() -> Iterator[tuple[str, int]]:
    from distributed import Client, LocalCluster

    start: Any = LocalCluster
    connect: Any = Client
    with start(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        with connect(made) as client:
            workers = client.run(os.getpid)
        yield made.scheduler_address, min(workers.values())


@pytest.mark.slow
def test_dask_with_a_worker_killed(fleet: Path, expected: bytes, cluster: tuple[str, int]) -> None:
    address, worker = cluster
    assert summarise(fleet, "--engine", "dask", "--scheduler", address, kill=lambda _: worker) == expected


@pytest.mark.slow
def test_a_cluster_of_its_own_with_a_worker_killed(fleet: Path, expected: bytes) -> None:
    def find_worker(owner: int) -> int:
        # a process of each worker, and one that looks after what they share
        workers = [each for each in psutil.Process(owner).children() if "spawn_main" in " ".join(each.cmdline())]
        return workers[0].pid

    assert summarise(fleet, "--engine", "dask", cores=2, kill=find_worker) == expected


@pytest.mark.slow
def test_workers_end_when_their_owner_is_killed(fleet: Path) -> None:
    table = fleet / ".gpureport" / "fleet" / "summaries.parquet"
    shutil.rmtree(table.parent, ignore_errors=True)
    command = [sys.executable, "-c", CODE.format(cores=2, words=[])]
    with subprocess.Popen(command, cwd=fleet, stdout=subprocess.DEVNULL) as owner:
        try:
            wait_for(lambda: len([*table.parent.rglob("*.parquet")]) >= 2)
            workers = psutil.Process(owner.pid).children(recursive=True)
        finally:
            owner.kill()
    assert len(workers) >= 2
    _, running = psutil.wait_procs(workers, timeout=20)
    # one that has ended and that nobody asked about does not run
    running = [each for each in running if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    for each in running:
        each.kill()
    assert running == []


class FragileExecutor(Executor):
    """Runs tasks at once instead of in processes, and breaks on those of some runs."""

    deadly: frozenset[str] = frozenset()
    opened = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        type(self).opened += 1
        self._is_broken = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        if self._is_broken:
            raise BrokenExecutor
        future: Future[Any] = Future()
        if any(run in repr(args) for run in self.deadly):
            self._is_broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize("cores", [2, 50])
def test_the_run_that_kills_its_workers_is_given_up(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    for place in range(10):
        write_job(tmp_path / "jobs", f"r{place}", Card(spans=(("work", 1),)), start=f"2026-10-{place + 1:02}T12:00")
    assert gpureport("ingest", "jobs").code == 0
    listed = json.loads(gpureport("runs", "list", "--format", "json").out)["runs"]
    ids = {run["name"]: run["id"] for run in listed}
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [*range(cores)])
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", FragileExecutor)
    monkeypatch.setattr(FragileExecutor, "deadly", frozenset((ids["r3"], ids["r6"])))
    monkeypatch.setattr(FragileExecutor, "opened", 0)
    found = report(gpureport)
    assert {each["run"]["name"] for each in found["failed"]} == {"r3", "r6"}
    assert found["use"]["runs"] == 8
    assert 1 < FragileExecutor.opened <= 2 * 3 + 1
