"""The rows of each log of a run, and the files they are written to."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tables import read_table
from tests.truth.physics import STEP, Course
from tests.truth.script import TICK, Floats, Script, spread_over

_FINEST = 1e-3
_HICCUP = 0.002
_CLOCK_STEP_MHZ = 15
_LINK_SLEEPS_SECONDS = 6.0


Rows = dict[str, Floats]
"""The rows of a log: a series for each column, NaN where a cell says N/A."""


def moments(script: Script, rng: np.random.Generator) -> Floats:
    """Return when samples were taken: never quite on time, sometimes late, and not at all in the holes."""
    count = int(script.seconds / script.interval) + 1
    times = (np.arange(count) + rng.uniform(0.05, 0.3)) * script.interval * (1 + rng.normal(0, 2e-4))
    times += (
        np.abs(rng.normal(0, 0.012, count))
        + (rng.random(count) < _HICCUP) * rng.uniform(0.2, 1.2, count) * script.interval
    )
    times = np.maximum.accumulate(times + np.arange(count) * _FINEST * 0.01)
    for begin, length in script.holes:
        start = begin * script.seconds
        times = times[(times < start) | (times > start + length * script.seconds)]
    return np.asarray(times[times < script.seconds - 0.2], dtype=np.float64)


def gpu(  # noqa: PLR0913 - whose rows, and what they read
    script: Script, index: int, *, played: Course, used: Floats, times: Floats, rng: np.random.Generator
) -> Rows:
    card = script.card
    done = np.concatenate([[0.0], np.cumsum(played.busy)]) * TICK
    phase = rng.uniform(0, card.window_seconds)
    fresh = np.floor((times - phase) / card.window_seconds) * card.window_seconds + phase
    util = np.round(100 * _average(done, TICK, fresh, card.window_seconds))
    joules = np.concatenate([[0.0], np.cumsum(played.watts)]) * STEP
    now = np.minimum((times / STEP).astype(np.int64), len(played.watts) - 1)
    awake = _average(done, TICK, times, _LINK_SLEEPS_SECONDS) > 0
    rows = {
        "timestamp": times,
        "util": _absent(util, script.absent, rng),
        "controller": np.round(util * rng.uniform(0.4, 0.6)),
        "memory": np.ceil(used[now]),
    }
    watts = _average(joules, STEP, times, card.power_seconds) + rng.normal(0, 0.15, len(times))
    return rows | {
        "watts": _absent(watts, script.absent, rng),
        "celsius": np.floor(played.celsius[now]),
        "clock": np.round(played.clock[now] / _CLOCK_STEP_MHZ) * _CLOCK_STEP_MHZ,
        "events": played.events[now].astype(np.float64),
        "generation": np.where(awake, card.generation, 1.0),
        "ecc_corrected": 0 * times,
        "ecc_uncorrected": script.ecc[0]
        + np.where(times > 0.55 * script.seconds, script.ecc[1], 0) * float(index == 0),
    }


def host(script: Script, rng: np.random.Generator) -> Rows:
    """Return the rows of the host log: a series a column, `seconds` among them."""
    every = max(script.interval, 1.0)
    count = int(script.seconds / every)
    late = np.abs(rng.normal(0, 0.02, count))
    times = np.asarray((np.arange(count) + 0.4) * every + late, dtype=np.float64)

    def of(values: list[float], shake: float) -> Floats:
        level = spread_over(script.parts, np.array(values), STEP)
        total = np.concatenate([[0.0], np.cumsum(level)]) * STEP
        noise = rng.gamma(9.0, shake / 3.0, len(times)) - 3.0 * shake
        return np.asarray(np.clip(_average(total, STEP, times, every) + noise, 0.0, 100.0), dtype=np.float64)

    return {
        "seconds": times,
        "cpu_percent": of([part.cpu for part in script.parts], 2.5),
        "cpu_max_core_percent": of([max(part.core, part.cpu) for part in script.parts], 1.0),
        "iowait_percent": of([part.iowait for part in script.parts], 0.6),
        "ram_percent": np.clip(script.ram + np.cumsum(rng.normal(0, 0.02, len(times))), 1.0, 99.0),
    }


def holes_of(script: Script) -> list[tuple[float, float]]:
    return [(begin * script.seconds, (begin + length) * script.seconds) for begin, length in script.holes]


def _average(total: Floats, every: float, at: Floats, window: float) -> Floats:
    """Return the mean over the window before each moment, from sums on a grid."""
    grid = np.arange(len(total)) * every
    begin = np.maximum(at - window, 0.0)
    spent: Floats = np.interp(at, grid, total) - np.interp(begin, grid, total)
    return np.asarray(np.clip(spent / np.maximum(np.minimum(at, grid[-1]) - begin, 1e-6), 0.0, None), dtype=np.float64)


def _absent(values: Floats, share: float, rng: np.random.Generator) -> Floats:
    """Return values of which a share is missing, mostly in runs of a few."""
    gone = rng.random(len(values)) < share / 3
    for row in np.flatnonzero(gone):
        gone[row : row + rng.integers(1, 5)] = True
    return np.where(gone, np.nan, values)


def parts_of(script: Script, index: int) -> list[tuple[float, float]]:
    ends = [0.0, *np.cumsum([part.seconds for part in script.of(index)]).tolist()]
    return list(pairwise(ends))


BEGUN = datetime(2026, 5, 4, 7, 12, 31, 250_000, tzinfo=UTC)
"""When every run begins, by a clock without a zone."""
COLUMN_SETS = {
    "common": "timestamp index name util controller memory total celsius watts limit clock events",
    "full": "timestamp index name uuid util controller memory total reserved watts limit default celsius clock "
    "clock_max events generation generation_max lanes lanes_max ecc_corrected ecc_uncorrected",
    "shuffled": "watts events index total util clock timestamp celsius memory name limit",
}
_COLUMNS = {name: (heading, form) for name, heading, form in read_table(Path(__file__).with_name("columns.tsv"))}
"""The heading of each column, and what prints a cell of it."""
_HOST_MIB = 515_000


def moment(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def write(folder: Path, script: Script, gpus: list[Rows], host: Rows) -> None:
    folder.mkdir(parents=True)
    names = COLUMN_SETS[script.columns].split()
    lines = [(-1.0, ", ".join(_COLUMNS[name][0] for name in names))]
    for index, rows in enumerate(gpus):
        known = _constants(script, index)
        cells = [
            [
                _cell(name, value)
                for value in (rows[name].tolist() if name in rows else [known[name]] * len(rows["util"]))
            ]
            for name in names
        ]
        # a query takes a few milliseconds for each GPU
        places = (rows["timestamp"] + 0.004 * index).tolist()
        lines.extend((place, ", ".join(row)) for place, row in zip(places, zip(*cells, strict=True), strict=True))
    lines.sort(key=lambda line: line[0])
    (folder / "nvidia-smi.csv").write_text("\n".join(text for _, text in lines) + "\n")
    (folder / "host.csv").write_text(_host(host))


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float) and np.isnan(value):
        return "[N/A]"
    if name == "timestamp":
        return _COLUMNS[name][1].format(moment(value))[:-3]
    return _COLUMNS[name][1].format(int(value) if name == "events" else value)


def _constants(script: Script, index: int) -> dict[str, object]:
    card = script.card
    return {
        "index": index,
        "name": card.name,
        "uuid": f"GPU-5c0f1e{index:02d}-7a31-4b5e-9d62-0a4be1c97f{index:02d}",
        "total": card.memory_mib,
        "reserved": card.reserved_mib,
        "limit": card.limit_watts,
        "default": card.limit_watts,
        "clock_max": card.clock_mhz,
        "generation_max": card.generation,
        "lanes": script.lanes if index == 0 else 16,
        "lanes_max": 16,
    }


def _host(host: Rows) -> str:
    lines = ["timestamp,cpu_percent,cpu_max_core_percent,iowait_percent,ram_used_mib,ram_total_mib"]
    columns = (host[name].tolist() for name in ("seconds", "cpu_percent", "cpu_max_core_percent", "iowait_percent"))
    for seconds, cpu, core, waits, ram in zip(*columns, host["ram_percent"].tolist(), strict=True):
        stamp = moment(seconds).replace(tzinfo=None).isoformat(timespec="milliseconds")
        lines.append(f"{stamp},{cpu:.1f},{max(core, cpu):.1f},{waits:.1f},{ram / 100 * _HOST_MIB:.0f},{_HOST_MIB}")
    return "\n".join(lines) + "\n"
