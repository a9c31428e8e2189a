"""Commands start fast because they import only what they use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "mem_pressure" / "nvidia-smi.csv.gz"
HEAVY = ("pandas", "pyarrow", "scipy", "matplotlib", "jinja2", "mlflow", "neptune", "numpy", "typst")
NOT_FOR_ANALYSIS = ("pandas", "matplotlib", "mlflow", "neptune", "typst")

_PROBE = """
import sys
sys.argv = {argv!r}
try:
    from gpureport.cli import main
    {call}
except SystemExit as stop:
    if stop.code:
        raise
print(*sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    """Return the top-level modules a command has loaded when it ends; without arguments, those of the import."""
    call = "main()" if arguments else "pass"
    code = _PROBE.format(argv=["gpureport", *arguments], call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [(), ("--help",), ("--version",), ("compare", "--help"), ("explain", "--help")],
    ids=["import", "help", "version", "compare", "explain"],
)
def test_start_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """Importing the command line, its help and its version load no numerical, drawing or tracker library."""
    assert loaded(*arguments) & set(HEAVY) == set()


def test_analyze_loads_no_frames_and_no_charts() -> None:
    """Findings as JSON need neither pandas nor matplotlib nor a tracker."""
    assert loaded("analyze", str(SAMPLE), "--format", "json") & set(NOT_FOR_ANALYSIS) == set()


@pytest.mark.parametrize(("name", "ours"), [("OPENBLAS_NUM_THREADS", "1"), ("MIMALLOC_ALLOW_THP", "0")])
@pytest.mark.parametrize("given", [None, "3"])
def test_libraries_are_told_what_suits_small_work(name: str, ours: str, given: str | None) -> None:
    code = "import os, sys; sys.argv = ['gpureport', '--version']\nfrom gpureport.cli import main\ntry: main()\n"
    code += f"finally: print(os.environ[{name!r}])"
    environment = {other: value for other, value in os.environ.items() if other != name}
    environment |= {name: given} if given else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == (given or ours)
