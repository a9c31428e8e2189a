"""What a reader should find in a run: throttling and idle stretches off the latent series, the rest off the script."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.tables import read_table
from tests.truth.physics import STEP, SW_THERMAL, Course
from tests.truth.readings import BEGUN, holes_of, parts_of
from tests.truth.script import TICK, Part, Script

HOST_KINDS = ("cpu_bound", "io_bound")
"""Kinds of the whole job, which only a host log tells."""
_STRAY_SECONDS = 0.15
_QUIET_SECONDS = 1.5
_FAINT = 0.125
_COARSE = 2.0
_NOTHING = 1.0
_EPISODE_SECONDS = 10.0
_LEAST = {
    kind: (float(seconds), float(samples))
    for kind, seconds, samples in read_table(Path(__file__).with_name("least.tsv"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One stretch a reader should find, in seconds since the run began; of the whole job where `gpu` is None."""

    kind: str
    gpu: int | None
    start: float
    end: float
    resolvable: bool


def truth(script: Script, courses: list[Course]) -> dict[str, Any]:
    """Return the labels of one run, with times in seconds since the epoch."""
    holes = (Event(kind="log_gap", gpu=None, start=start, end=end, resolvable=True) for start, end in holes_of(script))
    found = [*_scripted(script), *holes]
    for gpu, played in enumerate(courses):
        found += [*_idle(script, gpu, played), *_clocked(script, gpu, played)]
    zero = BEGUN.timestamp()
    events = [asdict(each) | {"start": zero + each.start, "end": zero + each.end} for each in found]
    return {
        "run": "",
        "interval": script.interval,
        "host_interval": max(script.interval, 1.0),
        "gpus": script.gpus,
        "duration": script.seconds,
        "t0": zero,
        "events": events,
        "memory": {
            "leak": "mem_leak" in script.whole,
            "pressure": "mem_pressure" in script.whole,
            "prealloc": "mem_prealloc" in script.whole,
        },
        "run_level": _whole(script),
        "meta": {"trap": script.trap, "clean": script.clean},
    }


def _whole(script: Script) -> list[dict[str, Any]]:
    kinds: list[dict[str, Any]] = [{"kind": kind} for kind in script.whole if not kind.startswith("mem_")]
    if script.period is not None:
        kinds.append({"kind": "periodic_stall", "period_s": script.period})
    return kinds


def _scripted(script: Script) -> list[Event]:
    found = []
    for gpu in range(script.gpus):
        for part, (start, end) in zip(script.of(gpu), parts_of(script, gpu), strict=True):
            whole_job = part.label in HOST_KINDS
            if not part.label or (whole_job and gpu):
                continue
            seconds, samples = _LEAST[part.label]
            seen = part.seconds >= max(seconds, samples * script.interval) and script.absent < _NOTHING
            found.append(Event(kind=part.label, gpu=None if whole_job else gpu, start=start, end=end, resolvable=seen))
    return found


def _idle(script: Script, gpu: int, played: Course) -> list[Event]:
    """Return the stretches of the job in which no kernel ran for 5 s, however each came about."""
    quiet = _joined(played.busy <= 0, TICK, _STRAY_SECONDS, least=_QUIET_SECONDS)
    job = [part for part in script.of(gpu) if part.label not in {"startup_idle", "tail_idle", "unused_gpu"}]
    if not job:
        return []
    spans = list(zip(script.of(gpu), parts_of(script, gpu), strict=True))
    begin = min(start for part, (start, _) in spans if part in job)
    end = max(stop for part, (_, stop) in spans if part in job)
    found = [*_faint(gpu, played, begin, end)]
    for first, last in quiet:
        start, stop = max(first, begin), min(last, end)
        if stop - start >= 5 and stop < end - 1:
            hidden = sum(max(0.0, min(stop, b) - max(start, a)) for a, b in holes_of(script)) > 0
            inside = next((part for part, (a, b) in spans if a <= (start + stop) / 2 < b), job[0])
            seen = stop - start >= _shown(script, inside) and not hidden
            found.append(Event(kind="idle_gap", gpu=gpu, start=start, end=stop, resolvable=seen))
    return found


def _shown(script: Script, inside: Part) -> float:
    """Return how long a wait must be before it counts against a reader that misses it."""
    seconds = max(6.5, 2.7 * script.interval + 1)
    if script.absent >= _NOTHING or inside.texture == "requests":
        # between single requests nobody can say where a wait begins
        return np.inf
    if inside.label in HOST_KINDS:
        # waits of one cause: of coarse samples the cause is to be told and not each wait; of samples that cover a
        # part of the time, several low ones in a row come by chance
        return (
            np.inf if script.interval > _COARSE else max(seconds, 15.0 * (script.card.window_seconds < script.interval))
        )
    return seconds


def _faint(gpu: int, played: Course, begin: float, end: float) -> list[Event]:
    """Return the stretches a reader may call idle or not, for little ran: in each second, or in ten together."""
    spans = []
    for window in (1.0, 10.0):
        cells = round(window / TICK)
        sums = np.concatenate([[0.0], np.cumsum(played.busy)])
        low = (sums[cells:] - sums[:-cells]) / cells <= _FAINT
        spans += [(max(start, begin), min(stop + window, end)) for start, stop in _joined(low, TICK, 0.0)]
    return [
        Event(kind="idle_gap", gpu=gpu, start=start, end=stop, resolvable=False)
        for start, stop in spans
        if stop - start >= 4
    ]


def _clocked(script: Script, gpu: int, played: Course) -> list[Event]:
    """Return the episodes in which heat held the clock down."""
    spans = _joined(played.events & SW_THERMAL > 0, STEP, max(_EPISODE_SECONDS, 2.5 * script.interval))
    least = max(5, 3 * script.interval)
    return [
        Event(kind="thermal_throttle", gpu=gpu, start=start, end=end, resolvable=end - start >= least)
        for start, end in spans
        if end - start >= 2.5
    ]


def _joined(
    where: npt.NDArray[np.bool_], every: float, between: float, *, least: float = 0.0
) -> list[tuple[float, float]]:
    """Return the runs of true cells in seconds, brief ones left out, those joined that lie no further apart."""
    edges = np.diff(np.concatenate([[0], where.astype(np.int8), [0]]))
    runs: list[tuple[float, float]] = []
    for start, end in zip(np.flatnonzero(edges == 1) * every, np.flatnonzero(edges == -1) * every, strict=True):
        if end - start < least:
            continue
        if runs and start - runs[-1][1] <= between:
            runs[-1] = (runs[-1][0], float(end))
        else:
            runs.append((float(start), float(end)))
    return runs
