"""Which share of the time short pauses take."""

import pytest

from gpureport.analysis.signals.short_pauses import measure_pauses_ratio


def test_pauses_are_a_share_of_what_was_observed() -> None:
    """Neither of time without samples, nor of time without a job; of nothing they are none."""
    seconds = {"computing": 60.0, "short_pauses": 20.0, "idle": 20.0, "no_samples": 300.0, "no_job": 50.0}
    assert measure_pauses_ratio(seconds) == pytest.approx(0.2)
    assert measure_pauses_ratio({"no_samples": 10.0}) == 0.0
