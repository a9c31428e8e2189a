"""Logs of jobs of a fleet: written one by one, and many at random."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.program import Program

EVERY = 10
"""Seconds between samples."""
MINUTE = 60
_HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], "
    "temperature.gpu, clocks.current.sm [MHz], clocks.max.sm [MHz], clocks_event_reasons.active, "
    "ecc.errors.corrected.volatile.total, ecc.errors.uncorrected.volatile.total, remapped_rows.uncorrectable"
)
Spans = Sequence[tuple[str, int]]
"""States of a GPU with their minutes: `work`, `hot`, `idle`, `unused`."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One GPU of a job; what is None is not recorded."""

    spans: Spans = (("work", 10),)
    uuid: str | None = None
    model: str = "NVIDIA A100-SXM4-80GB"
    corrected: int | None = None
    uncorrected: int | None = None
    remapped: int | None = None


def write_job(folder: Path, name: str, *cards: Card, start: str = "2026-10-05T12:00", **tags: str) -> None:
    """Write the log of a job and its labels beside it; errors are counted in its second half."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [_HEADER]
    for index, card in enumerate(cards or (Card(),)):
        states = [state for state, minutes in card.spans for _ in range(minutes * MINUTE // EVERY)]
        lines += [
            _row(card, index, state, tick, len(states), start) for tick, state in enumerate([*states, states[-1]])
        ]
    (folder / f"{name}.csv").write_text("\n".join([lines[0], *sorted(lines[1:]), ""]), encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "tags": tags}), encoding="utf-8")


def _row(card: Card, index: int, state: str, tick: int, ticks: int, start: str) -> str:  # noqa: PLR0913, PLR0917 - what a cell depends on
    is_hot, is_busy = state == "hot", state in {"work", "hot"}
    errors = [None if count is None else count * (2 * tick > ticks) for count in (card.corrected, card.uncorrected)]
    used, power = 95 if is_busy else 0, 250 if is_hot else 380 if is_busy else 60
    moment = datetime.fromisoformat(start) + timedelta(seconds=EVERY * tick)
    return _write_row(moment, index, card, state, used, power, [*errors, card.remapped])


def _write_row(  # noqa: PLR0913, PLR0917 - what a cell depends on
    moment: datetime, index: int, card: Card, state: str, used: int, power: int, counts: Sequence[int | None]
) -> str:
    is_hot = state == "hot"
    cells = (
        *(f"{moment:%Y/%m/%d %H:%M:%S}.000", index, card.uuid, card.model, f"{used} %"),
        *(f"{500 if state == 'unused' else 60_000} MiB", "81920 MiB", f"{power} W", 90 if is_hot else 62),
        *(f"{900 if is_hot else 1400 if state == 'work' else 210} MHz", "1410 MHz", "0x40" if is_hot else "0x0"),
        *counts,
    )
    return ", ".join("[N/A]" if cell is None else str(cell) for cell in cells)


def report(gpureport: Program, *words: str) -> Any:
    done = gpureport("fleet", *words, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


_NODES, _GPUS_A_NODE = 16, 8
_USERS = ("ann", "bob", "carl", "dora", "eve", "finn")
IDLER, HOARDER = "carl", "dora"
"""Users of whom one pauses for two minutes in every ten, and one never uses half of the GPUs of a run."""


def name_gpu(node: int, index: int) -> str:
    return f"GPU-5e0f{node:02}{index:02}-1b2c-4d3e-8f40-a1b2c3d4{node:02}{index:02}"


HOT, FAULTY = name_gpu(2, 3), name_gpu(11, 6)
"""Uuids of a GPU that heat slows down in every run, and of one with uncorrectable memory errors."""
_START = datetime(2026, 10, 1)


@dataclass(slots=True)
class FleetTruth:
    """What the logs hold: GPU time from first to last sample, in pauses of the idler, and of GPUs never used."""

    gpu_seconds: float = 0.0
    idle_seconds: float = 0.0
    unused_seconds: float = 0.0
    seconds_by_user: Counter[str] = field(default_factory=Counter)
    sick_runs: dict[str, list[str]] = field(default_factory=lambda: {HOT: [], FAULTY: []})


def generate_fleet(folder: Path, runs: int, first: int = 0, truth: FleetTruth | None = None) -> FleetTruth:
    """Write logs of runs, the same number the same run; return what they hold, added to the truth of earlier ones."""
    truth = truth or FleetTruth()
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + runs):
        _write_run(folder, number, truth)
    return truth


def _write_run(folder: Path, number: int, truth: FleetTruth) -> None:
    chance = random.Random(number)
    user, node, gpus = chance.choice(_USERS), number % _NODES, chance.choice((1, 2, 4, 8))
    ticks = chance.randint(60, 360)
    slot = (number // _NODES) % (_GPUS_A_NODE // gpus)
    indices = [slot * gpus + place for place in range(gpus)]
    # the runs of a node follow each other, an hour and a half each
    start = _START + timedelta(minutes=90 * (number // _NODES), seconds=chance.randint(0, 1500))
    name = f"job{number:05}"
    unused = set(indices[gpus // 2 :]) if user == HOARDER and gpus > 1 else set()
    cards = {index: Card(uuid=name_gpu(node, index)) for index in indices}
    lines = [_HEADER]
    for tick in range(ticks):
        pausing = user == IDLER and tick % 60 >= 48 and tick < ticks - 6
        for index, card in cards.items():
            state = "unused" if index in unused else "idle" if pausing else "work"
            is_hot = card.uuid == HOT and state == "work" and tick / ticks > 1 / 3
            used = chance.randint(92, 99) if state == "work" else 0
            power = 250 if is_hot else chance.randint(370, 395) if state == "work" else 60
            errors = 3 if card.uuid == FAULTY and tick / ticks > 1 / 2 else 0
            moment = start + timedelta(seconds=EVERY * tick)
            lines.append(_write_row(moment, index, card, "hot" if is_hot else state, used, power, [0, errors, None]))
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tags = {"user": user, "project": f"p{_USERS.index(user) // 2}", "job": str(number), "node": f"n{node:02}"}
    (folder / f"{name}.json").write_text(json.dumps({"tags": tags}), encoding="utf-8")
    seconds = EVERY * (ticks - 1)
    truth.gpu_seconds += seconds * gpus
    truth.seconds_by_user[user] += seconds * gpus
    truth.unused_seconds += seconds * len(unused)
    if user == IDLER:
        pauses = sum(1 for tick in range(ticks) if tick % 60 >= 48 and tick < ticks - 6)
        truth.idle_seconds += EVERY * pauses * gpus
    for uuid, found in truth.sick_runs.items():
        if uuid in {name_gpu(node, index) for index in indices} and not (uuid == HOT and int(uuid[-2:]) in unused):
            found.append(name)
