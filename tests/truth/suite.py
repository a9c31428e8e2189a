"""Labelled runs on disk: scenarios played, logged and written with their truth beside them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any
from zlib import crc32

import numpy as np

from tests.truth import labels, readings, scenarios
from tests.truth.physics import STEP, course, used
from tests.truth.scoring import Scores, found
from tests.truth.script import A100, CARDS, H100, TICK, V100, Script, Setting, blocks, busy

Scenario = Callable[[Setting], Script]
SCENARIOS: dict[str, Scenario] = {
    name: each
    for name, each in vars(scenarios).items()
    if isinstance(each, FunctionType) and each.__module__ == scenarios.__name__ and each is not scenarios.served
} | scenarios.PLAIN
_DATA_CENTRE = ("hanging_collective", "full_memory")


def small() -> list[tuple[str, float]]:
    names = "steady requests longest_batch starved_by_cpu checkpoints irregular_pauses failing_fan power_brake "
    names += "hanging_collective unused leak torn_log starved_by_storage one_rank_waits full_memory preallocated "
    names += "stale_process narrow_link memory_errors slow_card unsaid_slowdown"
    return [(name, 1.0) for name in names.split()]


def scored(folder: Path, runs: Iterable[tuple[str, float]], seed: int) -> Scores:
    """Write runs, analyse them, and return how well the findings agree with the labels."""
    scores = Scores()
    for name, interval in runs:
        truth = _write_run(folder, name, interval, seed)
        scores.add(truth, found(folder / truth["run"]))
    return scores


def _write_run(folder: Path, name: str, interval: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, crc32(name.encode()), round(interval * 10)])
    chosen = (A100, H100, V100) if name in _DATA_CENTRE else CARDS
    setting = Setting(interval=interval, card=chosen[int(rng.integers(len(chosen)))], rng=rng)
    script = replace(SCENARIOS[name](setting), card=setting.card, interval=interval)
    run = f"{name}-{interval:g}s"
    return log(folder / run, script, rng) | {"run": run}


def log(folder: Path, script: Script, rng: np.random.Generator) -> dict[str, Any]:
    """Play a run and write its logs into a new folder; return its labels."""
    courses = [course(script, script.of(gpu), busy(script.of(gpu), rng), rng) for gpu in range(script.gpus)]
    held = [used(script, blocks(played.busy, round(STEP / TICK)), rng) for played in courses]
    times = readings.moments(script, rng)
    rows = [
        readings.gpu(script, gpu, played=courses[gpu], used=held[gpu], times=times, rng=rng)
        for gpu in range(script.gpus)
    ]
    readings.write(folder, script, rows, readings.host(script, rng))
    return labels.truth(script, courses)
