"""Labelled runs on disk: scenarios played, logged and written with their truth beside them."""

import json
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
    if isinstance(each, FunctionType) and each.__module__ == scenarios.__name__
}
_DATA_CENTRE = ("launch_bound", "hanging_collective", "straggler", "full_memory")


def small() -> list[tuple[str, float]]:
    names = "steady requests longest_batch starved_by_cpu checkpoints irregular_pauses failing_fan power_brake "
    names += "hanging_collective unused leak torn_log starved_by_storage one_rank_waits full_memory preallocated "
    names += "stale_process narrow_link memory_errors slow_card unsaid_slowdown"
    return [(name, 1.0) for name in names.split()]


def write(folder: Path, runs: Iterable[tuple[str, float]], seed: int) -> list[dict[str, Any]]:
    """Write runs and their `truth.json`, the same for the same seed.

    Args:
        folder: where to; it may be there already, its runs may not.
        runs: names of scenarios and the seconds between samples.
        seed: of all chance.

    Returns:
        The labels, one entry a run.
    """
    truths = []
    for name, interval in runs:
        rng = np.random.default_rng([seed, crc32(name.encode()), round(interval * 10)])
        truths.append(_one(folder, name, interval, rng))
    (folder / "truth.json").write_text(json.dumps(truths, indent=1))
    return truths


def scored(folder: Path, runs: list[tuple[str, float]], *seeds: int) -> Scores:
    """Write the runs of each seed into a folder of their own, analyse them and return how well that went."""
    scores = Scores()
    for seed in seeds:
        own = folder / f"seed-{seed}"
        own.mkdir(parents=True)
        for truth in write(own, runs, seed):
            scores.add(truth, found(own / truth["run"]))
    return scores


def _one(folder: Path, name: str, interval: float, rng: np.random.Generator) -> dict[str, Any]:
    chosen = (A100, H100, V100) if name in _DATA_CENTRE else CARDS
    setting = Setting(interval=interval, card=chosen[int(rng.integers(len(chosen)))], rng=rng)
    script = replace(SCENARIOS[name](setting), name=name, card=setting.card, interval=interval)
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
    readings.write(folder, script, rows, readings.host(script, rng) if script.host else None)
    return labels.truth(script, courses, held)
