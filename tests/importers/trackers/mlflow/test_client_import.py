"""MLflow's own client, loaded where only it will do."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_CALL = """
from gpureport.importers.trackers.mlflow.server.client_store import import_mlflow
import_mlflow()
from mlflow.telemetry import get_telemetry_client
assert get_telemetry_client() is None
"""


def test_nothing_is_sent_about_the_use_of_the_client() -> None:
    subprocess.run([sys.executable, "-c", _CALL], check=True, env={"PATH": ""}, timeout=120)
