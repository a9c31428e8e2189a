"""Killed at any moment, on a full disk, or with many writers at once: the store is as it was, or as it was to be."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.forking import ROOT, Ended, Forks, Order
from tests.store.runs import SCALE, Known, contents, leftovers, noisy, read_store
from tests.support.program import run_program

TRIALS, WHOLE_PROCESSES = 90 * SCALE, 10 * SCALE
WRITERS, EACH, ROUNDS = 16, 4, 3 * SCALE
"""Ingests at once; and writers of each of eight kinds, with the rounds they make."""
LONG = ("--param", f"note={'x' * 60_000}")
"""Makes run.json larger than the series, so that it is what does not fit."""
_DONE, _KILLED = 0, -signal.SIGKILL


def ways(before: Known, store: Path) -> list[Sequence[str]]:
    other = Path(f"{store}-2")
    again = before.ingest("old", store, "--force", "--step", "b")
    return [before.ingest("new", other), before.ingest("new", store), again]


def check(before: Known, store: Path, forks: Forks) -> None:
    """Check that every run in a store, and in the new one beside it, is whole and known; then that all can go on."""
    for place in (store, Path(f"{store}-2")):
        for run_id, found in read_store(place).items():
            expected = before.runs[run_id]
            assert found.rows.equals(expected.rows)
            assert found.run in ({**expected.run, "step": step} for step in (expected.run["step"], "b"))
    assert before.old_id in read_store(store)
    listed = forks.run(Order(arguments=["runs", "list", "--store", str(store)]))
    assert (listed.err, listed.code, len(listed.out.splitlines())) == ("", 0, len(read_store(store)))
    # what was left grows old; the next ingest clears it away
    left = leftovers(store)
    for path in (inside for each in left for inside in (each, *each.glob("*"))):
        os.utime(path, (1, 1))
    if left:
        assert forks.run(Order(arguments=before.ingest("new", store, "--force"))).code == 0
        assert (leftovers(store), len(read_store(store))) == ([], 2)


@pytest.mark.stress
def test_killed_at_a_random_moment(before: Known, forks: Forks, tmp_path: Path) -> None:
    chance = random.Random(20261121)
    quickest = min(forks.run(Order(arguments=ways(before, before.copy(tmp_path / w))[2])).seconds for w in "abc")
    ended: list[Ended] = []
    for trial in range(TRIALS):
        store = before.copy(tmp_path / str(trial))
        arguments = ways(before, store)[trial % 3]
        ended.append(forks.run(Order(arguments=arguments, kill_after=chance.uniform(0.001, 1.2 * quickest))))
        quickest = min([quickest, *(each.seconds for each in ended[-1:] if each.code == _DONE)])
        check(before, store, forks)
    assert {each.code for each in ended} <= {_DONE, _KILLED}
    assert sum(each.code == _KILLED for each in ended) > TRIALS / 4


@pytest.mark.stress
@pytest.mark.parametrize("way", range(3))
def test_killed_before_every_step(before: Known, forks: Forks, tmp_path: Path, way: int) -> None:
    for step in range(200):
        store = before.copy(tmp_path / str(step))
        ended = forks.run(Order(arguments=ways(before, store)[way], kill_at=step))
        check(before, store, forks)
        if ended.code == _DONE:
            break
        assert ended.code == _KILLED
    assert step >= 8


@pytest.mark.stress
def test_a_killed_process_of_its_own(before: Known, forks: Forks, tmp_path: Path) -> None:
    chance = random.Random(7)
    for trial in range(WHOLE_PROCESSES):
        store = before.copy(tmp_path / str(trial))
        command = [sys.executable, "-m", "gpureport", *ways(before, store)[trial % 3]]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(0.05, 0.9))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        check(before, store, forks)


def refused(ended: Ended, store: Path, held: dict[str, bytes]) -> bool:
    """Check that an ingest succeeded, or failed as it should; return whether it failed."""
    assert leftovers(store) == []
    if ended.code == _DONE:
        assert read_store(store)
        return False
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert ended.err.startswith(f"gpureport: {store}: ")
    assert "--store" in ended.err
    assert contents(store) == held
    return True


@pytest.mark.stress
@pytest.mark.parametrize("log", ["new", "old"])
def test_a_file_that_may_not_grow(before: Known, forks: Forks, tmp_path: Path, log: str) -> None:
    for limit in (1, 300, 4_096, 10_000, 25_000, 50_000):
        store = before.copy(tmp_path / str(limit))
        arguments = before.ingest(log, store, *LONG, *(["--force"] if log == "old" else []))
        assert refused(forks.run(Order(arguments=arguments, file_size=limit)), store, contents(store)), limit


def test_labels_and_a_store_that_do_not_fit(before: Known, store: Path, forks: Forks, tmp_path: Path) -> None:
    held = contents(store)
    assert refused(forks.run(Order(arguments=before.ingest("old", store, *LONG), file_size=10_000)), store, held)
    arguments = before.ingest("new", tmp_path / "none")
    ended = forks.run(Order(arguments=arguments, file_size=1))
    assert (ended.code, ended.err.count("\n"), leftovers(tmp_path / "none")) == (3, 1, [])
    assert forks.run(Order(arguments=arguments)).code == 0


@contextmanager
def disk(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mount = subprocess.run(words, capture_output=True, text=True, check=False)
    if mount.returncode:
        pytest.skip(f"cannot mount a small disk here: {mount.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607 - wherever it is


@pytest.mark.stress
@pytest.mark.parametrize("log", ["new", "old"])
@pytest.mark.parametrize("options", ["size={kib}k", "size=4m,nr_inodes={inodes}"])
def test_a_small_disk(before: Known, forks: Forks, tmp_path: Path, options: str, log: str) -> None:
    used = sum(-(-len(content) // 4096) * 4 for content in contents(before.folder).values())
    failed = []
    for more in range(12):
        place = tmp_path / str(more)
        with disk(place, options.format(kib=used + 4 + more * 12, inodes=7 + more)):
            store = before.copy(place / "store")
            held = contents(store)
            arguments = before.ingest(log, store, *LONG, *(["--force"] if log == "old" else []))
            failed.append(refused(forks.run(Order(arguments=arguments)), store, held))
    assert failed == sorted(failed, reverse=True)
    assert (failed[0], failed[-1]) == (True, False)


def beside_a_reader(forks: Forks, store: Path, given: Sequence[Order], rows: int, *, removes: bool = False) -> int:
    """Run commands at once, all of which succeed in silence; return how many whole runs a reader found meanwhile."""
    forks.begin(*given)
    readings = 0
    while not forks.ended():
        if not store.is_dir():
            continue
        listed = run_program(store.parent, "runs", "list", "--store", str(store), "--format", "json")
        assert (listed.code, listed.err) == (0, "")
        try:
            runs = read_store(store)
        except FileNotFoundError:
            # one that is being removed
            assert removes
            continue
        assert all(len(each.rows) == rows for each in runs.values())
        readings += len(runs)
    assert [(each.code, each.err) for each in forks.result()] == [(0, "")] * len(given)
    return readings


@pytest.mark.stress
@pytest.mark.parametrize("logs", [1, WRITERS])
def test_ingests_at_once(forks: Forks, tmp_path: Path, logs: int) -> None:
    for number in range(logs):
        (tmp_path / f"{number}.csv").write_text(noisy(number, rows=400))
    serial, parallel = tmp_path / "serial", tmp_path / "parallel"

    def orders(store: Path) -> list[Order]:
        words = (("ingest", str(tmp_path / f"{n % logs}.csv"), "--store", str(store)) for n in range(WRITERS))
        return [Order(arguments=[*each, *(["--force"] if n % 2 else [])]) for n, each in enumerate(words)]

    for order in orders(serial):
        assert forks.run(order).code == 0
    expected, readings = contents(serial), 0
    assert len(read_store(serial)) == logs
    for _ in range(4 * SCALE):
        readings += beside_a_reader(forks, parallel, orders(parallel), 800)
        assert contents(parallel) == expected
    assert readings > 10
    assert leftovers(parallel) == []


def give_orders(place: Path, turn: int) -> Iterator[Sequence[str]]:
    for n in range(EACH):
        yield ("ingest", str(place / f"own{n}.csv"), "--force", "--step", f"turn {turn}")
        yield ("ingest", str(place / "shared.csv"), "--force")
        yield ("ingest", str(place / "shared.csv"), "--tag", f"writer={n}")
        yield ("runs", "step", "shared", f"turn {turn}")
        yield ("runs", "rm", f"gone{n}") if turn % 2 else ("ingest", str(place / f"gone{n}.csv"))
        yield ("baseline", "set", "common", "shared")
        yield ("baseline", "set", f"base{n}", f"own{n}", "shared")
        yield ("runs", "rename", f"again{n}", f"again{n}")


@pytest.mark.stress
def test_writers_of_every_kind_at_once(forks: Forks, tmp_path: Path) -> None:
    store = tmp_path / "store"
    names = ["shared", *(f"{kind}{n}" for kind in ("own", "gone", "again") for n in range(EACH))]
    for number, name in enumerate(names):
        (tmp_path / f"{name}.csv").write_text(noisy(number, rows=200))
        assert forks.run(Order(arguments=("ingest", f"{tmp_path / name}.csv", "--store", str(store)))).code == 0
    readings = 0
    for turn in range(1, ROUNDS + 1):
        given = [Order(arguments=(*words, "--store", str(store))) for words in give_orders(tmp_path, turn)]
        assert len(given) == 8 * EACH
        readings += beside_a_reader(forks, store, given, 400, removes=turn % 2 == 1)
        assert len(read_store(store)) == 1 + (2 if turn % 2 else 3) * EACH
    listed = forks.run(Order(arguments=("baseline", "list", "--store", str(store))))
    assert (listed.code, len(listed.out.splitlines())) == (0, 1 + EACH)
    for baseline in (store / "baselines").iterdir():
        assert all(len(each.rows) == 400 for each in read_store(baseline).values())
    assert readings > 10
    assert leftovers(store) == []
