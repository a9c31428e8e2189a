"""Logs made by a test, and what is read of each: `expected/` beside the test holds it."""

import json
from collections.abc import Callable, Iterator

import pytest

from gpureport.testing import Recording
from tests.readers import pairs

Hold = Callable[[str, Callable[[], Recording]], None]


@pytest.fixture
def hold(request: pytest.FixtureRequest, *, update_golden: bool) -> Iterator[Hold]:
    """Hold what each of several readings gives against the file of the test, which `--update-golden` writes."""
    path, found = request.path.parent / "expected" / f"{request.node.originalname}.json", dict[str, object]()
    expected = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def add(name: str, read: Callable[[], Recording]) -> None:
        assert name not in found
        found[name] = pairs.outline(read)
        assert update_golden or found[name] == expected.get(name), f"{path.name}, --update-golden writes it"

    yield add
    if update_golden or all(expected.get(name) == each for name, each in found.items()):
        pairs.hold(path, found, update=update_golden)
