"""Stretches without samples."""

import numpy as np

from gpureport.analysis import analyze
from gpureport.findings import Severity
from tests.builders import found, recording, spans, steps


def test_gaps_all_gpus_share_are_one_finding() -> None:
    """Each gap is an interval of it; no GPU time is said to be lost."""
    times = [*range(100), *range(150, 250), *range(270, 370)]
    util = steps((97, 300))
    (finding,) = found(analyze(recording(util=[util, util], times=times)), "log_gap")
    assert (finding.devices, spans(finding)) == ((), [(99.0, 150.0), (249.0, 270.0)])
    assert (finding.lost_gpu_seconds, finding.severity) == (None, Severity.INFO)


def test_jitter_is_no_gap() -> None:
    """Samples up to 2.6 intervals late are normal."""
    times = np.cumsum(np.tile([5, 5, 5, 13], 30))
    assert found(analyze(recording(util=steps((97, 120)), times=times, every=5.0)), "log_gap") == []
