"""How often a metric was read anew, told from when its values change."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.analysis import analyze
from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.analysis.results import Analysis, MetricSummary
from gpureport.analysis.series import refresh_interval
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Finding
from gpureport.recording import Recording
from gpureport.testing import Floats, found, recording, repeated, steps, unjudged

UTILISATION = "gpu_utilization_ratio"


def summary(run: Recording, metric: str = UTILISATION) -> MetricSummary:
    """Return the figures of one metric of the first GPU."""
    found = analyze(run).statistics[0].metric(metric)
    assert found is not None
    return found


def noise(count: int, *, low: int = 90, high: int = 99, seed: int = 0) -> Floats:
    """Return whole numbers as a busy GPU's utilisation has them."""
    return np.random.default_rng(seed).integers(low, high, count).astype(np.float64)


def test_the_period_is_the_spacing_of_changes() -> None:
    """A log of 10 ms in which utilisation is new every 200 ms and power every 100 ms."""
    run = recording(every=0.01, util=repeated(noise(300), 20), power=repeated(noise(600, high=400), 10))
    utilisation, power = summary(run), summary(run, "gpu_power_watts")
    assert (utilisation.refresh_seconds, power.refresh_seconds) == pytest.approx((0.2, 0.1))
    assert (utilisation.effective_samples, power.effective_samples) == pytest.approx((300, 600), abs=1)
    assert utilisation.samples == 6000
    assert utilisation.changes < 300
    assert utilisation.repeated_ratio == pytest.approx(1 - utilisation.changes / 5999)


def test_readings_that_happen_to_be_equal_do_not_hide_the_period() -> None:
    """Where only every third reading differs, changes are one to several periods apart."""
    moved = np.cumsum(np.random.default_rng(1).random(900) < 0.5) % 7
    figures = summary(recording(every=0.02, util=repeated(80 + moved, 10)))
    assert figures.refresh_seconds == pytest.approx(0.2, rel=0.02)
    assert figures.effective_samples == pytest.approx(900, rel=0.02)
    assert figures.changes < 600


def test_a_sampling_that_does_not_fit_the_period_finds_it() -> None:
    """Stamps fall anywhere into the period, so that changes are seen up to one interval late."""
    times = np.cumsum(np.random.default_rng(2).uniform(0.09, 0.13, 2000))
    values = noise(1000)[(times / 0.5).astype(np.int64)]
    assert summary(recording(times=times, util=values)).refresh_seconds == pytest.approx(0.5, rel=0.03)


def test_sampling_slower_than_the_refresh_tells_none() -> None:
    """At one row a second each row is a reading of its own."""
    figures = summary(recording(util=steps((0, 60), (97, 60), (0, 60))))
    assert (figures.refresh_seconds, figures.changes, figures.samples) == (None, 2, 180)
    assert figures.effective_samples == 180


def test_a_regular_job_is_no_refresh() -> None:
    """Work and pauses of 10 s each come from the job: no driver takes so long."""
    assert summary(recording(util=np.tile(steps((97, 10), (0, 10)), 30))).refresh_seconds is None


def test_values_that_move_at_any_time_have_no_period() -> None:
    """Exponential spacings hold no common one."""
    apart = np.random.default_rng(3).exponential(0.15, 2000)
    assert refresh_interval.find_refresh_period(apart, 0.007) is None


def test_a_constant_series_counts_what_the_documents_allow() -> None:
    """No change tells nothing; a utilisation value speaks of at least 1/6 s."""
    figures = summary(recording(every=0.01, util=steps((100, 6000)), model=None))
    assert (figures.changes, figures.refresh_seconds) == (0, None)
    assert figures.effective_samples == pytest.approx(360, abs=1)


def test_both_utilisations_are_read_in_one_moment() -> None:
    """One that never changes has the period of the other."""
    util = steps((100, 6000))
    figures = summary(recording(every=0.1, util=util, memory_controller=repeated(noise(600), 10), model=None))
    assert figures.refresh_seconds is None
    assert figures.effective_samples == pytest.approx(600, abs=1)


