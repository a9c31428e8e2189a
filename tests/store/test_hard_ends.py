"""Where a file may not grow, or with many writers at once: the store is as it was, or as it was to be."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.store.forking import Forks, Order
from tests.store.runs import SCALE, Known, contents, leftovers, noisy, read_store
from tests.support.program import run_program

WRITERS, EACH, ROUNDS = 16, 4, 3 * SCALE
"""Ingests at once; and writers of each of eight kinds, with the rounds they make."""
LONG = ("--param", f"note={'x' * 60_000}")
"""Makes run.json larger than the series, so that it is what does not fit."""


@pytest.mark.stress
@pytest.mark.parametrize(("log", "more"), [("new", LONG), ("old", (*LONG, "--force"))])
def test_a_file_that_may_not_grow(before: Known, forks: Forks, tmp_path: Path, log: str, more: Sequence[str]) -> None:
    for limit in (1, 300, 4_096, 10_000, 25_000, 50_000):
        store = before.copy(tmp_path / str(limit))
        refuse(forks, Order(arguments=before.ingest(log, store, *more), file_size=limit), store)


def refuse(forks: Forks, order: Order, store: Path) -> None:
    """Check that an ingest fails in one line that says what to do, and leaves a store as it was."""
    held, ended = contents(store), forks.run(order)
    assert (ended.code, ended.err.count("\n"), "--store" in ended.err) == (3, 1, True)
    assert ended.err.startswith(f"gpureport: {store}: ")
    assert (contents(store), leftovers(store)) == (held, [])


def test_labels_and_a_store_that_do_not_fit(before: Known, store: Path, forks: Forks, tmp_path: Path) -> None:
    refuse(forks, Order(arguments=before.ingest("old", store, *LONG), file_size=10_000), store)
    arguments = before.ingest("new", tmp_path / "none")
    ended = forks.run(Order(arguments=arguments, file_size=1))
    assert (ended.code, ended.err.count("\n"), leftovers(tmp_path / "none")) == (3, 1, [])
    assert forks.run(Order(arguments=arguments)).code == 0


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
