"""tests/golden/messages.txt: every wording beside a code, so that a change shows as a diff.

The wordings of errors and notes are read from the syntax of the modules that make them, reasons from `doubts.toml`.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType

import gpureport

PACKAGE = Path(gpureport.__file__).parent
UNKNOWN = "…"
"""Stands for a part that is known only when the program runs."""
_HEAD = """# What gpureport says of each code; … stands for what is only known when the program runs.
# Tests and programs use the codes. Made by docs/site/make_pages.py; the diff is reviewed.
"""
_ERRORS = (
    "SourceError",
    "MissingError",
    "InvalidRequestError",
    "PlaceError",
    "StoreError",
    "UnknownRunError",
    "SettingsError",
    "RenderError",
    "wrong",
)
_ARGUMENTS = dict.fromkeys(_ERRORS, (1, 2)) | {
    "UsageError": (0,),
    "BadParameter": (0,),
    "RefusedError": (0,),
    "_report_unjudged": (1,),
}
"""The arguments of a call that say what is wrong and what to do; click's errors have one text for both."""
_PROBLEM = "Problem"
"""The type of a function's result, or of a constant, from which another function makes an error."""

Branches = frozenset[tuple[int, str]]
"""The branches that contain a line: the place of each condition, and which of its branches."""
_Assigned = dict[str, list[list[ast.expr]]]
"""The assignments to each name: one value each, or the values in a column of constants."""


def list_wordings() -> str:
    """Return the listing, one line per wording, ordered by room and code."""
    lines: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        if any(name in code for name in (*_ARGUMENTS, _PROBLEM, "code=")):
            room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            lines |= {f"{room}\t{code or '-'}\t{text}" for code, text in _Module(code).list_texts()}
    lines |= {f"analysis\t{code}\t{text}" for code, text in _list_doubts()}
    said = import_module("gpureport.trial.plan").WORDS
    texts = said["suggestion"] | {code: "; ".join(each) for code, each in said["problems"].items()}
    shown = {
        code: re.sub(r"{\w[^{}]*}", UNKNOWN, text).replace("{{", "{").replace("}}", "}") for code, text in texts.items()
    }
    lines |= {f"trial\t{code}\t{text}" for code, text in shown.items()}
    return _HEAD + "\n".join(sorted(lines)) + "\n"


def _list_doubts() -> Iterator[tuple[str, str]]:
    """Yield each code of an entry for a kind that could not be judged, with its wordings."""
    said = tomllib.loads((PACKAGE / "analysis" / "doubts.toml").read_text(encoding="utf-8"))
    for code, entries in said.items():
        cases = entries.values() if isinstance(entries, dict) else [entries]
        yield from ((code, re.sub(r"{\w+}", UNKNOWN, each[0])) for each in cases if code != "@")


