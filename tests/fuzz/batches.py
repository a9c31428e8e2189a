"""Numbers of random cases in batches, of which the first is quick."""

from typing import Any

import pytest


def batches(cases: int, size: int) -> list[Any]:
    """Return the first number of each batch as a parameter; all but the first batch are slow."""
    return [pytest.param(first, marks=[pytest.mark.slow] if first else []) for first in range(0, cases, size)]
