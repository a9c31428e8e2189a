"""Options every test may use, and what runs beside what."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tests.recorder.stand_in import install_stand_in
from tests.support.program import Program, program

settings.register_profile("side by side", deadline=None)
# how long an example takes says nothing while other tests run
settings.load_profile("side by side")

_LONG = ("tracker", "browser", "producers", "packaging", "stress", "corpus")
"""Marks of tests with real parts, which take longest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite expected files and generated pages from what the code gives now; review the diff",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with real parts as slow; they begin, so that at the end no process waits."""
    for item in items:
        missing = [name for name in _list_needs(item) if find_spec(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))
    real = {item for item in items if any(item.get_closest_marker(name) for name in _LONG)}
    for item in real:
        item.add_marker("slow")
    items.sort(key=lambda item: item not in real)


def _list_needs(item: pytest.Item) -> Iterator[str]:
    if item.get_closest_marker("browser"):
        yield "playwright"
    for mark in item.iter_markers("needs"):
        yield from mark.args


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The program, run in this process and in the folder of the test."""
    return program(capsys, monkeypatch, tmp_path)


@pytest.fixture
def stand_in_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in for nvidia-smi on PATH, which plays the log that STAND_IN_LOG names; return its path."""
    program = install_stand_in(tmp_path / "driver")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program
