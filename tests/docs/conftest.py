"""Fixtures of the tests of the docs."""

from pathlib import Path

import pytest

from tests.docs.ci_bench import Bench, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)
