"""Each pair of a log and its expectation."""

from pathlib import Path

import pytest

from tests.readers import pairs


@pytest.mark.parametrize("pair", pairs.list_pairs(), ids=lambda pair: pair.relative_to(pairs.PAIRS).as_posix())
def test_pair(pair: Path, tmp_path: Path, *, update_golden: bool) -> None:
    expected = pairs.expectation(pair)
    found = pairs.describe(pair, tmp_path)
    if update_golden:
        expected.write_text(found, encoding="utf-8")
    assert expected.exists(), f"{expected.name} is missing; --update-golden writes it"
    assert found == expected.read_text(encoding="utf-8")


def test_every_expectation_has_its_log() -> None:
    assert set(pairs.PAIRS.glob("*/*.json")) == {pairs.expectation(pair) for pair in pairs.list_pairs()}
