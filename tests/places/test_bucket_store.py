"""A store in a bucket of a real server."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.errors import PlaceError, StoreError
from gpureport.importers import IMPORTER_VERSION, Labels, Reading
from gpureport.nightly.history.baselines import list_baselines, read_baseline, remove_baseline, set_baseline
from gpureport.nightly.history.night_history import History
from gpureport.places import RemotePath
from gpureport.store import Store, run_index
from gpureport.testing import Recording
from tests.local_place import local
from tests.nightly.made import night, part
from tests.places.conftest import objects
from tests.places.s3_server import BreakingRoad
from tests.store.runs import noisy, reading

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


class Altered(Reading):
    """Another log under the id of a first, as a run that is read again by another version."""

    run_id = ""

    def __init__(self, log: Path, run_id: str) -> None:
        """Take the log and the id."""
        other = reading(log)
        super().__init__(other._inputs, other._options, Labels())  # noqa: SLF001 - as it would be read again
        type(self).run_id = run_id


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Logs of three runs."""
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text(noisy(number, rows=60))
    return paths


@pytest.fixture
def store(bucket: RemotePath, logs: list[Path]) -> Store:
    """A store with two runs."""
    made = Store(bucket / "store")
    for path in logs[:2]:
        made.write(reading(path, Labels(name=path.stem)), IMPORTER_VERSION)
    return made


def test_as_on_a_disk(store: Store, logs: list[Path], tmp_path: Path) -> None:
    """What is written is read, labelled, exported and removed as in a folder, byte by byte."""
    here = Store(tmp_path / "here")
    for path in logs[:2]:
        here.write(reading(path, Labels(name=path.stem)), IMPORTER_VERSION)
    assert isinstance(store.folder, RemotePath)
    files = {
        path.relative_to(local(here.folder)).as_posix(): path.read_bytes() for path in local(here.folder).rglob("*.*")
    }
    assert {name: (store.folder / name).read_bytes() for name in objects(store.folder)} == files
    assert [store.read(entry) for entry in store.entries()] == [here.read(entry) for entry in here.entries()]
    entry = store.relabel(store.named("0"), replace(store.named("0").run, step="a"))
    assert (Store(store.folder).named("0").run.step, store.intact(entry)) == ("a", True)
    store.export(entry, tmp_path / "0.parquet")
    store.export(entry, store.folder.parent / "0.parquet")
    assert (tmp_path / "0.parquet").read_bytes() == (store.folder.parent / "0.parquet").read_bytes()
    store.remove(entry)
    assert [each.run.name for each in store.entries()] == ["1"]
    assert [name for name in objects(store.folder) if entry.run.id in name] == []


