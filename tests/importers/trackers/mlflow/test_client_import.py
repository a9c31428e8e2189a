"""MLflow's own client, loaded where only it will do."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_PATHS = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
_CALL = """
import gpureport
from gpureport.errors import SourceError
try:
    gpureport.read("mlflow:databricks")
except SourceError as error:
    assert error.code == "request_failed", error
from mlflow.telemetry import get_telemetry_client
assert get_telemetry_client() is None
"""


def test_nothing_is_sent_about_the_use_of_the_client() -> None:
    subprocess.run([sys.executable, "-c", _CALL], check=True, env={"PATH": ""} | _PATHS, timeout=120)
