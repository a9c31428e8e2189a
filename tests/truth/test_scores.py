"""A suite of labelled runs of many textures, and how well the findings must agree with the labels."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpureport.analysis import RULES
from gpureport.testing import Severity
from tests.truth import suite
from tests.truth.reading import Found
from tests.truth.scoring import SPANS, WHOLE, Scores
from tests.truth.suite import scored

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
    "log_gap": (1.0, 1.0),
}
"""Least agreement of times and of events, for kinds that are scored by time; a kind without a rule is not asked for."""
_NEVER_WRONG = ("mem_leak", "mem_pressure", "mem_prealloc", "pcie_degraded", "ecc_error", "zombie_memory", "unused_gpu")
_JUDGED = {kind for rule in RULES for kind in rule.kinds}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """Scores of the small suite."""
    return scored(tmp_path_factory.mktemp("runs"), suite.small(), 11)


@pytest.mark.parametrize("name", [name for name in _TIME_AND_EVENTS if name in {*_JUDGED, "throttle_any"}])
def test_times_and_events_agree_with_the_labels(scores: Scores, name: str) -> None:
    """What is found where it was made to happen, and nowhere else."""
    tally, (time, events) = scores.spans[name], _TIME_AND_EVENTS[name]
    assert tally.events > 0
    assert (tally.time_f1 or 0.0) >= time, (tally.missed_in, tally.extra_in)
    assert (tally.event_f1 or 0.0) >= events, (tally.missed_in, tally.extra_in)


@pytest.mark.parametrize("kind", [kind for kind in _NEVER_WRONG if kind in _JUDGED])
def test_facts_of_the_whole_run_are_neither_missed_nor_invented(scores: Scores, kind: str) -> None:
    """Growth, pressure and faults are said of the runs they are in, and of no other."""
    assert (scores.whole[kind].missed, scores.whole[kind].extra) == ([], [])


@pytest.mark.skipif("periodic_stall" not in _JUDGED, reason="no rule finds it")
def test_pauses_that_recur_are_found(scores: Scores) -> None:
    """Every run with checkpoints says so, and at most one other."""
    assert scores.whole["periodic_stall"].missed == []
    assert len(scores.whole["periodic_stall"].extra) <= 1


def test_no_problem_where_nobody_has_to_act(scores: Scores) -> None:
    """Steady training, a service with requests, and memory that follows the longest batch."""
    assert scores.traps >= 3
    assert scores.alarms == []


def test_a_seed_gives_the_same_files(tmp_path: Path) -> None:
    """Labels and logs are the same to the byte, and others with another seed."""
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    for folder, seed in ((first, 5), (again, 5), (other, 6)):
        folder.mkdir()
        suite.write(folder, [("torn_log", 1.0)], seed)
    names = ("torn_log-1s/nvidia-smi.csv", "torn_log-1s/host.csv", "truth.json")
    assert all((first / name).read_bytes() == (again / name).read_bytes() for name in names)
    assert all((first / name).read_bytes() != (other / name).read_bytes() for name in names)


def test_labels_agree_with_themselves(tmp_path: Path) -> None:
    """A reader that says what the labels say has full marks, one that says nothing has none."""
    truths = suite.write(tmp_path, [("irregular_pauses", 1.0), ("hanging_collective", 5.0)], 3)
    perfect, silent = Scores(), Scores()
    for truth in truths:
        perfect.add(truth, _said(truth))
        silent.add(truth, [])
    scored_by_time = [name for name in SPANS if perfect.spans[name].events]
    assert {"idle_gap", "startup_idle", "tail_idle", "hollow_util"} <= set(scored_by_time)
    assert {(perfect.spans[name].time_f1, perfect.spans[name].event_f1) for name in scored_by_time} == {(1.0, 1.0)}
    assert {(silent.spans[name].time_f1, silent.spans[name].event_f1) for name in scored_by_time} == {(0.0, 0.0)}


def test_what_is_invented_costs(tmp_path: Path) -> None:
    """A pause that is said of work in order counts as an event too many, and a fact of another run as well."""
    (truth,) = suite.write(tmp_path, [("steady", 1.0)], 3)
    invented = _found("idle_gap", 0, truth["t0"] + 300, truth["t0"] + 340)
    scores = Scores()
    scores.add(truth, [*_said(truth), invented, _found("mem_leak", 0, None, None)])
    assert (scores.spans["idle_gap"].extra, round(scores.spans["idle_gap"].wrong)) == (1, 40)
    assert scores.whole["mem_leak"].extra == ["steady-1s"]
    assert {"steady-1s: idle_gap", "steady-1s: mem_leak"} <= set(scores.alarms)


def test_every_scenario_is_written_with_its_labels(tmp_path: Path) -> None:
    """What is logged coarsely has labels of every kind the scorer knows, and a log that says what was recorded."""
    truths = suite.write(tmp_path, [(name, 5.0) for name in suite.SCENARIOS], 1)
    assert json.loads((tmp_path / "truth.json").read_text()) == truths
    kinds = {each["kind"] for truth in truths for each in (*truth["events"], *truth["run_level"])}
    kinds |= {f"mem_{name}" for name in ("leak", "pressure", "prealloc") if any(t["memory"][name] for t in truths)}
    assert {*SPANS, *WHOLE} - {"throttle_any"} <= kinds
    assert all((tmp_path / truth["run"] / "host.csv").exists() == bool(truth["host_interval"]) for truth in truths)


def _said(truth: Mapping[str, Any]) -> list[Found]:
    return [
        _found(each["kind"], each["gpu"], each["start"], each["end"]) for each in truth["events"] if each["resolvable"]
    ]


def _found(kind: str, gpu: int | None, start: float | None, end: float | None) -> Found:
    return Found(kind=kind, severity=Severity.PROBLEM, gpu=gpu, start=start, end=end, summary="")
