"""The same input gives the same bytes, whatever the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.report import FORMATS
from tests.report import sample_reports

_SEEDS = ("0", "1", "4242")


def written(folder: Path, seed: str) -> dict[str, bytes]:
    """Return every format of one command, made by a process of its own."""
    names = [f"report{extension}" for extension in sorted(FORMATS)]
    outputs = [part for name in names for part in ("-o", str(folder / name))]
    sources = [str(sample_reports.SAMPLES / name) for name in sample_reports.CHAIN]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000", "TZ": f"UTC{seed[0]}"}
    command = [sys.executable, "-m", "gpureport", "report", *sources, *outputs, "--title", "steps"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.slow
def test_same_bytes_whatever_the_hash_seed_and_the_zone(tmp_path: Path) -> None:
    """Three processes with other hashes and zones write the same bytes in every format."""
    first, *others = (written(tmp_path / seed, seed) for seed in _SEEDS)
    assert len(first) == len(FORMATS)
    assert all(first.values())
    for other in others:
        assert [name for name, content in first.items() if other[name] != content] == []
