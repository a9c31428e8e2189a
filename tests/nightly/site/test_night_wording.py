"""Figures of nights as people read them."""

import pytest

from gpureport.nightly.history.night_figures import BY_NAME
from gpureport.nightly.site import night_wording
from gpureport.report.wording.display import GAP


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.6287, "3.63 GPU-s"), (1.8879, "1.89 GPU-s"), (64.6, "1.08 GPU-min"), (7200, "2.00 GPU-h")],
)
def test_gpu_time_of_a_unit_of_work_keeps_its_digits(seconds: float, text: str) -> None:
    """Recorded on an H100: a second step that took half of the first read the same."""
    assert night_wording.format_value(BY_NAME["gpu_seconds_per_1000_work"], seconds).replace(GAP, " ") == text
