"""What runs are called where several have one name."""

import pytest

from gpureport.fleet.fleet_report import RunName
from gpureport.fleet.page.run_names import describe_source, name_runs


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
    ("source", "expected"),
    [
        (None, "abcdef01"),
        ("/data/night/logs/7/gpu.csv", "7/gpu.csv"),
        ("/data/exports/data#OPT-12", "data#OPT-12"),
        ("mlflow:http://localhost:5000#84fcdd07475c", "localhost:5000#84fcdd07"),
        ("-", "-"),
    ],
)
def test_a_source_is_the_end_of_its_path(source: str | None, expected: str) -> None:
    """With the beginning of the id of a tracker."""
    assert describe_source(run("abcdef0123456789", "x", source)) == expected
