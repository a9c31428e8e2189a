"""Logs of jobs whose hours are plain to see, and the report on them as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.cli.program import Program

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
    stamp = f"{datetime.fromisoformat(start) + timedelta(seconds=EVERY * tick):%Y/%m/%d %H:%M:%S}.000"
    is_hot, is_busy = state == "hot", state in {"work", "hot"}
    counts = [None if count is None else count * (2 * tick > ticks) for count in (card.corrected, card.uncorrected)]
    cells = (
        *(stamp, index, card.uuid, card.model, f"{95 if is_busy else 0} %"),
        *(f"{500 if state == 'unused' else 60_000} MiB", "81920 MiB"),
        *(f"{250 if is_hot else 380 if is_busy else 60} W", 90 if is_hot else 62),
        *(f"{900 if is_hot else 1400 if is_busy else 210} MHz", "1410 MHz", "0x40" if is_hot else "0x0"),
        *(*counts, card.remapped),
    )
    return ", ".join("[N/A]" if cell is None else str(cell) for cell in cells)


def report(gpureport: Program, *words: str) -> Any:
    done = gpureport("fleet", *words, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)
