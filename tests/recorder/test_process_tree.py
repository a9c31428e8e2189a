"""The processes of a job: what they use together, whatever starts or ends between two looks."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from gpureport.recorder import process_tree
from gpureport.recorder.process_tree import Load, ProcessSnapshot, ProcessTree, Usage, find_members, measure_load


def usage(own: float, *, waited: float = 0, parent: int = 1, start: float = 0, memory: int = 100) -> Usage:
    """Return what a process has used."""
    return Usage(parent, start, own, waited, memory)


def test_cores_of_all_and_of_the_busiest() -> None:
    """Seconds of a processor in a second are cores."""
    last = ProcessSnapshot(10, {7: usage(5), 8: usage(1)})
    now = ProcessSnapshot(12, {7: usage(7), 8: usage(2, memory=300), 9: usage(1, parent=7)})
    assert measure_load(last, now, searched=10) == Load(2, 1, 300)


def test_the_first_look_has_no_load() -> None:
    """What a process used before is not the load of now."""
    assert measure_load(None, ProcessSnapshot(10, {7: usage(500)}), searched=0) == Load(None, None, 100)


def test_a_process_that_ended_is_counted_once() -> None:
    """Its parent takes over its time; only what was not counted yet is added."""
    last = ProcessSnapshot(10, {7: usage(5), 8: usage(20, parent=7)})
    assert measure_load(last, ProcessSnapshot(11, {7: usage(5, waited=20.5)}), searched=10).cores == pytest.approx(0.5)
    # one that came and went between the looks
    assert (
        measure_load(
            ProcessSnapshot(10, {7: usage(5)}), ProcessSnapshot(11, {7: usage(5, waited=0.25)}), searched=10
        ).cores
        == 0.25
    )


def test_a_process_nobody_waited_for_takes_nothing_off() -> None:
    """Its last moments are lost; the sum is never below what the others used."""
    last = ProcessSnapshot(10, {7: usage(5), 8: usage(20, parent=7)})
    assert measure_load(last, ProcessSnapshot(11, {7: usage(6)}), searched=10).cores == 1


def test_a_process_found_late_is_not_counted_at_once() -> None:
    """It may have worked for many seconds before the last look, alone or with processes that ended since."""
    last = ProcessSnapshot(10, {7: usage(5)})
    now = ProcessSnapshot(11, {7: usage(5.5, waited=9), 9: usage(8, parent=7)})
    assert measure_load(last, now, searched=3).cores == 0.5


def test_no_process_is_left() -> None:
    """Nothing is said of a job that ended."""
    assert measure_load(ProcessSnapshot(10, {7: usage(5)}), ProcessSnapshot(11, {}), searched=10) == Load(
        None, None, None
    )


def test_members() -> None:
    """Children of children belong to the job, and so do those that lost their parent; a number used again does not."""
    everyone = {
        7: usage(0),
        8: usage(0, parent=7),
        9: usage(0, parent=8),
        20: usage(0, parent=1),
        21: usage(0, parent=20),
        30: usage(0, parent=1, start=5),
        40: usage(0, parent=1),
    }
    known = {7: everyone[7], 20: everyone[20], 30: usage(0, parent=7)}
    assert set(find_members(known, everyone)) == {7, 8, 9, 20, 21}
    assert find_members({30: known[30]}, everyone) == {}


def test_a_line_of_proc() -> None:
    """The name of a program may hold blanks and brackets."""
    fields = ["S", "42", *["0"] * 9, "150", "50", "300", "100", *["0"] * 4, "777", "0", "25"]
    found = process_tree.parse_stat(f"9 (a) b) {' '.join(fields)}", 100, 4096)
    assert found == Usage(parent=42, start=777, own=2, waited=4, memory=25 * 4096)


@pytest.mark.parametrize("read", [process_tree.read_usage, process_tree.read_with_psutil])
def test_this_process(read: Callable[[int], Usage | None]) -> None:
    """The processes of this machine are read, with psutil where there is no /proc."""
    found = read(os.getpid())
    assert found is not None
    assert found.parent == os.getppid()
    assert found.memory > 1_000_000
    assert read(2**22 + 1) is None


def test_a_child_is_found() -> None:
    """A process that the first one starts belongs to the job from the next search on."""
    tree = ProcessTree(os.getpid())
    assert tree.load().cores is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        everyone = process_tree.read_all()
        assert child.pid in find_members({os.getpid(): everyone[os.getpid()]}, everyone)
        load = tree.load()
        assert load.cores is not None
        assert load.cores >= 0
    finally:
        child.communicate(b"\n")
