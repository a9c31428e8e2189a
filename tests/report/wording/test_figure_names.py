"""A figure has one name, wherever it stands."""

from dataclasses import replace

import pytest

from gpureport.comparison.steps.step_figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.nightly.history.night_figures import FIGURES as NIGHT
from gpureport.report.explain.explained_figures import FIGURES as EXPLAINED
from gpureport.report.sections.comparison.figure_formats import (
    WorkUnits,
    choose_format,
    gather_work_units,
    select_formats,
)
from gpureport.report.sections.comparison.step_columns import build_step_columns
from gpureport.report.sections.head.tiles.step_tiles import build_step_tiles
from gpureport.report.wording.display import GAP
from gpureport.report.wording.figure_names import FIGURE_NAMES, name_figure, name_for_one, per_batch
from gpureport.testing import Work
from tests.comparison.runs import compared, level, sampled

OF_WORK = {PER_WORK, WORK_RATE, TRAINING_RATE, ENERGY_PER_WORK, COST_PER_WORK}


def test_no_name_breaks_a_list() -> None:
    """Names stand in lists set apart by commas."""
    assert [name for name in FIGURE_NAMES.values() if "," in name] == []


@pytest.mark.parametrize("metric", FIGURE_NAMES)
def test_tables_call_it_so(metric: str) -> None:
    """With the batch that it is counted for, where it is one per unit of work."""
    per = per_batch("images")
    units = WorkUnits(costs=(1.0, 9_999.0), energies=(3_600.0, 3_600.0 * 9_999))
    named = choose_format(metric, "images", units=units).title
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


def test_energy_and_cost_have_one_unit_in_a_report() -> None:
    """The batch of work and the unit of a figure are the same in tiles, columns and tables of pairs of steps."""
    runs = [
        replace(
            sampled(name, step=name, work=Work(amount=work, unit="images"), power=300.0, util=[level(90, 400)]),
            gpu_hour_price=2.0,
        )
        for name, work in (("a", 3_000_000), ("b", 1_000), ("c", 3_000_000))
    ]
    found = compared(*runs)
    columns = {column.metric: column for column in build_step_columns(found)}
    labels = {tile.label: tile.unit for tile in build_step_tiles(found)}
    units = gather_work_units(found)
    for step in found.steps[1:]:
        formats = select_formats((found.steps[0], step), units=units)
        for metric in (ENERGY_PER_WORK, COST_PER_WORK):
            assert columns[metric].name in labels
            assert formats[metric].title == columns[metric].name
        energy = step.value(ENERGY_PER_WORK)
        assert formats[ENERGY_PER_WORK].format_value(energy).endswith(f"{GAP}{columns[ENERGY_PER_WORK].unit}")
    assert labels[columns[ENERGY_PER_WORK].name] == columns[ENERGY_PER_WORK].unit


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("images", "image"),
        ("steps", "step"),
        ("units of work", "unit of work"),
        ("epochs", "epoch"),
        ("batches", "batch"),
        ("classes", "class"),
        ("entries", "entry"),
        ("loss", None),
        ("corpus", None),
    ],
)
def test_a_change_in_per_cent_is_that_of_one_unit(unit: str, one: str | None) -> None:
    """A unit that is no plural stays a thousand of it."""
    title = f"GPU time per 1,000 {unit}"
    assert name_for_one(title) == (f"GPU time per {one}" if one else title)
