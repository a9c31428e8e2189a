"""Thirty-two writers of every kind on one store: ingests, labels, removals and baselines at once, beside a reader."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpureport.store import Store
from tests.store.forking import Forks, Order
from tests.store.runs import SCALE, leftovers, noisy

pytestmark = pytest.mark.stress

EACH = 4
"""Writers of each of eight kinds."""
ROUNDS = 3 * SCALE
_ROWS = 200


def prepare(place: Path, forks: Forks) -> Path:
    """Write the logs and a store with the runs that are there from the start; return the store."""
    store = place / "store"
    for number, name in enumerate(
        ["shared", *(f"{kind}{n}" for kind in ("own", "gone", "again") for n in range(EACH))]
    ):
        (place / f"{name}.csv").write_text(noisy(number, rows=_ROWS))
        assert forks.run(Order(arguments=("ingest", f"{place / name}.csv", "--store", str(store)))).code == 0
    return store


def give_orders(place: Path, turn: int) -> Iterator[Sequence[str]]:
    """Yield the commands of the writers of one round, eight by eight."""
    for n in range(EACH):
        yield ("ingest", str(place / f"own{n}.csv"), "--force", "--step", f"turn {turn}")
        yield ("ingest", str(place / "shared.csv"), "--force")
        yield ("ingest", str(place / "shared.csv"), "--tag", f"writer={n}")
        yield ("runs", "step", "shared", f"turn {turn}")
        yield ("runs", "rm", f"gone{n}") if turn % 2 else ("ingest", str(place / f"gone{n}.csv"))
        yield ("baseline", "set", "common", "shared")
        yield ("baseline", "set", f"base{n}", f"own{n}", "shared")
        yield ("runs", "rename", f"again{n}", f"again{n}")


def read_all(place: Store) -> int:
    """Read every run there is, each whole; return how many there were."""
    assert place.damaged() == []
    entries = place.entries()
    for entry in entries:
        assert place.read(entry).series.num_rows == 2 * _ROWS
    return len(entries)


def test_writers_of_every_kind(forks: Forks, tmp_path: Path) -> None:
    """All succeed in silence, no reader ever fails, and every run and baseline that is to be there is whole."""
    store = Store(prepare(tmp_path, forks))
    readings = 0
    for turn in range(1, ROUNDS + 1):
        given = [Order(arguments=(*words, "--store", str(store.folder))) for words in give_orders(tmp_path, turn)]
        assert len(given) == 32
        forks.begin(*given)
        while not forks.ended():
            readings += read_all(Store(store.folder)) if turn % 2 == 0 else 0
        assert [(each.code, each.err) for each in forks.result()] == [(0, "")] * 32
        assert read_all(Store(store.folder)) == 1 + (2 if turn % 2 else 3) * EACH
    listed = forks.run(Order(arguments=("baseline", "list", "--store", str(store.folder))))
    assert (listed.code, len(listed.out.splitlines())) == (0, 1 + EACH)
    assert readings > 10
    assert leftovers(store) == []
