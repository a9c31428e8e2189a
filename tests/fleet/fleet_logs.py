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
        for tick, state in enumerate([*states, states[-1]]):
            moment = datetime.fromisoformat(start) + timedelta(seconds=EVERY * tick)
            lines.append(_row(card, index, state, moment, is_late=2 * tick > len(states)))
    (folder / f"{name}.csv").write_text("\n".join([lines[0], *sorted(lines[1:]), ""]), encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "tags": tags}), encoding="utf-8")


def _row(card: Card, index: int, state: str, moment: datetime, *, is_late: bool) -> str:
    is_hot, is_busy = state == "hot", state in {"work", "hot"}
    counted = [None if count is None else count * is_late for count in (card.corrected, card.uncorrected)]
    cells = (
        *(f"{moment:%Y/%m/%d %H:%M:%S}.000", index, card.uuid, card.model, f"{95 if is_busy else 0} %"),
        *(f"{500 if state == 'unused' else 60_000} MiB", "81920 MiB"),
        *(f"{250 if is_hot else 380 if is_busy else 60} W", 90 if is_hot else 62),
        *(f"{900 if is_hot else 1400 if state == 'work' else 210} MHz", "1410 MHz", "0x40" if is_hot else "0x0"),
        *(*counted, card.remapped),
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
    minutes, slot = chance.randint(10, 60), (number // _NODES) % (_GPUS_A_NODE // gpus)
    uuids = [name_gpu(node, slot * gpus + place) for place in range(gpus)]
    rounds = (minutes - 1) // 10 if user == IDLER else 0
    unused = set(uuids[gpus // 2 :]) if user == HOARDER and gpus > 1 else set()
    cards = []
    for uuid in uuids:
        spans = [*(("work", 8), ("idle", 2)) * rounds, ("work", minutes - 10 * rounds)]
        if uuid == HOT:
            cool = minutes // 3
            spans = [("work", cool), ("hot", minutes - cool)]
        spans = [("unused", minutes)] if uuid in unused else spans
        cards.append(Card(uuid=uuid, spans=spans, corrected=0, uncorrected=3 if uuid == FAULTY else 0))
    # the runs of a node follow each other, an hour and a half each
    start = _START + timedelta(minutes=90 * (number // _NODES), seconds=chance.randint(0, 1500))
    tags = {"user": user, "project": f"p{_USERS.index(user) // 2}", "job": str(number), "node": f"n{node:02}"}
    write_job(folder, name := f"job{number:05}", *cards, start=start.isoformat(), **tags)
    truth.gpu_seconds += MINUTE * minutes * gpus
    truth.seconds_by_user[user] += MINUTE * minutes * gpus
    truth.unused_seconds += MINUTE * minutes * len(unused)
    truth.idle_seconds += MINUTE * 2 * rounds * (gpus - (HOT in uuids))
    for uuid, found in truth.sick_runs.items():
        if uuid in uuids and not (uuid == HOT and uuid in unused):
            found.append(name)
