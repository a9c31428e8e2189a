"""A suite of labelled runs of many textures, and how well the findings must agree with the labels."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpureport.testing import Severity
from tests.truth import suite
from tests.truth.scoring import SPANS, WHOLE, Found, Scores, found

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


def test_a_seed_gives_the_same_files(tmp_path: Path) -> None:
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    for folder, seed in ((first, 5), (again, 5), (other, 6)):
        folder.mkdir()
        suite.write(folder, [("torn_log", 1.0)], seed)
    for name in ("torn_log-1s/nvidia-smi.csv", "torn_log-1s/host.csv", "truth.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes() != (other / name).read_bytes()


def test_what_is_invented_costs_and_labels_agree_with_themselves(tmp_path: Path) -> None:
    truths = suite.write(tmp_path, [("irregular_pauses", 1.0), ("hanging_collective", 5.0)], 3)
    perfect, silent = Scores(), Scores()
    for truth in truths:
        perfect.add(truth, _said(truth))
        silent.add(truth, [])
    scored_by_time = [name for name in SPANS if perfect.spans[name].events]
    assert {"idle_gap", "startup_idle", "tail_idle", "hollow_util"} <= set(scored_by_time)
    for scores, marks in ((perfect, (1.0, 1.0)), (silent, (0.0, 0.0))):
        assert {(scores.spans[name].time_f1, scores.spans[name].event_f1) for name in scored_by_time} == {marks}
    (truth,) = suite.write(tmp_path, [("steady", 1.0)], 3)
    invented = _found("idle_gap", 0, truth["t0"] + 300, truth["t0"] + 340)
    scores = Scores()
    scores.add(truth, [*_said(truth), invented, _found("mem_leak", 0, None, None)])
    assert (scores.spans["idle_gap"].extra, round(scores.spans["idle_gap"].wrong)) == (1, 40)
    assert scores.whole["mem_leak"].extra == ["steady-1s"]
    assert {"steady-1s: idle_gap", "steady-1s: mem_leak"} <= set(scores.alarms)


@pytest.mark.slow
def test_every_scenario_is_written_with_its_labels(tmp_path: Path) -> None:
    truths = suite.write(tmp_path, [(name, 5.0) for name in suite.SCENARIOS], 1)
    assert json.loads((tmp_path / "truth.json").read_text()) == truths
    kinds = {each["kind"] for truth in truths for each in (*truth["events"], *truth["run_level"])}
    kinds |= {f"mem_{name}" for name in ("leak", "pressure", "prealloc") if any(t["memory"][name] for t in truths)}
    assert {*SPANS, *WHOLE} - {"throttle_any"} <= kinds
    assert all((tmp_path / truth["run"] / "host.csv").exists() == bool(truth["host_interval"]) for truth in truths)
    scores = Scores()
    for truth in truths:
        scores.add(truth, found(tmp_path / truth["run"]))
    assert scores.traps > 10
    assert scores.alarms == []


def _said(truth: Mapping[str, Any]) -> list[Found]:
    return [
        _found(each["kind"], each["gpu"], each["start"], each["end"]) for each in truth["events"] if each["resolvable"]
    ]


def _found(kind: str, gpu: int | None, start: float | None, end: float | None) -> Found:
    return Found(kind=kind, severity=Severity.PROBLEM, gpu=gpu, start=start, end=end)
