"""The figures at the head of a report on one run."""

import pytest

from gpureport.report import build
from gpureport.testing import analyze, recording, steps


@pytest.mark.parametrize("util", [(97, 600), (0, 600)])
@pytest.mark.parametrize("is_power", [True, False])
def test_no_figure_stands_there_twice(util: tuple[int, int], *, is_power: bool) -> None:
    """Whatever was recorded beside utilisation; where memory was not, another takes its place."""
    beside = steps((70, 600))
    run = recording(util=steps(util), power=beside) if is_power else recording(util=steps(util), temperature=beside)
    report = build([(run, analyze(run))], title=None, command="", gpu_hour_price=None, version="0")
    labels = [tile.label for tile in report.tiles]
    assert len(labels) == len(set(labels)) == 4
