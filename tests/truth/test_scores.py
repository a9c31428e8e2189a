"""A suite of labelled runs of many textures, and how well the findings must agree with the labels."""

from pathlib import Path

import pytest

from tests.truth import suite

_TIME_AND_EVENTS = {
    "idle_gap": (0.95, 0.95),
    "startup_idle": (0.95, 0.95),
    "tail_idle": (0.95, 0.95),
    "thermal_throttle": (0.97, 0.9),
    "hw_throttle": (0.97, 0.9),
    "throttle_any": (0.97, 0.9),
    "cpu_bound": (0.95, 0.85),
    "io_bound": (0.95, 0.85),
    "hollow_util": (0.95, 0.85),
    "imbalance": (0.95, 0.85),
    "slow_gpu": (0.9, 0.9),
    "log_gap": (1.0, 1.0),
}
"""Least agreement of times and of events, for kinds that are scored by time."""
_NEVER_WRONG = ("mem_leak", "mem_pressure", "mem_prealloc", "pcie_degraded", "ecc_error", "zombie_memory", "unused_gpu")


def test_findings_agree_with_the_labels(tmp_path: Path) -> None:
    scores = suite.scored(tmp_path, suite.small(), 11)
    for name, (time, events) in _TIME_AND_EVENTS.items():
        tally = scores.spans[name]
        assert tally.events > 0, name
        assert (tally.time_f1 or 0.0) >= time, (name, tally.missed_in, tally.extra_in)
        assert (tally.event_f1 or 0.0) >= events, (name, tally.missed_in, tally.extra_in)
    wrong = {kind: (scores.whole[kind].missed, scores.whole[kind].extra) for kind in _NEVER_WRONG}
    assert wrong == dict.fromkeys(_NEVER_WRONG, ([], []))
    changed = scores.whole["unexplained_change"]
    assert (changed.missed, changed.extra) == ([], [])
    assert scores.whole["periodic_stall"].missed == []
    assert len(scores.whole["periodic_stall"].extra) <= 1
    assert scores.traps >= 3
    assert scores.alarms == []


@pytest.mark.slow
def test_nothing_is_a_problem_where_nobody_has_to_act(tmp_path: Path) -> None:
    scores = suite.scored(tmp_path, [(name, 5.0) for name in suite.SCENARIOS], 1)
    assert scores.traps > 10
    assert scores.alarms == []
