"""Figures of nights as people read them."""

from datetime import date

import pytest

from gpureport.nightly.changes.trend import Point
from gpureport.nightly.history.night_figures import BY_NAME
from gpureport.nightly.site import night_wording
from gpureport.nightly.site.trend_curve import choose_date_ticks
from gpureport.report.wording.display import GAP
from tests.nightly.made import day, part


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.6287, "3.63 GPU-s"), (1.8879, "1.89 GPU-s"), (64.6, "1.08 GPU-min"), (7200, "2.00 GPU-h")],
)
def test_gpu_time_of_a_unit_of_work_keeps_its_digits(seconds: float, text: str) -> None:
    """Recorded on an H100: a second step that took half of the first read the same."""
    assert night_wording.format_value(BY_NAME["gpu_seconds_per_1000_work"], seconds).replace(GAP, " ") == text


@pytest.mark.parametrize(
    ("first", "last", "ticks"),
    [
        ("2026-01-05", "2026-01-09", ["5 Jan", "6 Jan", "7 Jan", "8 Jan", "9 Jan"]),
        ("2026-01-05", "2026-02-04", ["5 Jan", "12 Jan", "19 Jan", "26 Jan", "2 Feb"]),
        ("2026-01-01", "2026-12-31", ["Jan", "Mar", "May", "Jul", "Sep", "Nov"]),
        ("2025-11-20", "2026-10-31", ["Jan 2026", "Mar", "May", "Jul", "Sep"]),
        ("2026-01-05", "2026-01-05", ["5 Jan"]),
    ],
)
def test_a_curve_has_few_dates(first: str, last: str, ticks: list[str]) -> None:
    """Days or first days of months, at most eight, the year where there are several."""
    found = choose_date_ticks(date.fromisoformat(first), date.fromisoformat(last))
    assert [text for _, text in found] == ticks


@pytest.mark.parametrize(
    ("values", "words"),
    [({"gpu_seconds_per_1000_work": 135.0}, "not recorded"), ({"gpu_utilization_ratio": 0.9}, "no work stated")],
)
def test_work_is_missing_only_where_nothing_is_known_per_work(values: dict[str, float], words: str) -> None:
    """A night without a price has work all the same."""
    point = Point(date=day(0), label="", value=None, runs=(part(values),))
    assert night_wording.describe_absence(BY_NAME["cost_per_1000_work"], point) == words
    assert night_wording.describe_absence(BY_NAME["gpu_power_watts"], point) == "not recorded"
