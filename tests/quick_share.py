"""Values for a test of which the quick tests take some, and the slow ones the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def keep_quick(values: Iterable[Any], every: int) -> list[Any]:
    """Return values as parameters of a test: the first of each `every` is quick, the others are marked slow."""
    return [
        pytest.param(value, id=str(value), marks=pytest.mark.slow if place % every else ())
        for place, value in enumerate(values)
    ]
