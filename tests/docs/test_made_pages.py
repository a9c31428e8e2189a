"""Pages that are made from the code say what the code says."""

import subprocess
import sys

import pytest

from tests.docs.page_runner import ROOT


@pytest.mark.parametrize(
    "part",
    ["--check", pytest.param("--pictures", marks=pytest.mark.slow), pytest.param("--notebook", marks=pytest.mark.slow)],
)
def test_made_pages_are_up_to_date(part: str) -> None:
    words = [sys.executable, "docs/site/make_pages.py", "--check", part]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
