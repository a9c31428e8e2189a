"""Limits as a person writes them."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.checks.limit import LimitError, parse_limit
from gpureport.checks.limit_targets import TargetKind


@pytest.mark.parametrize(
    ("text", "subject", "value", "unit"),
    [
        ("gpu_utilization_ratio >= 80%", TargetKind.STATISTIC, 0.8, "1"),
        ("gpu_utilization_ratio.below_25 <= 5%", TargetKind.STATISTIC, 0.05, "1"),
        ("gpu_memory_used_bytes max <= 80 GiB", TargetKind.STATISTIC, 80 * 2**30, "By"),
        ("gpu_temperature_celsius p95 < 85 °C", TargetKind.STATISTIC, 85.0, "Cel"),
        ("gpu_sm_clock_hertz p5 >= 1,2 GHz", TargetKind.STATISTIC, 1.2e9, "Hz"),
        ("clock_event_hw_slowdown <= 1%", TargetKind.STATISTIC, 0.01, "1"),
        ("idle_seconds <= 10 min", TargetKind.DEVICE, 600.0, "s"),
        ("idle_ratio <= 5%", TargetKind.FIGURE, 0.05, "1"),
        ("energy_joules <= 2 kWh", TargetKind.FIGURE, 7.2e6, "J"),
        ("work_rate_hertz >= 40", TargetKind.FIGURE, 40.0, "1/s"),
        ("cost <= 3 EUR", TargetKind.RUN, 3.0, "currency"),
        ("carbon <= 2 kg", TargetKind.RUN, 2000.0, "g"),
        ("duration >= 1 h", TargetKind.RUN, 3600.0, "s"),
        ("rejected <= 0", TargetKind.RUN, 0.0, ""),
        ("waiting_for_input <= 2 GPU-h", TargetKind.GPU_TIME, 7200.0, "s"),
        ("lost <= 10%", TargetKind.GPU_TIME, 0.1, "1"),
        ("no idle_gap", TargetKind.FINDING, 0.0, "findings"),
        ("warning <= 3", TargetKind.FINDING, 3.0, "findings"),
        ("throttling <= 3 EUR", TargetKind.FINDING, 3.0, "currency"),
        ("idle_gap <= 1.5%", TargetKind.FINDING, 0.015, "1"),
        ("change idle_ratio <= 2 points", TargetKind.CHANGE, 0.02, "points"),
        ("change gpu_seconds_per_1000_work <= 3%", TargetKind.CHANGE, 0.03, "1"),
        ("change gpu_power_watts >= -20 W", TargetKind.CHANGE, -20.0, "W"),
        ("no new problem", TargetKind.NEW, 0.0, "findings"),
        ("new idle_gap <= 2", TargetKind.NEW, 2.0, "findings"),
        ("val_accuracy >= .78", TargetKind.TRAINING, 0.78, "number"),
        ("val/acc best >= 78%", TargetKind.TRAINING, 0.78, "1"),
        ('training "my metric" <= 3', TargetKind.TRAINING, 3.0, "number"),
        ("seconds_to_target <= 2 h", TargetKind.TO_TARGET, 7200.0, "s"),
        ("cost_to_target <= 3 EUR", TargetKind.TO_TARGET, 3.0, "currency"),
        ("change val_loss <= 5%", TargetKind.CHANGE, 0.05, "1"),
        ("change training gain >= -0.1", TargetKind.CHANGE, -0.1, "number"),
        ("change seconds_to_target <= 50%", TargetKind.CHANGE, 0.5, "1"),
    ],
)
def test_what_a_limit_is_on(text: str, subject: TargetKind, value: float, unit: str) -> None:
    """Subject and amount are read, the amount in base units."""
    limit = parse_limit(text)
    assert (limit.subject, limit.threshold.unit) == (subject, unit)
    assert limit.threshold.value == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "gpu_utilization_ratio p5 >= 80%",
        "no new idle_gap",
        "cost <= 3 EUR",
        "lost < 2 h",
        'change training "a b" best <= 3',
    ],
)
def test_words_can_be_written_again(text: str) -> None:
    """The words of a limit state the same limit."""
    limit = parse_limit(text)
    assert (limit.words, parse_limit(limit.words)) == (text, limit)


def test_a_bare_kind_is_none_of_it() -> None:
    """A kind alone, as after --fail-on, means that none may be found."""
    assert parse_limit("thermal_throttle") == parse_limit("no thermal_throttle")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("idle_ratoi <= 5%", "nothing is called 'idle_ratoi'"),
        ("idle_ratio", "idle_ratio without an amount"),
        ("idle_ratio <= 5", "idle_ratio is not limited by '5'"),
        ("idle_ratio <= 10 min", "idle_ratio is not limited by '10 min'"),
        ("gpu_memory_used_bytes <= 80 GBit", "'80 GBit' is no amount"),
        ("gpu_utilization_ratio p7 >= 1%", "gpu_utilization_ratio has no statistic 'p7'"),
        ("idle_ratio mean <= 1%", "idle_ratio has no statistic 'mean'"),
        ("ecc_erorr <= 0", "nothing is called 'ecc_erorr'"),
        ("ecc_errors <= 0", "nothing is called 'ecc_errors'"),
        ("val_loss <= 3 W", "val_loss is not limited by '3 W'"),
        ("pcie_replays_total <= 3", "nothing is called 'pcie_replays_total'"),
        ("change idle_ratio <= 2%", "idle_ratio is not limited by '2%'"),
        ("change idle_ratio <= 0 points", "a change of idle_ratio of 0 is within any noise"),
        ("change idle_gap <= 2", "no figure 'idle_gap' whose change is known"),
        ("new idle_ratio <= 2", "idle_ratio is no kind of finding"),
        ("no idle_gap <= 3", "'no idle_gap <= 3' says no and how many"),
        ("idle_ratio == 5%", "'idle_ratio == 5%' is no limit"),
        ("", "'' is no limit"),
    ],
)
def test_a_mistake_is_named(text: str, what: str) -> None:
    """What is no limit is refused, saying what is wrong and what to write."""
    with pytest.raises(LimitError) as caught:
        parse_limit(text)
    assert caught.value.what == what
    assert caught.value.hint


WORDS = (
    st.sampled_from(["", "change ", "new ", "no "]),
    st.sampled_from(["idle_ratio", "lost", "cost", "problem", "idle_gap", "gpu_power_watts", "work_rate_hertz", "x"]),
    st.sampled_from(["", " mean", ".p95", " x"]),
    st.sampled_from(["", " <= ", ">", "=="]),
    st.sampled_from(["", "0", "-3", "2,5", "80", "9" * 400, "nan", "1e3"]),
    st.sampled_from(["", " %", " points", "EUR", " W", " h", " MB", " parsecs"]),
)


@given(st.one_of(st.text(), st.tuples(*WORDS).map("".join)))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    """Whatever is written is a limit whose words state it again, or is refused."""
    try:
        limit = parse_limit(text)
    except LimitError:
        return
    assert parse_limit(limit.words) == limit
    assert isfinite(limit.threshold.value)


def test_what_was_meant_is_offered() -> None:
    """A name that is nearly one is completed."""
    with pytest.raises(LimitError) as caught:
        parse_limit("thermal_throtle")
    assert caught.value.hint == "did you mean 'thermal_throttle'?"


def test_a_limit_includes_its_end_only_where_it_says_so() -> None:
    """80% keeps `>= 80%` and breaks `> 80%`, also after the rounding of a computation."""
    value = 0.1 * 8
    assert parse_limit("gpu_utilization_ratio >= 80%").holds(value)
    assert not parse_limit("gpu_utilization_ratio > 80%").holds(value)
    assert not parse_limit("gpu_utilization_ratio < 80%").holds(value)
