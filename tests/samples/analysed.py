"""Analyses of the generated samples, as JSON."""

import io
import json
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpureport.cli.main import main
from tests.samples.scenarios import SCENARIOS

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FOLDERS = sorted(scenario.folder for scenario in SCENARIOS)


@cache
def analyzed(folder: str) -> dict[str, Any]:
    """Return the analysis of a sample log as `analyze --format json` writes it."""
    (scenario,) = (each for each in SCENARIOS if each.folder == folder)
    beside = ((f"--{name}", SAMPLES / folder / f"{name}.csv") for name in ("host", "training"))
    options = [word for option, path in beside if path.exists() for word in (option, str(path))]
    written = io.StringIO()
    with redirect_stdout(written), pytest.raises(SystemExit, match=r"^0$"):
        main(["analyze", str(SAMPLES / folder / scenario.log), *options, *scenario.options, "--format", "json"])
    run: dict[str, Any] = json.loads(written.getvalue())["runs"][0]
    return run
