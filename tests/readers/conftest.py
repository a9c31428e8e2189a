"""Logs made by a test, and what is read of each: `expected/` beside the test holds it."""

from collections.abc import Callable, Iterator

import pytest

from gpureport.testing import Recording
from tests.readers import pairs

Hold = Callable[[str, Callable[[], Recording]], None]


@pytest.fixture
def hold(request: pytest.FixtureRequest, *, update_golden: bool) -> Iterator[Hold]:
    """Hold what each of several readings gives against the file of the test, which `--update-golden` writes."""
    found: dict[str, object] = {}

    def add(name: str, read: Callable[[], Recording]) -> None:
        assert name not in found
        found[name] = pairs.outline(read)

    yield add
    pairs.hold(request.path.parent / "expected" / f"{request.node.originalname}.json", found, update=update_golden)
