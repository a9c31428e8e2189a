"""The help of each command, as a newcomer meets it."""

import click
import pytest

from gpureport.cli.main import COMMANDS
from gpureport.cli.main import gpureport as program_group
from tests.cli.program import Program

WIDTH = 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_gives_an_example_and_fits_a_terminal(gpureport: Program, name: str) -> None:
    lines = gpureport(name, "--help").out.splitlines()
    begin = " ".join(line.strip() for line in lines[: lines.index("Options:")])
    assert f"Example: gpureport {name}" in begin or name == "completion"
    assert "Example: " in begin
    assert [line for line in lines if len(line) > WIDTH] == []


def test_commands_come_in_the_order_of_use() -> None:
    names = program_group.list_commands(click.Context(program_group))
    first = ["record", "report", "analyze", "compare", "check", "nightly", "fleet"]
    assert names[: len(first)] == first
