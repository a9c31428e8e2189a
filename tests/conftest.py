"""Options every test may use."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that accepts new expectations."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite expected files and generated pages from what the code gives now; review the diff",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are to be rewritten rather than compared with."""
    return bool(request.config.getoption("--update-golden"))
