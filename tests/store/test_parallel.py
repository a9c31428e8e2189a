"""Many ingests at once, of different runs and of the same, beside a reader."""

from pathlib import Path

import pytest

from gpureport.store import Store
from tests.store.forking import Ended, Forks, Order
from tests.store.runs import SCALE, leftovers, noisy
from tests.store.test_full_disk import contents

pytestmark = pytest.mark.stress

WRITERS = 16


def logs(folder: Path, *, same: bool) -> list[Path]:
    """Write a log for each writer, all different or one for all."""
    paths = [folder / f"{number}.csv" for number in range(1 if same else WRITERS)]
    for number, path in enumerate(paths):
        path.write_text(noisy(number, rows=400))
    return paths * WRITERS if same else paths


def orders(paths: list[Path], store: Path) -> list[Order]:
    """Return an ingest of each log; every second one reads again what is there."""
    return [
        Order(arguments=["ingest", str(path), *(["--force"] if number % 2 else []), "--store", str(store)])
        for number, path in enumerate(paths)
    ]


def beside_a_reader(forks: Forks, store: Path, given: list[Order]) -> tuple[list[Ended], int]:
    """Run ingests at once and read all there is meanwhile; return how they ended, and the number of readings."""
    forks.begin(*given)
    readings = 0
    while not forks.ended():
        place = Store(store)
        assert place.damaged() == []
        for entry in place.entries():
            assert place.read(entry).series.num_rows == 800
            readings += 1
    return forks.result(), readings


@pytest.mark.parametrize("same", [False, True])
def test_ingests_at_once(forks: Forks, tmp_path: Path, *, same: bool) -> None:
    """All succeed, no reader ever fails, and the store is what one ingest after another makes."""
    paths = logs(tmp_path, same=same)
    serial, parallel = tmp_path / "serial", tmp_path / "parallel"
    for order in orders(paths, serial):
        assert forks.run(order).code == 0
    expected = contents(serial)
    assert len(Store(serial).entries()) == len(set(paths))
    readings = 0
    for _ in range(4 * SCALE):
        ended, read = beside_a_reader(forks, parallel, orders(paths, parallel))
        readings += read
        assert [(each.code, each.err) for each in ended] == [(0, "")] * WRITERS
        assert contents(parallel) == expected
    assert readings > 10
    assert leftovers(Store(parallel)) == []
