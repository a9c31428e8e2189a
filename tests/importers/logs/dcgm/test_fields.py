"""Every name of a field stands for one metric and one unit."""

import pytest

from gpureport.importers.logs.dcgm import fields
from gpureport.metrics import BY_NAME, METRICS
from gpureport.units import UNITS


def test_every_name_has_a_metric_and_a_unit_of_it() -> None:
    """No name stands for what the series cannot hold."""
    for name, known in fields.FIELDS.items():
        if known.target != fields.MASK:
            assert UNITS[known.unit].base == BY_NAME[known.target].unit, name


def test_names_are_each_of_one_field() -> None:
    """No name is listed twice."""
    names = [name for names in fields._TABLE.values() for name in names.split()]  # noqa: SLF001 - the table is what is tested
    assert len(names) == len(set(names))


def test_metrics_that_only_dcgm_records_are_read() -> None:
    """What the table of metrics says DCGM records is a name here."""
    recorded = [metric for metric in METRICS if metric.recorded_by.startswith("DCGM_")]
    assert len(recorded) == 9
    assert [metric.name for metric in recorded] == [fields.FIELDS[metric.recorded_by].target for metric in recorded]


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("SM_CLOCK", "SM_CLOCK_HERTZ", 1980, 1.98e9),
        ("MEM_CLOCK", "MEMORY_CLOCK_HERTZ", 2619, 2.619e9),
        ("TOTAL_ENERGY_CONSUMPTION", "GPU_ENERGY_JOULES_TOTAL", 5_000_000, 5000),
        ("GPU_UTIL", "GPU_UTIL_RATIO", 61, 0.61),
        ("MEM_COPY_UTIL", "MEMORY_UTIL_RATIO", 40, 0.4),
        ("ENC_UTIL", "ENC_UTIL_RATIO", 3, 0.03),
        ("DEC_UTIL", "DEC_UTIL_RATIO", 3, 0.03),
        ("FB_FREE", "FB_FREE_BYTES", 1024, 2**30),
        ("FB_USED", "FB_USED_BYTES", 1024, 2**30),
        ("FB_RESERVED", "FB_RESERVED_BYTES", 512, 2**29),
    ],
)
def test_fields_that_change_their_unit_say_the_same(old: str, new: str, before: float, after: float) -> None:
    """A reading under the name before dcgm-exporter 4.9.0 and one under the name since are one value."""
    first, second = fields.FIELDS[f"DCGM_FI_DEV_{old}"], fields.FIELDS[f"DCGM_FI_DEV_{new}"]
    assert first.target == second.target
    assert fields.convert_value(before, first, first.unit) == pytest.approx(
        fields.convert_value(after, second, second.unit)
    )


@pytest.mark.parametrize(
    ("name", "values", "unit"),
    [
        ("GPU_UTIL_RATIO", [0, 0.61, 1], "1"),
        ("GPU_UTIL_RATIO", [0, 61, 100], "%"),
        ("GPU_UTIL_RATIO", [0, 1, 1], None),
        ("GPU_UTIL", [0, 1, 61], "%"),
        ("GPU_UTIL", [0, 1, 1], "%"),
        ("GPU_UTIL", [0, 0.5, 1], "1"),
        ("SM_CLOCK", [1980, 9223372036854775794.0], "MHz"),
        ("SM_CLOCK", [1.98e9], "Hz"),
        ("FB_USED", [0, 81559], "MiB"),
        ("FB_USED", [0, 8.5e10], "B"),
        ("FB_USED", [float("nan")], "MiB"),
    ],
)
def test_values_tell_the_unit_where_the_name_does_not(name: str, values: list[float], unit: str | None) -> None:
    """A unit under another name is told by values that cannot be in the one the name stands for."""
    assert fields.determine_unit(fields.FIELDS[f"DCGM_FI_DEV_{name}"], values) == unit
