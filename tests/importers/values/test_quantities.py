"""Numbers of JSON and CSV become values in base units, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.importers.values import quantities
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS, METRICS, Metric
from gpureport.units import UNITS


@pytest.mark.parametrize(
    ("cell", "unit", "metric", "value"),
    [
        (61, "%", "gpu_utilization_ratio", 0.61),
        ("61.5", "%", "gpu_utilization_ratio", 0.615),
        (100.00000001, "%", "gpu_utilization_ratio", 1.0),
        (101, "%", "gpu_utilization_ratio", None),
        (120, "%", "gpu_fan_ratio", 1.2),
        (120, "%", "gpu_power_ratio", 1.2),
        (-3, "C", "gpu_temperature_celsius", -3),
        (-3, "W", "gpu_power_watts", None),
        ("2.07e+11", "mJ", "gpu_energy_joules_total", 2.07e8),
        (1.5, "MiB", "gpu_memory_used_bytes", 1_572_864),
        (200, "", "gpu_performance_state", None),
        (True, "W", "gpu_power_watts", None),
        (None, "W", "gpu_power_watts", None),
        ([1], "W", "gpu_power_watts", None),
        ("1_0", "W", "gpu_power_watts", None),
        ("٣", "W", "gpu_power_watts", None),
        ("0x10", "W", "gpu_power_watts", None),
        (10**400, "W", "gpu_power_watts", None),
        (float("nan"), "W", "gpu_power_watts", None),
        ("1e999", "W", "gpu_power_watts", None),
    ],
)
def test_a_cell_is_a_value_or_none(cell: object, unit: str, metric: str, value: float | None) -> None:
    """What cannot be a value of the metric is none, and never 0."""
    found = quantities.parse_quantity(cell, unit, metric)
    assert found == (value if value is None else pytest.approx(value))


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans()), st.sampled_from(METRICS))
def test_no_cell_is_a_value_that_the_column_cannot_hold(cell: object, metric: Metric) -> None:
    """Whatever a cell holds, its value fits the column it goes to."""
    one = BY_NAME[metric.name]
    unit = next(name for name, unit in UNITS.items() if unit.base == one.unit)
    if one.dtype in {"bool", "uint64"}:
        return
    found = quantities.parse_quantity(cell, unit, one.name)
    assert found is None or found >= (-(2.0**62) if one.unit == "Cel" else 0)
    assert found is None or one.unit != "1" or found <= 1 or one.may_exceed_one


@pytest.mark.parametrize("mask", [0, 1, 0x44, 0x8000000000000000])
def test_a_mask_is_taken_apart_without_loss(mask: int) -> None:
    """Reasons and unknown bits together are the mask."""
    events = quantities.split_clock_events(mask)
    bits = {f"clock_event_{name}": bit for name, bit in CLOCK_EVENT_BITS.items()}
    assert (
        sum(bits[name] for name, held in events.items() if name in bits and held) + events["clock_event_unknown_bits"]
        == mask
    )
    assert quantities.split_clock_events(-1) == quantities.split_clock_events(2**64) == {}