class _Module:
    """The syntax tree of a module, with the texts that its names stand for."""

    def __init__(self, code: str) -> None:
        """Parse the module."""
        self._branches: dict[ast.AST, Branches] = {}
        self._names: _Assigned = {}
        self._tree = ast.parse(code)
        self._constants: _Assigned = {}
        self._constants = self._read_block(self._tree, frozenset(), functions=False)
        self._imports = dict(_import_texts(self._tree))

    def list_texts(self) -> Iterator[tuple[str, str]]:
        """Yield each code, or an empty text, with its wording."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.AnnAssign) and node.value and _PROBLEM in ast.unparse(node.annotation):
                yield from self._read_pairs(node.value)
            elif isinstance(node, ast.FunctionDef):
                self._names = self._constants | self._read_block(node, frozenset())
                yield from self._read_function(node)

    def _read_block(self, parent: ast.AST, branches: Branches, *, functions: bool = True) -> _Assigned:
        """Note the branches of everything below a node, and return the assignments to each name there."""
        assigned: _Assigned = {}
        for field, content in ast.iter_fields(parent):
            inside = branches | {(id(parent), field)} if isinstance(parent, ast.If) and field != "test" else branches
            for node in content if isinstance(content, list) else [content]:
                if not isinstance(node, ast.AST) or (isinstance(node, ast.FunctionDef) and not functions):
                    continue
                self._branches[node] = inside
                below = self._read_block(node, inside, functions=functions)
                for name, values in [*self._assignments(node), *below.items()]:
                    assigned.setdefault(name, []).extend(values)
        return assigned

    def _assignments(self, node: ast.AST) -> Iterator[tuple[str, list[list[ast.expr]]]]:
        """Yield what a line assigns to a name; a loop over rows of constants assigns a column of them."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, [[value]]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, [[value]]
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=True)
                yield from ((each.id, [[value]]) for each, value in pairs if isinstance(each, ast.Name))
            case ast.For(target=ast.Tuple(elts=names), iter=ast.Name(id=rows)) if rows in self._constants:
                table = [row for (value,) in self._constants[rows] for row in getattr(value, "elts", ())]
                for place, target in enumerate(names):
                    cells = [row.elts[place] for row in table if isinstance(row, ast.Tuple) and place < len(row.elts)]
                    if isinstance(target, ast.Name):
                        yield target.id, [cells]

    def _read_function(self, function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
        returns_problem = function.returns is not None and _PROBLEM in ast.unparse(function.returns)
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None and returns_problem:
                yield from self._read_pairs(node.value)
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                places = _ARGUMENTS.get(name, ())
                named = {each.arg: each.value for each in node.keywords}
                code = named.get("code", named.get("reason_code"))
                if places and len(node.args) > places[-1]:
                    what, *hint = (node.args[place] for place in places)
                    yield from self._pair(what, hint[0] if hint else None, code)
                elif code is not None and (text := named.get("template", named.get("reason", named.get("text")))):
                    yield from self._pair(text, code=code)

    def _read_pairs(self, value: ast.expr) -> Iterator[tuple[str, str]]:
        """Yield each problem and hint in an expression, with the code if there is one."""
        for node in ast.walk(value):
            if isinstance(node, ast.Tuple) and len(node.elts) in {2, 3}:
                yield from self._pair(*node.elts)

    def _pair(
        self, what: ast.expr, hint: ast.expr | None = None, code: ast.expr | None = None
    ) -> Iterator[tuple[str, str]]:
        codes = " or ".join(sorted({*self._resolve(code)} - {UNKNOWN})) if code else ""
        for text, advice in product(self._resolve(what), self._resolve(hint) if hint else [""]):
            if re.search("[A-Za-z]{2}", text):
                yield codes, "; ".join(filter(None, (text, advice)))

    def _resolve(  # noqa: PLR0911 - a case for each form of an expression
        self, value: ast.expr, above: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the possible texts of an expression; `above` are the names that led to it."""
        match value:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return self._join(parts, above)
            case ast.BinOp(left=left, right=right):
                return self._join([left, right], above)
            case ast.IfExp(body=body, orelse=orelse):
                return self._resolve(body, above) + self._resolve(orelse, above)
            case ast.BoolOp(values=values):
                return [text for each in values for text in self._resolve(each, above)]
            case ast.FormattedValue(value=ast.Name() | ast.Attribute() as constant):
                return self._resolve(constant, above)
            case ast.Name(id=name) if name in self._names and name not in above:
                texts = [text for each in self._list_values(value) for text in self._resolve(each, (*above, name))]
                return texts or [UNKNOWN]
            case _:
                return [self._imports.get(ast.unparse(value), UNKNOWN)]

    def _list_values(self, name: ast.Name) -> list[ast.expr]:
        """Return the possible values of a name: the last assignment before it, and any in a branch after that."""
        constants = self._constants.get(name.id, [])
        assigned = [each for each in self._names[name.id] if each in constants or each[0].lineno < name.lineno]
        certain = [n for n, values in enumerate(assigned) if self._branches[values[0]] <= self._branches[name]]
        return [value for values in assigned[certain[-1] if certain else 0 :] for value in values]

    def _join(self, parts: list[ast.expr], above: tuple[str, ...]) -> list[str]:
        """Return the possible texts of consecutive parts."""
        return ["".join(each) for each in product(*(self._resolve(part, above) for part in parts))]


def _import_texts(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the texts that a module imports, by their names in it."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpureport"):
            source = import_module(node.module or "")
            for each in node.names:
                known = hasattr(source, each.name)
                value = getattr(source, each.name) if known else import_module(f"{node.module}.{each.name}")
                constants = vars(value).items() if isinstance(value, ModuleType) else ()
                texts = [(f"{each.name}.{name}", text) for name, text in constants if name.isupper()]
                yield from ((name, text) for name, text in [*texts, (each.name, value)] if isinstance(text, str))
