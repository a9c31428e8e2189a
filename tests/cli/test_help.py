"""The help of each command, as a newcomer meets it."""

import re

import click
import pytest

from gpureport.cli.main import COMMANDS
from gpureport.cli.main import gpureport as program_group
from tests.cli.program import Program

WIDTH, USUAL = 80, 10
ASKED = ("--help", "--help-all")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_gives_an_example_and_fits_a_terminal(gpureport: Program, name: str) -> None:
    lines = gpureport(name, "--help").out.splitlines()
    begin = " ".join(line.strip() for line in lines[: lines.index("Options:")])
    assert f"Example: gpureport {name}" in begin or name == "completion"
    assert "Example: " in begin
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize(("name", "count"), [("report", 48), ("analyze", 45), ("check", 46), ("runs", 1)])
def test_help_lists_the_usual_options_and_help_all_the_rest(gpureport: Program, name: str, count: int) -> None:
    shown = (gpureport(name, asked).out.partition("Options:\n")[2] for asked in ASKED)
    usual, every = (re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE) for text in shown)
    own = {"--help", "--help-all"}
    assert len(set(usual) - own) <= USUAL
    assert set(usual) <= set(every)
    assert len(set(every) - own) >= count


def test_commands_come_in_the_order_of_use() -> None:
    names = program_group.list_commands(click.Context(program_group))
    first = ["record", "report", "analyze", "compare", "check", "nightly", "fleet"]
    assert names[: len(first)] == first
