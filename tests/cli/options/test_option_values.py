"""What was typed for an option, read or refused."""

import click
import pytest

from gpureport.cli.options.option_values import Detail, Indices, JobNumber
from gpureport.cli.options.param_type import ParamType


@pytest.mark.parametrize("kind", [Indices(), JobNumber(), Detail()])
def test_a_number_without_end_is_refused(kind: ParamType[object]) -> None:
    """Python refuses to read more than some thousands of digits, with an error of its own."""
    with pytest.raises(click.BadParameter, match="is n"):
        kind.convert("9" * 5000, None, None)


def test_whatever_spaces_part_numbers() -> None:
    """Python takes some characters for space when it strips a text, and not when it reads a number."""
    assert Indices().convert("\x1e0, 2", None, None) == (0, 2)
