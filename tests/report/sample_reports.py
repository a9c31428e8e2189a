"""Reports of sample logs, analysed as a person would."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import gpureport
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.testing import Analysis, Recording

SAMPLES = Path(__file__).parents[2] / "sample_logs"
CHAIN = tuple(f"input_starved/{step}" for step in ("1-baseline", "2-more-workers", "3-mixed-precision"))
SETS = {
    "one run": ("healthy",),
    "eight GPUs": ("thermal_throttle",),
    "five steps": (*CHAIN, "healthy", "underutilised"),
    "broken log": ("faulty_hardware",),
    "coarse table": ("tables",),
    "other recorder": ("dcgm",),
}
"""Folders of sample logs, by what a report on them shows."""


@cache
def runs(folder: str) -> tuple[tuple[Recording, Analysis], ...]:
    """Return every run of a folder of sample logs with its analysis."""
    found = gpureport.read(SAMPLES / folder)
    return tuple((recording, gpureport.analyze(recording)) for recording in found)


def report_on(folders: Sequence[str], price: float | None = None) -> Report:
    """Return the report on the runs of some folders, as steps."""
    found = [run for folder in folders for run in runs(folder)]
    return build(found, title=None, command="gpureport report", gpu_hour_price=price, version="0.1.0")
