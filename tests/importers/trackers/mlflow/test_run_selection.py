"""Which runs of a store are meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpureport.errors import GpureportError, SourceError
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.trackers.mlflow import Mlflow
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id
from tests.importers.trackers.mlflow.test_mapping import TICKS

_HARDWARE = monitored(TICKS[:2])
PARENT = run_id(10)
APART = 10_000
"""Milliseconds between the starts of two runs."""

RUNS = [
    Made(id=run_id(1), name="baseline", series=_HARDWARE, start=START, params={"lr": "0.1"}, tags={"team": "vision"}),
    Made(
        id=run_id(2),
        name="amp",
        series=_HARDWARE | {"val/acc": [(START, 0.5, 0), (START + 1, 0.9, 1)]},
        start=START + 1 * APART,
    ),
    Made(id=run_id(3), name="twice", series=_HARDWARE, start=START + 2 * APART),
    Made(id=run_id(4), name="twice", series=_HARDWARE, start=START + 3 * APART, status="FAILED", experiment="second"),
    Made(id=run_id(5), name="still running", series=_HARDWARE, start=START + 4 * APART, status="RUNNING", end=None),
    Made(id=run_id(6), name="no hardware", series={"loss": [(START, 1.0, 0)]}, start=START + 5 * APART),
    Made(id=run_id(7), name="gone", series=_HARDWARE, start=START + 6 * APART, deleted=True),
    Made(id=PARENT, name="sweep", series=_HARDWARE, start=START + 7 * APART),
    Made(id=run_id(11), name="lr 1", series=_HARDWARE, start=START + 8 * APART, tags={"mlflow.parentRunId": PARENT}),
    Made(
        id=run_id(12),
        name="lr 2",
        series={"loss": [(START, 1.0, 0)]},
        start=START + 9 * APART,
        tags={"mlflow.parentRunId": PARENT},
    ),
]
Meant = Callable[..., list[int]]


@pytest.fixture(params=[database, folder], ids=["sqlite", "file store"])
def meant(request: pytest.FixtureRequest, tmp_path: Path) -> Meant:
    """Return a function that says which runs are meant, by number."""
    source = request.param(tmp_path / "mlflow.db", RUNS)

    def found(run: str = "", **options: Any) -> list[int]:  # noqa: ANN401 - any option
        options = {
            name: (value,) if name == "runs" and isinstance(value, str) else value for name, value in options.items()
        }
        locator = f"mlflow:{source}#{run}" if run else str(source)
        return [int(each.key[:6], 16) for each in Mlflow().runs(locator, Selection(**options)).runs]

    return found


def test_by_default_every_finished_run_with_hardware_in_the_order_of_time(meant: Meant) -> None:
    """Running, deleted and bare runs are left out, and those nested in one that is read; a chain goes forward."""
    assert meant() == [1, 2, 3, 4, 10]
    assert meant(latest=2) == [4, 10]


def test_a_listing_has_the_newest_first(tmp_path: Path) -> None:
    """Which is what a person looks for in a long one."""
    listed = Mlflow().listed(str(database(tmp_path / "mlflow.db", RUNS)), Selection())
    assert [int(each.id[:6], 16) for each in listed][:3] == [12, 11, 10]


@pytest.mark.parametrize(
    ("name", "number"),
    [("baseline", 1), (run_id(2), 2), (run_id(2)[:8], 2), ("still running", 5), ("no hardware", 6), (run_id(7), 7)],
)
def test_a_run_is_named_by_id_beginning_or_name(meant: Meant, name: str, number: int) -> None:
    """Whatever its state; a deleted one by its id alone."""
    assert meant(name) == meant(runs=name) == [number]


def test_several_runs_come_in_the_order_they_are_named(meant: Meant) -> None:
    """Each once; a star stands for anything."""
    assert meant(runs=("amp", "baseline", run_id(2))) == [2, 1]
    assert meant(runs="tw*") == [3, 4]
    assert meant(runs=("tw*", "amp", "*")) == [3, 4, 2, 1, 5, 6, 10, 11, 12]
    assert meant(runs="tw*", latest=1) == [4]
    assert meant("baseline", runs="amp") == [1, 2]


def test_a_name_that_others_have_lists_them(meant: Meant) -> None:
    """With ids and states, so that one can be named."""
    with pytest.raises(
        SourceError,
        match=r"2 runs are called 'twice'; name one by its id: 000004\w+ \(twice, FAILED\).*; 'twice\*' reads all",
    ):
        meant("twice")


def test_a_star_is_offered_where_it_reads_no_other_run(tmp_path: Path) -> None:
    """A longer name begins alike."""
    source = database(tmp_path / "mlflow.db", [*RUNS, Made(id=run_id(20), name="twice-large", series=_HARDWARE)])
    with pytest.raises(SourceError) as caught:
        Mlflow().runs(f"mlflow:{source}#twice", Selection())
    assert "2 runs are called 'twice'" in str(caught.value)
    assert "reads all" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"), [("baselin", r"did you mean baseline \(000001"), ("gone", "--list"), ("0000", "--list")]
)
def test_a_name_that_no_run_has_suggests_others(meant: Meant, name: str, hint: str) -> None:
    """Names of deleted runs are not taken, nor beginnings of fewer than six characters."""
    with pytest.raises(SourceError, match=f"no run '{name}'; .*{hint}"):
        meant(name)


def test_children_come_with_their_parent(meant: Meant) -> None:
    """Whether they hold hardware or not."""
    assert meant("sweep", children=True) == [10, 11, 12]
    assert meant(PARENT, children=True) == [10, 11, 12]
    assert meant(children=True) == [1, 2, 3, 4, 10, 11, 12]


def test_an_experiment_narrows(meant: Meant) -> None:
    """By its name; one that is not there names those that are."""
    assert meant(experiment="second") == [4]
    assert meant("twice", experiment="second") == [4]
    with pytest.raises(SourceError, match=r"no experiment 'secund'; it has second"):
        meant(experiment="secund")


def test_nothing_to_read_says_what_there_is(tmp_path: Path) -> None:
    """A store whose runs all still run, or hold no hardware."""
    source = database(tmp_path / "mlflow.db", [RUNS[4], RUNS[5]])
    with pytest.raises(GpureportError, match="none of 2 runs has ended and holds hardware series; --list"):
        Mlflow().runs(str(source), Selection())


def test_a_listing_shows_what_tells_runs_apart(meant: Meant, tmp_path: Path) -> None:
    """The newest first, with what they hold, without reading a series; those that are deleted last, and marked."""
    assert meant()
    listed = Mlflow().listed(str(tmp_path / "mlflow.db"), Selection())
    assert [(run.name, run.holds) for run in listed[:5]] == [
        ("lr 2", f"nested in {PARENT}"),
        ("lr 1", f"1 GPU, host, nested in {PARENT}"),
        ("sweep", "1 GPU, host"),
        ("no hardware", "no hardware series"),
        ("still running", "1 GPU, host"),
    ]
    assert listed[0].started == (START + 9 * APART) * 1000
    assert [run.name for run in listed if run.is_deleted] == [listed[-1].name] == ["gone"]
    assert not any(run.is_deleted for run in Mlflow().listed(str(tmp_path / "mlflow.db"), Selection(latest=3)))