def test_index(store: Store, road: BreakingRoad, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are listed from the index, and from `run.json` where that was written since."""
    monkeypatch.setattr(run_index, "FEWEST_RUNS", 1)
    monkeypatch.setattr(run_index, "_DOUBTFUL_NS", -(10**18))
    assert [run.name for run in store.index().runs] == ["0", "1"]
    road.open()
    assert [run.name for run in store.index().runs] == ["0", "1"]
    listed, entry = road.received, store.named("0")
    store.relabel(entry, replace(entry.run, name="other"))
    road.open()
    assert [run.name for run in store.index().runs] == ["other", "1"]
    assert road.received > listed


def test_damage(store: Store) -> None:
    """A flipped bit is found, and a run without its series is damaged; a run without `run.json` is none."""
    one, other = store.entries()
    series = one.folder / "hardware.parquet"
    content = bytearray(series.read_bytes())
    content[100] ^= 1
    assert isinstance(series, RemotePath)
    series.write_bytes(bytes(content))
    assert not store.intact(one)
    with pytest.raises(StoreError, match="damaged"):
        store.read(one)
    (other.folder / "run.json").unlink()
    assert ([each.run.id for each in store.entries()], store.damaged()) == ([one.run.id], [])


def known(store: Store) -> dict[str, Recording]:
    """Return all runs by id; each can be read."""
    assert store.damaged() == []
    return {entry.run.id: store.read(entry) for entry in store.entries()}


def test_dropped_while_replaced(store: Store, bucket: RemotePath, logs: list[Path], road: BreakingRoad) -> None:
    """Wherever the connection drops, the run is the old one, the new one or none; other runs stay."""
    old = known(store)
    run_id = store.named("0").run.id
    again = Altered(logs[2], run_id)
    new = again.recording()
    ends, drop = set(), 0
    while "done" not in ends:
        road.open()
        store.write(reading(logs[0], Labels(name="0")), IMPORTER_VERSION)
        road.open(changes=drop)
        try:
            store.write(Altered(logs[2], run_id), IMPORTER_VERSION)
            ends.add("done")
        except PlaceError:
            ends.add("dropped")
        road.open()
        now = known(store)
        assert now.pop(store.named("1").run.id) == old[store.named("1").run.id]
        ends.add("none" if not now else "old" if now[run_id] == old[run_id] else "new")
        assert not now or now[run_id].series in (old[run_id].series, new.series)
        drop += 1
    assert ends == {"dropped", "old", "none", "new", "done"}
    assert [name for name in objects(bucket / "store") if name.endswith(".new")] == []


@pytest.mark.parametrize("changes", [1, 4])
def test_killed_while_replaced(
    store: Store, bucket: RemotePath, logs: list[Path], road: BreakingRoad, changes: int
) -> None:
    """A writer that is killed between two requests leaves no mixture, and the next one mends what it left."""
    old = known(store)
    road.open(changes=changes, stall=True)
    words = ["ingest", str(logs[0]), "--force", "--store", str(store.folder)]
    writer = subprocess.Popen([sys.executable, "-m", "gpureport", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        assert road.is_cut.wait(60)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    road.open()
    assert all(each == old[run_id] for run_id, each in known(store).items())
    assert len(store.entries()) == (2 if changes == 1 else 1)
    store.write(reading(logs[0], Labels(name="0")), IMPORTER_VERSION)
    assert known(store) == old
    assert [name for name in objects(bucket / "store") if name.endswith(".new")] == []


def test_baselines(store: Store, road: BreakingRoad) -> None:
    """A baseline is a copy of its runs, replaced as a whole: never one of its two runs alone."""
    one, other = store.entries()
    set_baseline(store, "main", [one])
    assert [each.run for each in read_baseline(store, "main")] == [one.run]
    seen, drop = set(), 0
    while "done" not in seen:
        road.open()
        set_baseline(store, "main", [one])
        road.open(changes=drop)
        try:
            set_baseline(store, "main", [one, other])
            seen.add("done")
        except PlaceError:
            seen.add("dropped")
        road.open()
        assert [each.runs for each in list_baselines(store)] in ([], [(one.run,)], [(one.run, other.run)])
        drop += 1
    assert [each.run for each in read_baseline(store, "main")] == [one.run, other.run]
    store.remove(one)
    assert len(read_baseline(store, "main")) == 2
    remove_baseline(store, "main")
    assert list_baselines(store) == ()


def test_history(store: Store) -> None:
    """Nights are kept as objects, and read in the order of their dates."""
    history = History(store.folder)
    assert history.read_all() == []
    nights = [night(number, part({"idle_ratio": 0.1}, number)) for number in (2, 0, 1)]
    for each in nights:
        history.append(each)
        history.append(each)
    assert [each.date for each in history.read_all()] == sorted(each.date for each in nights)


def test_unreachable(store: Store, road: BreakingRoad) -> None:
    """A connection that drops is no damage, and no empty store."""
    entry = store.entries()[0]
    road.open(received=0)
    for call in (store.entries, store.damaged, lambda: store.read(entry), lambda: store.intact(entry)):
        with pytest.raises(PlaceError, match="the connection failed"):
            call()
