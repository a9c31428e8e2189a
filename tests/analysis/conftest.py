"""Tables of recordings, and what is found in each: a test gives recordings, `expected/` holds the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analysis.tables import Hold, Table, describe

EXPECTED = Path(__file__).with_name("expected")


@pytest.fixture
def hold(request: pytest.FixtureRequest, *, update_golden: bool) -> Iterator[Hold]:
    """Hold what is said of a subject in each recording against the file of the test, which `--update-golden` writes."""
    lines: list[str] = []

    def add(subject: str, table: Table) -> None:
        lines.extend(line for name, run in table.items() for line in (f"{subject}: {name}", *describe(subject, run)))

    yield add
    text, path = "".join(f"{line}\n" for line in lines), EXPECTED / f"{request.node.name}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; --update-golden writes it"
    assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()
