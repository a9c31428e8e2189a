"""Tables of recordings, and what is found in each: a test and the file beside it give them, `expected/` the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analysis.tables import Hold, Table, describe, read_recording
from tests.support.tables import read_blocks

EXPECTED = Path(__file__).with_name("expected")


@pytest.fixture
def hold(request: pytest.FixtureRequest, *, update_golden: bool) -> Iterator[Hold]:
    """Hold what is said of a subject in each recording against the file of the test, which `--update-golden` writes."""
    path, lines = EXPECTED / f"{request.node.name}.txt", list[str]()
    expected = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    beside = request.path.with_suffix(".txt")
    blocks = dict(read_blocks(beside)) if beside.exists() else {}

    def add(subjects: str, table: Table | None = None) -> None:
        begun = len(lines)
        told = blocks.pop(f"{request.node.name}: {subjects}", "").splitlines()
        rows = (line.split("\t") for line in told if line and not line.startswith("#"))
        table = {name: read_recording(row) for name, row in rows} | dict(table or {})
        lines.extend(line for name, run in table.items() for line in (f"{subjects}: {name}", *describe(subjects, run)))
        assert update_golden or lines[begun:] == expected[begun : len(lines)], f"{path.name}, --update-golden writes it"

    yield add
    # a block that no test holds would say nothing
    assert {head.partition(":")[0] for head in blocks} <= set(vars(request.module)) - {request.node.name}
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    elif lines == expected[: len(lines)]:
        assert expected[len(lines) :] == []
