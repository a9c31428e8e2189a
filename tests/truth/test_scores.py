"""A suite of labelled runs of many textures, and how well the findings must agree with the labels."""

from pathlib import Path

import pytest

from tests.truth import suite
from tests.truth.scoring import SPANS


def test_findings_agree_with_the_labels(tmp_path: Path) -> None:
    scores = suite.scored(tmp_path, suite.small(), 11)
    for name, tally in scores.spans.items():
        *_, time, events = SPANS[name]
        assert tally.events > 0, name
        assert (tally.time_f1 or 0.0) >= time, (name, tally.missed_in, tally.extra_in)
        assert (tally.event_f1 or 0.0) >= events, (name, tally.missed_in, tally.extra_in)
    for kind, runs in scores.whole.items():
        assert runs.missed == [], kind
        assert len(runs.extra) <= (kind == "periodic_stall"), (kind, runs.extra)
    assert scores.traps >= 3
    assert scores.alarms == []


@pytest.mark.slow
def test_nothing_is_a_problem_where_nobody_has_to_act(tmp_path: Path) -> None:
    scores = suite.scored(tmp_path, [(name, 5.0) for name in suite.SCENARIOS], 1)
    assert scores.traps > 10
    assert scores.alarms == []
