"""Work of the other GPUs in gaps, all gaps at once: as one gap after the other by the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.detectors.idle import busy_peers
from gpureport.analysis.detectors.idle.busy_peers import PeerActivity, compute_medians_outside, find_peer_activity
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries, series_by_device
from gpureport.testing import Interval, at, recording

UTIL, POWER = "gpu_utilization_ratio", "gpu_power_watts"
_SECONDS = 200


def measure_one_gap(others: list[DeviceSeries], gap: Interval) -> PeerActivity | None:
    """Return what others did in a gap, by the definition."""
    worked, means, ratios = [-1.0], [], [-np.inf]
    for one in others:
        busy = intervals.rows_to_spans(one.start, one.end, one.values(UTIL) > 0.12) - one.shift
        worked.append(intervals.total_seconds(intervals.intersection(busy, intervals.to_spans([gap]))))
        inside = one.rows_between(gap.start + one.shift, gap.end + one.shift)
        used, power = one.values(UTIL), one.values(POWER)
        outside = np.ones(len(one), dtype=np.bool_)
        outside[inside] = False
        working = power[outside & (used > 0.5) & (power > 0)]
        known, drawn = used[inside][~np.isnan(used[inside])], power[inside][~np.isnan(power[inside])]
        means += [float(known.mean())] if len(known) else []
        ratios.append(float(drawn.mean() / np.median(working)) if len(drawn) and len(working) else np.nan)
    if gap.seconds < 60 or max(worked) < 0.9 * gap.seconds:
        return None
    return PeerActivity(utilisation=min(means, default=0.0), power_ratio=float(np.max(ratios)))


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05]))
def test_every_gap_is_judged_as_one_alone(seed: int, missing: float) -> None:
    """Of three GPUs, for gaps of two of them."""
    chance = np.random.default_rng(seed)
    util = np.where(chance.random((3, _SECONDS // 20)).repeat(20, 1) < 0.8, chance.integers(60, 101, (3, _SECONDS)), 0)
    power = np.where(chance.random((3, _SECONDS)) < missing, np.nan, 60 + 3 * util + chance.integers(0, 9, util.shape))
    devices = series_by_device(recording(util=util, power=power))
    edges = np.sort(chance.integers(0, _SECONDS, (6, 2)), axis=1) + chance.random((6, 2)).round(3)
    gaps = [Interval(at(start), at(max(start, end))) for start, end in edges]
    by_device = {"gpu:0": gaps[:4], "gpu:2": gaps[4:]}
    activities = find_peer_activity(devices, by_device, 0.12)
    for device, own in by_device.items():
        others = [one for name, one in devices.items() if name != device]
        expected = [measure_one_gap(others, gap) for gap in own]
        for found, wanted in zip(activities[device], expected, strict=True):
            assert (found is None) == (wanted is None)
            if found and wanted:
                assert found.utilisation == pytest.approx(wanted.utilisation, rel=1e-12)
                assert found.power_ratio == pytest.approx(wanted.power_ratio, rel=1e-12, nan_ok=True)


@given(
    st.lists(st.integers(0, 9), max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8),
    st.sampled_from([1, 7, 2**20]),
)
def test_medians_outside_stretches_are_those_of_what_is_left(
    numbers: list[int], edges: list[tuple[int, int]], most: int
) -> None:
    """However many rows are looked at together."""
    values = np.array(numbers, dtype=np.float64)
    rows = np.sort(np.array(edges, dtype=np.int64).reshape(-1, 2), axis=1).clip(0, len(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(busy_peers, "_MOST_ROWS", most)
        medians = compute_medians_outside(values, rows[:, 0], rows[:, 1])
    left = [np.delete(values, np.s_[start:stop]) for start, stop in rows]
    assert medians.tolist() == pytest.approx([np.median(one) if len(one) else np.nan for one in left], nan_ok=True)
