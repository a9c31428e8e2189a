"""Which runs of a store are meant."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.importers.trackers.mlflow.stores import START, TICKS, Made, database, folder, monitored, run_id
from tests.importers.trackers.tracked import ids, refused

_HARDWARE = monitored(TICKS[:2])
PARENT = run_id(10)
APART = 10_000
"""Milliseconds between the starts of two runs."""
_NESTED = {"mlflow.parentRunId": PARENT}
_LOSS = {"loss": [(START, 1.0, 0)]}


def _made(number: int, place: int, name: str, **more: Any) -> Made:
    made = Made(id=run_id(number), name=name, series=_HARDWARE, start=START + place * APART)
    return replace(made, **more)


RUNS = [
    _made(1, 0, "baseline"),
    _made(2, 1, "amp"),
    _made(3, 2, "twice"),
    _made(4, 3, "twice", status="FAILED", experiment="second"),
    _made(5, 4, "still running", status="RUNNING", end=None),
    _made(6, 5, "no hardware", series=_LOSS),
    _made(7, 6, "gone", deleted=True),
    _made(10, 7, "sweep"),
    _made(11, 8, "lr 1", tags=_NESTED),
    _made(12, 9, "lr 2", series=_LOSS, tags=_NESTED),
]


@pytest.fixture(params=[database, folder], ids=["sqlite", "file store"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made: Path = request.param(tmp_path / "mlflow.db", RUNS)
    return made


Meant = Callable[..., list[int]]


@pytest.fixture
def meant(source: Path) -> Meant:

    def found(run: str = "", **options: Any) -> list[int]:
        return [int(each[:6], 16) for each in ids(f"mlflow:{source}#{run}" if run else source, **options)]

    return found


def test_by_default_every_finished_run_with_hardware_in_the_order_of_time(meant: Meant) -> None:
    assert meant() == [1, 2, 3, 4, 10]
    assert meant(latest=2) == [4, 10]


def test_runs_that_started_at_once_stand_by_name(tmp_path: Path) -> None:
    names = ["run " + "9" * 5000, "run 010", "run 9", "run"]
    made = [Made(id=run_id(n), name=name, series=_HARDWARE, start=START + 10 - n) for n, name in enumerate(names)]
    made.append(Made(id=run_id(9), name="a later one", series=_HARDWARE, start=START + 6_000))
    assert ids(database(tmp_path / "mlflow.db", made)) == [run_id(number) for number in (3, 2, 1, 0, 9)]


def test_a_run_is_named_by_id_beginning_or_name(meant: Meant) -> None:
    for name, number in {
        "baseline": 1, run_id(2): 2, run_id(2)[:6]: 2, "still running": 5, "no hardware": 6, run_id(7): 7,
    }.items():  # fmt: skip
        assert meant(name) == meant(runs=name) == [number], name


def test_several_runs_come_in_the_order_they_are_named(meant: Meant) -> None:
    assert meant(runs=("amp", "baseline", run_id(2))) == [2, 1]
    assert meant(runs="tw*") == [3, 4]
    assert meant(runs=("tw*", "amp", "*")) == [3, 4, 2, 1, 5, 6, 10, 11, 12]
    assert meant(runs="tw*", latest=1) == [4]
    assert meant("baseline", runs="amp") == [1, 2]


def test_a_name_that_several_or_no_runs_have(source: Path) -> None:
    several = refused(f"mlflow:{source}#twice")
    assert (several.code, run_id(3)[:6] in several.hint) == ("several_runs", True)
    for name in ("baselin", "gone", "0000"):
        error = refused(f"mlflow:{source}#{name}")
        assert (error.code, "--list" in error.hint) == ("unknown_run", True), name


def test_children_come_with_their_parent(meant: Meant) -> None:
    assert meant("sweep", children=True) == meant(PARENT, children=True) == [10, 11, 12]
    assert meant(children=True) == [1, 2, 3, 4, 10, 11, 12]


def test_an_experiment_narrows_and_a_filter_needs_a_server(meant: Meant, source: Path) -> None:
    assert meant(experiment="second") == meant("twice", experiment="second") == [4]
    assert refused(source, experiment="secund").code == "no_such_experiment"
    assert refused(source, filter="params.lr = '0.1'").code == "filter_needs_server"


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    assert refused(database(tmp_path / "mlflow.db", [RUNS[4], RUNS[5]])).code == "no_finished_run"


def test_a_listing_shows_what_distinguishes_runs(gpureport: Program, source: Path) -> None:
    done = gpureport("ingest", "--list", str(source))
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == [run_id(number) for number in (12, 11, 10, 6, 5, 4, 3, 2, 1)]
    for line, holds in zip(
        lines, (f"nested in {PARENT}", "1 GPU, host, nested", "1 GPU, host", "no hardware series"), strict=False
    ):
        assert holds in line
    newest = gpureport("ingest", "--list", str(source), "--latest", "3").out
    assert (run_id(7) in done.err, newest.count("\n")) == (True, 3)
    skipped = gpureport("ingest", str(source)).err
    for reason in ("1 still RUNNING", "2 nested in another", "1 without hardware series", "--run NAME reads one"):
        assert reason in skipped, reason
