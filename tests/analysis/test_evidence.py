"""Evidence is evidence: a value that is shown with a limit stands to it as the finding says."""

from collections.abc import Iterator
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport.testing import Analysis, Floats, Recording, analyze, recording, steps
from tests.truth import suite

SAMPLES = Path(__file__).parents[2] / "sample_logs"
LOGS = sorted(path for name in ("nvidia-smi.csv", "nvidia-smi.csv.gz") for path in SAMPLES.rglob(name))
_RELATIONS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_LEVELS: dict[str, list[float]] = {
    "util": [0, 3, 30, 55, 79, 97],
    "memory": [0.4, 5, 30, 70, 77],
    "power": [60, 150, 250, 390, 399],
    "temperature": [40, 60, 84, 88, 92],
    "clock": [345, 1050, 1300, 1380, 1410],
    "sm_active": [1, 10, 60],
    "received": [0, 5, 15, 22, 30],
    "sw_power_cap": [0, 1],
    "sw_thermal_slowdown": [0, 1],
    "hw_slowdown": [0, 1],
    "applications_clocks_setting": [0, 1],
    "cpu": [5, 30, 70, 76, 90, 97],
    "core": [10, 60, 95, 99],
    "iowait": [0, 5, 14, 16, 50],
    "host_memory": [30, 65, 72, 88, 93],
}
_BITS = {name for name, levels in _LEVELS.items() if levels == [0, 1]}
_HOST = ("core", "iowait", "host_memory")


def contradictions(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    """Yield every value with a limit that it does not meet, or without a word on how it stands to it."""
    for finding in analysis.findings:
        for one in finding.evidence:
            if one.threshold is None:
                assert not one.relation
            elif one.relation not in _RELATIONS or not _RELATIONS[one.relation](one.observed, one.threshold.value):
                yield finding.kind, one.metric, one.statistic, one.observed, one.relation, one.threshold.value


def read(log: Path) -> Recording:
    host = log.parent / "host.csv"
    (found,) = gpureport.read(log, host=[host] if host.exists() else [])
    return found


def test_in_every_sample() -> None:
    assert [(log, each) for log in LOGS for each in contradictions(analyze(read(log)))] == []


def test_in_labelled_runs(tmp_path: Path) -> None:
    runs = [tmp_path / truth["run"] / "nvidia-smi.csv" for truth in suite.write(tmp_path, suite.small(), 3)]
    assert [each for log in runs for each in contradictions(analyze(read(log)))] == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_in_random_recordings(seed: int) -> None:
    chance = np.random.default_rng(seed)
    assert [each for _ in range(25) for each in contradictions(analyze(_random(chance)))] == []


def _random(chance: np.random.Generator) -> Recording:
    rows, gpus, every = (int(chance.integers(*ends)) for ends in ((60, 700), (1, 4), (1, 4)))
    drawn = ["util", *(name for name in _LEVELS if name not in {"util", "cpu", *_HOST} and chance.random() < 0.5)]
    series: dict[str, Any] = {name: np.array([_series(name, rows, chance) for _ in range(gpus)]) for name in drawn}
    known = {"power_limit": 400, "clock_max": 1410, "default_limit": 500, "link_generation": 4, "link_width": 16}
    series |= {name: np.array(value) for name, value in known.items() if chance.random() < 0.5}
    if chance.random() < 0.3:
        return recording(every=every, **series)
    host = {name: _series(name, rows * every, chance) for name in _HOST if chance.random() < 0.6}
    return recording(every=every, cpu=_series("cpu", rows * every, chance), host=host, **series)


def _series(name: str, rows: int, chance: np.random.Generator) -> Floats:
    parts = [(float(chance.choice(_LEVELS[name])), int(length)) for length in chance.integers(3, 150, rows // 3 + 1)]
    values = steps(*parts)[:rows]
    noise = 0.0 if name in _BITS else float(chance.choice([0, 0, 1, 5]))
    return np.clip(values + chance.normal(0, noise, rows), 0, 100 if max(_LEVELS[name]) <= 100 else None)
