"""Columns that a header declares, each under a name of its own."""

from gpureport.importers.delimited.layout import Layout, make_layout
from gpureport.importers.values.cells import Column


def declared(*headings: str) -> Layout:
    """Return the layout of columns that all say they are the temperature."""
    return make_layout(
        [Column(source=heading, target="gpu_temperature_celsius", dtype="float64", read=float) for heading in headings]
    )


def test_what_names_a_metric_again_is_kept_aside() -> None:
    """The first column is the metric; every other one has a name that no other has."""
    targets = [column.target for column in declared("t", "t", "t", "t 2", "t").columns]
    assert targets == ["gpu_temperature_celsius", "extra_t", "extra_t_2", "extra_t_2_2", "extra_t_3"]


def test_a_line_of_thousands_of_equal_headings_is_named() -> None:
    """A few bytes of a compressed log stand for such a line; looking for each name from the first on took minutes."""
    targets = [column.target for column in declared(*["t"] * 50_000).columns]
    assert len(set(targets)) == 50_000
    assert targets[-1] == "extra_t_49999"
