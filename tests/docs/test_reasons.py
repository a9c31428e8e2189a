"""Every reason for which a line is rejected is explained, and none is written anywhere but in the list."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gpureport.importers.protocol import reject_reasons
from gpureport.importers.protocol.reject_reasons import REASONS

ROOT = Path(__file__).parents[2]
_TAKERS = {"drop", "reject", "_reject", "_reject_rows", "Rejected", "OddLine"}
"""Calls that are handed a reason."""


def test_every_reason_is_in_the_table() -> None:
    """The how-to on reading logs has one row a reason, in the order of the list."""
    page = (ROOT / "docs" / "how-to" / "read-logs.md").read_text(encoding="utf-8")
    table = page.partition("| reason | what it means |")[2].partition("\n\n")[0]
    named = [name.removesuffix(" …") for name in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]
    assert named == list(REASONS)


def test_the_list_holds_every_constant() -> None:
    """No reason is left out of the list."""
    constants = [value for name, value in vars(reject_reasons).items() if name.isupper() and isinstance(value, str)]
    assert sorted(constants) == sorted(REASONS)


def _texts(given: ast.expr) -> Iterator[str]:
    """Yield the texts an expression is made of where it stands, the values it takes from elsewhere left out."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        yield given.value
    elif isinstance(given, ast.JoinedStr):
        yield from (text for part in given.values for text in _texts(part))
    elif isinstance(given, ast.IfExp):
        yield from (text for part in (given.body, given.orelse) for text in _texts(part))


def _written(module: Path) -> Iterator[str]:
    """Yield the texts that are handed on as a reason where they stand, instead of a name of the list."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _TAKERS:
            given = [*node.args, *(each.value for each in node.keywords)]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "faults":
            given = [node.slice]
        else:
            given = []
        yield from (text for each in given for text in _texts(each))


def test_no_reason_is_written_elsewhere() -> None:
    """Importers take every reason from the list."""
    modules = sorted((ROOT / "gpureport" / "importers").rglob("*.py"))
    written = {text for module in modules for text in _written(module) if text.strip()}
    assert written == set()
