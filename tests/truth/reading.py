"""What gpureport finds in a labelled run, as the scorer compares it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gpureport
from gpureport.testing import Finding, Run, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One stretch of one finding on one GPU, in seconds since the epoch."""

    kind: str  # kind of the finding
    severity: Severity  # how much it matters
    gpu: int | None  # index; None when the whole job is meant
    start: float | None  # begin; None when the whole run is meant
    end: float | None  # end


def found(folder: Path) -> list[Found]:
    """Return what is found in the files of one run, through its importers."""
    beside = folder / "host.csv"
    (recording,) = gpureport.read(folder / "nvidia-smi.csv", host=[beside] if beside.exists() else [])
    analysis = gpureport.analyze(recording)
    return [each for finding in analysis.findings for each in _stretches(finding, analysis.run)]


def _stretches(finding: Finding, run: Run) -> Iterator[Found]:
    indices = {gpu.id: gpu.index for gpu in run.gpus}
    spans: list[tuple[float | None, float | None]]
    spans = [(part.start / 1e6, part.end / 1e6) for part in finding.intervals] or [(None, None)]
    for gpu in [indices.get(device) for device in finding.devices] or [None]:
        for start, end in spans:
            yield Found(
                kind=finding.kind,
                severity=finding.severity,
                gpu=gpu,
                start=start,
                end=end,
            )