def test_a_single_row_repeats_none() -> None:
    """There is no row before it."""
    figures = summary(recording(util=[50.0]))
    assert (figures.repeated_ratio, figures.effective_samples, figures.changes) == (None, 1, 0)


def test_percentiles_do_not_weigh_repeats() -> None:
    """Half the time written twice as often as the other half: both halves count the same."""
    times = [*np.arange(0, 30, 0.1), *np.arange(30, 60, 0.2)]
    figures = summary(recording(times=times, util=steps((20, 300), (80, 150)), model=None))
    assert figures.mean == pytest.approx(0.5, abs=0.01)
    assert figures.p95 == pytest.approx(0.8)


def test_a_gap_counts_its_readings_not_its_rows() -> None:
    """Ten seconds at 200 ms are 50 readings, however often each was written."""
    util = repeated(np.concatenate([noise(150), np.zeros(50), noise(150, seed=1)]), 20)
    (gap,) = found(analyze(recording(every=0.01, util=util)), "idle_gap")
    assert gap.samples == pytest.approx(50, abs=1)


def test_one_low_reading_of_many_rows_is_bridged() -> None:
    """A stray kernel in one reading does not end a gap, whether the reading has one row or ten."""
    util = np.concatenate([noise(60), np.zeros(8), [25], np.zeros(8), noise(60, seed=1)])
    for times in (1, 10):
        run = recording(every=1 / times, util=repeated(util, times), model=None)
        (gap,) = found(analyze(run), "idle_gap")
        assert gap.lost_gpu_seconds == pytest.approx(17, abs=1)


def test_gaps_finer_than_the_refresh_are_not_judged() -> None:
    """Asked for gaps of 50 ms where a reading speaks of 200 ms, nothing that short is claimed."""
    rule = replace(IdleGap(), shortest=pragmatic(0.05, "s", "a test"))
    util = repeated(np.concatenate([noise(100), np.zeros(3), noise(100, seed=1)]), 20)
    analysis = analyze(recording(every=0.01, util=util), (rule,))
    (entry,) = unjudged(analysis, "idle_gap")
    assert "every 0.2 s" in entry.reason
    assert [gap.lost_gpu_seconds for gap in found(analysis, "idle_gap")] == [pytest.approx(0.6, abs=0.1)]


def _claims(analysis: Analysis) -> list[Finding]:
    """Return the findings in order of time; by loss, those of one length would change places."""
    return sorted(analysis.findings, key=lambda finding: (finding.kind, finding.intervals))


_PARTS = st.lists(st.tuples(st.booleans(), st.integers(60, 160)), min_size=1, max_size=6)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_PARTS, st.integers(2, 12), st.integers(0, 99))
def test_repeating_rows_changes_nothing(parts: list[tuple[bool, int]], times: int, seed: int) -> None:
    """Each reading written `times` as often tells the same: as many readings, the same findings at the same time."""
    busy = [(True, 100), *parts, (True, 100)]
    util = np.concatenate(
        [noise(count, seed=seed + place) if works else np.zeros(count) for place, (works, count) in enumerate(busy)]
    )
    power = 100 + util + noise(len(util), seed=seed)
    logs = [
        recording(every=0.2 / count, util=repeated(util, count), power=repeated(power, count), model=None)
        for count in (1, times)
    ]
    one, many = map(analyze, logs)
    for metric in (UTILISATION, "gpu_power_watts"):
        plain, fine = (summary(log, metric) for log in logs)
        assert fine.effective_samples == pytest.approx(plain.effective_samples, rel=0.03)
        assert fine.changes == plain.changes
    for before, after in zip(_claims(one), _claims(many), strict=True):
        assert (before.fingerprint, before.confidence) == (after.fingerprint, after.confidence)
        shares = [each.observed for each in before.evidence if each.statistic == "share of the job"]
        if all(abs(share - limit) > 0.005 for share in shares for limit in (0.02, 0.2)):
            assert before.severity == after.severity
        assert after.samples == pytest.approx(before.samples, rel=0.05, abs=2)
        edges = [(part.start, part.end) for part in before.intervals]
        assert [(part.start, part.end) for part in after.intervals] == [
            pytest.approx(pair, abs=300_000) for pair in edges
        ]
