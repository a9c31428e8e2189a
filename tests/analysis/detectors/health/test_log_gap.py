"""Stretches without samples."""

import numpy as np
import pytest

from gpureport.testing import Severity, analyze, found, recording, spans, steps


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


def test_shorter_pauses_and_coverage_agree_with_the_gap() -> None:
    """What samples do not own is a gap or a pause: 19 s and 2 x 1.5 s of 169 s."""
    times = [*range(50), *range(53, 100), *range(103, 150), *range(169, 200)]
    made = analyze(recording(util=[steps((97, len(times)))], times=times))
    (finding,) = found(made, "log_gap")
    assert "missing, 10% of the run. 2 shorter pauses between samples left another 3 s uncovered." in finding.summary
    assert made.pauses is not None
    assert (made.pauses.count, made.pauses.longest_seconds, made.pauses.seconds) == (2, 4.0, 3.0)
    unowned = made.pauses.seconds + 20 - 1
    assert made.coverage_ratio == pytest.approx(1 - unowned / 199)


@pytest.mark.parametrize(
    ("every", "words"), [(1.0, "5 s, more than 3.5 intervals of 1 s"), (3.0, "3.5 intervals of 3 s")]
)
def test_the_limit_that_held_is_named(every: float, words: str) -> None:
    """Of 5 s and 3.5 intervals the longer one."""
    times = np.r_[0:50, 80:130] * every
    (finding,) = found(analyze(recording(util=[steps((97, 100))], times=times, every=every)), "log_gap")
    threshold = finding.evidence[0].threshold
    assert threshold is not None
    assert threshold.source.startswith(words)


def test_one_sample_of_each_gpu_covers_nothing_that_could_be_told() -> None:
    """Read one after the other, they give the run a length, and own none of it."""
    run = recording(util=[[50.0, 50.0], [50.0, 50.0]], times=[0.0, 0.2])
    series = run.series.take([0, 3])
    assert analyze(run.with_series(series)).coverage_ratio is None
