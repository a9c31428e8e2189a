"""An ingest that is killed at any moment leaves the store as it was, or as it was to be."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.store import Store
from gpureport.testing import Recording
from tests.store.forking import ROOT, Ended, Forks, Order
from tests.store.runs import SCALE, Known, leftovers

pytestmark = pytest.mark.stress

TRIALS = 90 * SCALE
WHOLE_PROCESSES = 10 * SCALE
_DONE = 0
_KILLED = -signal.SIGKILL


def ways(before: Known, store: Store) -> list[list[str]]:
    """Return command lines: a new store, a second run, and a run read again that gets another step."""
    place = ["--store", str(store.folder)]
    again = ["ingest", str(before.old), "--force", "--step", "b", *place]
    return [["ingest", str(before.new), "--store", f"{store.folder}-2"], ["ingest", str(before.new), *place], again]


def check(before: Known, store: Store, forks: Forks) -> None:
    """Check that every run in a store, and in the new one beside it, is whole and known; then that all can go on."""
    for place in (store, Store(Path(f"{store.folder}-2"))):
        found = [place.read(entry) for entry in place.entries()]
        assert all(_allowed(recording, before) for recording in found)
        assert place.damaged() == []
        if place is store:
            assert before.old_recording.run.id in {recording.run.id for recording in found}
            listed = forks.run(Order(arguments=["runs", "list", "--store", str(place.folder)]))
            assert (listed.err, listed.code, len(listed.out.splitlines())) == ("", 0, len(found))
            _swept(before, place, forks)


def _allowed(found: Recording, before: Known) -> bool:
    old = before.old_recording
    if found.run.id == old.run.id:
        return found.run in {old.run, replace(old.run, step="b")} and bool(found.series.equals(old.series))
    return bool(found.series.equals(before.new_series))


def _swept(before: Known, store: Store, forks: Forks) -> None:
    """Let what was left grow old; the next ingest clears it away and reads as ever."""
    left = leftovers(store)
    for path in left:
        os.utime(path, (1, 1))
        for inside in path.glob("*"):
            os.utime(inside, (1, 1))
    if left:
        again = ["ingest", str(before.new), "--force", "--store", str(store.folder)]
        assert forks.run(Order(arguments=again)).code == 0
        assert leftovers(store) == []
        assert len(store.entries()) == 2


def test_at_a_random_moment(before: Known, forks: Forks, tmp_path: Path) -> None:
    """Killed after a random time, the store is whole; many trials hit an ingest that is under way."""
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


@pytest.mark.parametrize("way", range(3))
def test_before_every_step(before: Known, forks: Forks, tmp_path: Path, way: int) -> None:
    """Killed before each file or folder it makes, renames or removes, the store is whole."""
    for step in range(200):
        store = before.copy(tmp_path / str(step))
        ended = forks.run(Order(arguments=ways(before, store)[way], kill_at=step))
        check(before, store, forks)
        if ended.code == _DONE:
            break
        assert ended.code == _KILLED
    assert step >= 8


def test_a_process_of_its_own(before: Known, forks: Forks, tmp_path: Path) -> None:
    """Killed anywhere from the start of Python on, the store is whole."""
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
