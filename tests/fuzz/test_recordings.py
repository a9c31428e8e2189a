"""Every valid recording yields an analysis, reports and comparisons, or an error of the project."""

import os

import pytest

from gpureport.errors import GpureportError
from tests.fuzz.batches import batches
from tests.fuzz.properties import STAGES

TRIALS, BATCH = 30 * int(os.environ.get("GPUREPORT_TRIALS", "1")), 6
"""`recordings_by_hand` makes as many as one likes, and says which of them offend."""


@pytest.mark.parametrize("first", batches(TRIALS, BATCH))
def test_random_recordings_end_in_results(first: int) -> None:
    """Whatever columns, stamps and values they hold; shares are shares, and GPU time adds up."""
    for number in range(first, first + BATCH):
        for stage in STAGES:
            try:
                stage(number)
            except GpureportError:
                continue
            except Exception as error:
                error.add_note(f"recording {number}")
                raise
