"""A figure has one name, wherever it stands."""

import pytest

from gpureport.comparison.steps.step_figures import COST_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.nightly.history.night_figures import FIGURES as NIGHT
from gpureport.recording import Work
from gpureport.report.explain.explained_figures import FIGURES as EXPLAINED
from gpureport.report.sections.comparison.figure_formats import choose_format
from gpureport.report.sections.comparison.step_columns import build_step_columns
from gpureport.report.sections.head.tiles.step_tiles import build_step_tiles
from gpureport.report.wording.figure_names import FIGURE_NAMES, name_figure, per_batch
from tests.comparison.runs import compared, level, sampled

OF_WORK = {PER_WORK, WORK_RATE, TRAINING_RATE, "energy_joules_per_1000_work", COST_PER_WORK}


@pytest.mark.parametrize("metric", FIGURE_NAMES)
def test_tables_call_it_so(metric: str) -> None:
    """With the batch that it is counted for, where it is one per unit of work."""
    per = per_batch("images")
    named = choose_format(metric, "images", costs=(1.0, 9_999.0)).title
    assert named == name_figure(metric, per) or metric == COST_PER_WORK
    assert named.startswith(name_figure(metric, "").partition(" per")[0])


def test_nights_and_explanations_call_it_so() -> None:
    """Without a unit of work they speak of units of work in general."""
    titles = {figure.name: figure.title for figure in NIGHT if figure.name in FIGURE_NAMES}
    assert titles == {metric: name_figure(metric) for metric in titles}
    assert [metric for metric in OF_WORK if not EXPLAINED[metric][0].startswith(name_figure(metric))] == []


def test_columns_and_tiles_call_it_so() -> None:
    """The column has the unit beside the name, the tile beside the value."""
    runs = [
        sampled(name, step=name, work=Work(amount=1000, unit="images"), power=300.0, util=[level(90, seconds)])
        for name, seconds in (("a", 400), ("b", 300))
    ]
    found = compared(*runs)
    columns = {column.metric: column for column in build_step_columns(found)}
    assert columns[PER_WORK].name == name_figure(PER_WORK, per_batch("images"))
    assert columns[PER_WORK].title == f"{columns[PER_WORK].name}, GPU-s"
    assert columns[WORK_RATE].title == f"{name_figure(WORK_RATE)}, images/s"
    labels = [tile.label for tile in build_step_tiles(found)]
    assert labels[:2] == [name_figure(WORK_RATE), columns[PER_WORK].name]
    assert labels[2].startswith("Energy per ")
