"""The notebook of the tutorial runs from its first cell to its last, and shows what is stored in it."""

import copy
import os
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.docs.notebook import read_notebook, run_notebook, show_text, write_notebook
from tests.docs.page_runner import ROOT

PAGE = ROOT / "docs" / "tutorial" / "python.ipynb"


@pytest.mark.slow
def test_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, update_golden: bool) -> None:
    """Every cell succeeds and prints what the page shows; --update-golden rewrites that."""
    folder = tmp_path / "docs" / "tutorial"
    folder.mkdir(parents=True)
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    mpl.use("Agg")
    stored = read_notebook(PAGE)
    made = run_notebook(copy.deepcopy(stored))
    if update_golden:
        write_notebook(made, PAGE)
        stored = made
    assert show_text(made) == show_text(stored)
