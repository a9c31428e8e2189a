"""Tables of recordings, and what is found in each: a test gives recordings, `expected/` holds the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analysis.tables import Hold, Table, describe

EXPECTED = Path(__file__).with_name("expected")


@pytest.fixture
def hold(request: pytest.FixtureRequest, *, update_golden: bool) -> Iterator[Hold]:
    """Hold what is said of a subject in each recording against the file of the test, which `--update-golden` writes."""
    path, lines = EXPECTED / f"{request.node.name}.txt", list[str]()
    expected = path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def add(subjects: str, table: Table) -> None:
        begun = len(lines)
        lines.extend(line for name, run in table.items() for line in (f"{subjects}: {name}", *describe(subjects, run)))
        assert update_golden or lines[begun:] == expected[begun : len(lines)], f"{path.name}, --update-golden writes it"

    yield add
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    elif lines == expected[: len(lines)]:
        assert expected[len(lines) :] == []
