"""What runs are called where several have one name."""

import pytest

from gpureport.fleet.fleet_report import RunName
from gpureport.fleet.page.run_names import name_runs


def run(key: str, name: str, source: str | None = None) -> RunName:
    """Return a run."""
    return RunName(id=key, name=name, source=source)


def test_runs_of_one_name_are_told_apart_by_where_they_lie() -> None:
    """A run that is named twice is one run."""
    first = run("aaaa", "baseline", "mlflow:home/mlflow.db#84fcdd07475c4847b4e4ce08eb78d670")
    other = run("bbbb", "baseline", "neptune:offline-clean#0d1600bb-7836-4027-a2a1-9dac8e45c134")
    assert name_runs([first, run("cccc", "amp"), other]) == [
        "baseline (mlflow.db#84fcdd07)",
        "amp",
        "baseline (offline-clean#0d1600bb)",
    ]
    assert name_runs([first, first]) == ["baseline", "baseline"]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((None, None), ("00000000", "11111111")),
        (("/data/a/7/gpu.csv", "/data/b/7/gpu.csv"), ("a/7", "b/7")),
        (("/data/night/7/gpu.csv", "/data/night/8/gpu.csv"), ("night/7", "night/8")),
        (("/data/run#3/night/gpu.csv", "/data/run#4/night/gpu.csv"), ("run#3/night", "run#4/night")),
        (
            ("/data/a#1/log.csv", "mlflow:http://localhost:5000#84fcdd07475c4847b4e4ce08eb78d670"),
            ("log", "localhost:5000#84fcdd07"),
        ),
        (("neptune:/data/exports/data#OPT-12", None), ("data#OPT-12", "11111111")),
        (("-", "/data/x.csv"), ("-", "x")),
        (("neptune:w/data#PROJECT-101", "neptune:w/data#PROJECT-102"), ("data#PROJECT-101", "data#PROJECT-102")),
        (("/data/a.csv", "/data/a.csv"), ("a, 0000000000000000", "a, 1111111111111111")),
    ],
)
def test_sources_tell_runs_apart(sources: tuple[str | None, ...], expected: tuple[str, ...]) -> None:
    """Logs by as much of their paths as they need, runs of a tracker by the beginnings of their ids."""
    runs = [run(str(place) * 16, "x", source) for place, source in enumerate(sources)]
    assert name_runs(runs) == [f"x ({each})" for each in expected]
