"""Writers of one history at once, and writers that are killed: nothing lost, nothing doubled, no half a night."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.nightly.history.night_history import History
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.store import atomic_writes
from tests.local_place import local
from tests.nightly.made import night, part
from tests.store.forking import ROOT
from tests.store.runs import SCALE

TRIALS = 100 * SCALE
_EACH = 2
_SEEN = {"open", "os.rename", "os.remove", "os.mkdir", "os.link"}


def made(writer: int) -> list[NightlyRecord]:
    """Return the nights a writer adds: half its own, half the same as every other's."""
    own = [night(number, part({"idle_ratio": 0.1}, 100 * writer + number)) for number in range(_EACH // 2)]
    return own + [night(number, part({"idle_ratio": 0.2}, 9000 + number)) for number in range(_EACH // 2)]


def forked(store: Path, writer: int, kill_at: int | None = None) -> int:
    """Let a process of its own add nights, killed before a step of writing where one is named; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        if kill_at is not None:
            _kill_before(kill_at)
        for each in made(writer):
            History(store).append(each)
    except BaseException:  # noqa: BLE001 - the parent sees how it ended
        os._exit(70)
    os._exit(0)


def _kill_before(step: int) -> None:
    taken = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal taken
        if event not in _SEEN or (event == "open" and arguments[1] == "r"):
            return
        if taken == step:
            os.kill(os.getpid(), signal.SIGKILL)
        taken += 1

    sys.addaudithook(count)


def ended(child: int) -> int:
    """Return how a process ended: its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ids(store: Path) -> list[str]:
    """Return the nights of a history; none may be damaged."""
    return [each.id for each in History(store).read_all()]


@pytest.mark.stress
def test_two_writers_at_once(tmp_path: Path) -> None:
    """Of two writers that begin together all nights are there, each once, and nothing else is."""
    expected = sorted({each.id for writer in range(2) for each in made(writer)})
    for trial in range(TRIALS):
        store = tmp_path / str(trial)
        assert [ended(child) for child in [forked(store, writer) for writer in range(2)]] == [0, 0]
        assert ids(store) == expected
        assert len(list((store / "history").iterdir())) == len(expected)


@pytest.mark.stress
def test_a_killed_writer_beside_another(tmp_path: Path) -> None:
    """Killed before any step, a writer has added whole nights or none, the other all; a retry mends it."""
    killed = 0
    for trial in range(TRIALS):
        store = tmp_path / str(trial)
        children = [forked(store, 0, kill_at=trial % 12), forked(store, 1)]
        codes = [ended(child) for child in children]
        assert codes[0] in {0, -signal.SIGKILL}
        assert codes[1] == 0
        killed += codes[0] != 0
        own, others = ({each.id for each in made(writer)} for writer in range(2))
        assert others <= {*ids(store)} <= own | others
        assert ended(forked(store, 0)) == 0
        assert ids(store) == sorted(own | others)
    assert killed > TRIALS / 2


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    """What lies beside the nights is seen by no reader, and a day later the next night clears it away."""
    history = History(tmp_path)
    history.append(night(0, part({"idle_ratio": 0.1})))
    left = atomic_writes.temporary_path(local(history.folder), "night.parquet")
    left.write_bytes(b"half")
    assert len(history.read_latest()) == 1
    os.utime(left, (1, 1))
    history.append(night(1, part({"idle_ratio": 0.1}, 1)))
    assert not left.exists()


@pytest.mark.stress
def test_a_killed_command(tmp_path: Path) -> None:
    """Killed at any moment, the command leaves a history without this night or with it, and whole pages."""
    from tests.importers.written_logs import log  # noqa: PLC0415 - here alone

    (tmp_path / "gpu.csv").write_text(log(120))
    command = [sys.executable, "-m", "gpureport", "nightly", "gpu.csv", "--site", "site", "--date", "2026-03-01"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for delay in (0.4, 0.8, 1.2, 1.6, 2.0, None):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert len(ids(tmp_path / ".gpureport")) in {0, 1}
        for page in (tmp_path / "site").rglob("[!.]*.html"):
            assert page.read_text().rstrip().endswith("</html>")
    assert process.returncode == 0
    assert len(ids(tmp_path / ".gpureport")) == 1
