"""Runs the cells of a notebook without Jupyter, in one namespace; the last expression of a cell is shown.

`python docs/site/make_pages.py --notebook` writes what they show into docs/tutorial/python.ipynb.
"""

import ast
import base64
import contextlib
import copy
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl

Notebook = dict[str, Any]


def show_notebook(path: Path) -> str:
    """Return a notebook with the current outputs of its cells, in the form that Jupyter writes.

    Pictures are kept while the text beside them is the same: their bytes differ between versions of matplotlib.
    """
    stored: Notebook = json.loads(path.read_text(encoding="utf-8"))
    mpl.use("Agg")
    with contextlib.chdir(path.parent):
        made = run_notebook(copy.deepcopy(stored))
    made = stored if show_text(made) == show_text(stored) else made
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def run_notebook(notebook: Notebook) -> Notebook:
    """Run each code cell in order and replace its outputs; any error is raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        cell["execution_count"] = number
        cell["outputs"] = _run_cell("".join(cell["source"]), names, number)
    return notebook


def show_text(notebook: Notebook) -> list[str]:
    """Return the text that each code cell shows."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join("".join(out.get("text") or out["data"]["text/plain"]) for out in cell["outputs"]) for cell in cells]


def _run_cell(source: str, names: dict[str, Any], number: int) -> list[Notebook]:
    """Run one cell and return its outputs: the printed text, and the last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - a notebook of this project
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None  # noqa: S307 - as above
    outputs: list[Notebook] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = _picture(value) or {"text/plain": _lines(repr(value))}
        outputs.append({"output_type": "execute_result", "metadata": {}, "execution_count": number, "data": data})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _picture(value: object) -> Notebook | None:
    """Return a matplotlib figure as PNG."""
    if not hasattr(value, "savefig"):
        return None
    image = io.BytesIO()
    value.savefig(image, format="png", dpi=72, metadata={"Software": None})
    return {"text/plain": ["<Figure>"], "image/png": base64.b64encode(image.getvalue()).decode()}
