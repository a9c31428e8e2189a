"""Writes the sample logs: made-up jobs in the dialects of nvidia-smi and of other tools, always the same bytes.

`python -m tests.samples.generate` rewrites them in sample_logs/.
"""

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.samples import hardware, printing
from tests.samples.hardware import TICK, Course, Trace
from tests.samples.printing import Reading, dcgmi_dmon, gpustat_json, wandb_csv, wrapper_csv
from tests.samples.scenarios import SCENARIOS, Faults, Machine, Scenario

FloatArray = npt.NDArray[np.float64]

_TAIL_SECONDS = 7.0
_SAVING_SECONDS = 2.5
_IMPORTING_SECONDS = 4.0
_LOADING_SECONDS = 7.0
_WAITING_POWER = 0.35
_SPINNING_POWER = 0.08
_STALLED_PERCENT = 78.0
_UNITS = {
    "utilization.gpu": "%",
    "utilization.memory": "%",
    "memory.total": "MiB",
    "memory.reserved": "MiB",
    "memory.used": "MiB",
    "power.draw": "W",
    "enforced.power.limit": "W",
    "power.default_limit": "W",
    "clocks.current.sm": "MHz",
    "clocks.max.sm": "MHz",
}
_MONITORED = {
    "gpu": "index",
    "pwr": "power.draw",
    "gtemp": "temperature.gpu",
    "sm": "utilization.gpu",
    "mem": "utilization.memory",
    "pclk": "clocks.current.sm",
    "fb": "memory.used",
}
"""Column of dmon to query field."""
_DMON = ("gpu", "pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "jpg", "ofa", "mclk", "pclk", "fb", "bar1", "ccpm")
_DMON_UNITS = ("Idx", "W", "C", "C", "%", "%", "%", "%", "%", "%", "MHz", "MHz", "MB", "MB", "MB")
_UNSEEN = {"mtemp": "-", "mclk": "6250", "bar1": "4"}
_HEADING_ROWS = 44
_EVALUATED = 50
"""Steps between two evaluations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    scenario: Scenario
    course: Course
    seconds: float
    traces: tuple[Trace, ...]


def play(scenario: Scenario) -> Played:
    """Play a scenario: the slowest GPU sets the pace, its clock says how slow it is, so a few passes settle both."""
    passes = 1 if all(not cooling.disturbed for cooling in scenario.coolings) else 4
    slowness: FloatArray | None = None
    for _ in range(passes):
        course = hardware.run(scenario.job, np.random.default_rng(scenario.seed), slowness)
        seconds = float(course.ends[-1]) + scenario.hung_seconds + (scenario.kept_seconds or _TAIL_SECONDS)
        slots = range(len(scenario.coolings))
        traces = tuple(_trace(scenario, course, seconds, slot, slowness) for slot in slots)
        slowness = np.max([_slowness(scenario, trace) for trace in traces], axis=0)
    return Played(scenario=scenario, course=course, seconds=seconds, traces=traces)


def _slowness(scenario: Scenario, trace: Trace) -> FloatArray:
    """Return how much longer a GPU computes than at full clock, for each second."""
    clock = trace.clock_mhz[:: round(1 / TICK)]
    return np.where(clock > scenario.model.idle_clock_mhz, scenario.model.clock_mhz / clock, 1.0)


def _trace(scenario: Scenario, course: Course, seconds: float, slot: int, pace: FloatArray | None) -> Trace:
    edges = np.arange(round(seconds / TICK) + 1) * TICK
    work = np.diff(course.busy(edges)) * _share(scenario, slot) / TICK
    spinning = np.diff(_spun(scenario, course, slot, edges)) / TICK
    cooling = scenario.coolings[slot]
    if pace is not None and not cooling.disturbed:
        computing = 1.0 / pace[np.minimum(edges[1:].astype(np.int64), len(pace) - 1)]
        work = work * (computing + _WAITING_POWER * (1.0 - computing))
    work = work + _SPINNING_POWER * spinning
    used = _share(scenario, slot) > 0
    held = (edges[1:] > _IMPORTING_SECONDS) & (edges[1:] < _released(scenario, course)) & used
    intensity = scenario.intensity * (1.0 - 0.013 * slot)
    return hardware.simulate(scenario.model, cooling, work, held.astype(np.float64), intensity)


def _share(scenario: Scenario, slot: int) -> float:
    return scenario.shares[slot] if scenario.shares else 1.0


def _spun(scenario: Scenario, course: Course, slot: int, at: npt.NDArray[np.floating]) -> FloatArray:
    """Return the seconds a GPU has spun in a hung collective up to each moment; the last GPU never joined it."""
    joined = slot < len(scenario.coolings) - 1
    return np.clip(at - float(course.ends[-1]), 0.0, scenario.hung_seconds if joined else 0.0)


def _released(scenario: Scenario, course: Course) -> float:
    return float(course.ends[-1]) + _SAVING_SECONDS + scenario.hung_seconds + scenario.kept_seconds


def memory_mib(scenario: Scenario, course: Course, second: float) -> int:
    memory, first = scenario.memory, float(course.starts[0])
    if not _IMPORTING_SECONDS <= second < _released(scenario, course):
        return 0
    if second < _LOADING_SECONDS:
        return memory.context_mib
    if second < first:
        return memory.model_mib
    grown = 1.0 if memory.growth_seconds == 0 else min(1.0, (second - first) / memory.growth_seconds)
    share = grown * (2.0 - grown)
    held = min(memory.peak_mib, memory.model_mib + int(share * (memory.peak_mib - memory.model_mib)) // 22 * 22 + 22)
    return held + int((second - first) / 60 * memory.leak_mib_a_minute) // 20 * 20


def _stamps(rng: np.random.Generator, seconds: float, interval: int) -> FloatArray:
    """Return when the logger woke up: a little late each time, and never twice as much."""
    count = int(seconds / interval) + 1
    late = 0.003 * rng.random(count) + 0.03 * (rng.random(count) < 0.01)
    stamps = np.cumsum(np.full(count, interval + 0.004)) - interval - 0.004 + late
    return stamps[stamps < seconds - 0.2]


def _reading(played: Played, gpu: int, second: float, noise: float) -> dict[str, str]:
    """Return what nvidia-smi would print for a GPU at a moment, by query field; the sensor errs by up to 0.4 %."""
    scenario, model, trace = played.scenario, played.scenario.model, played.traces[gpu]
    tick = min(int(second / TICK), len(trace.watts) - 1)
    window = slice(max(0, tick + 1 - round(model.window_seconds / TICK)), tick + 1)
    moments = np.array([max(0.0, second - 1.0), second])
    work = played.course.busy(moments) * _share(scenario, gpu)
    computing = min(1.0, float(np.diff(work)[0]))
    busy = min(1.0, computing + float(np.diff(_spun(scenario, played.course, gpu, moments))[0]))
    watts = sum(trace.watts[window].tolist()) / len(trace.watts[window]) * (1.0 + 0.008 * (noise - 0.5))
    used = memory_mib(scenario, played.course, second) if _share(scenario, gpu) else 0
    return {
        "index": str(gpu),
        "name": model.name,
        "uuid": f"GPU-5a3e17c0-0000-4000-8000-00000000000{gpu}",
        "pci.bus_id": f"00000000:{0x18 + 0x10 * gpu:02X}:00.0",
        "driver_version": "580.126.09",
        "pstate": "P0",
        "utilization.gpu": f"{round(100 * busy)}",
        "utilization.memory": f"{round(100 * computing * scenario.controller)}",
        "memory.total": f"{model.memory_mib}",
        "memory.reserved": f"{model.reserved_mib}",
        "memory.used": f"{used}",
        "temperature.gpu": f"{int(trace.celsius[tick])}",
        "power.draw": f"{watts:.2f}",
        "enforced.power.limit": f"{model.limit_watts:.2f}",
        "power.default_limit": f"{model.default_watts or model.limit_watts:.2f}",
        "clocks.current.sm": f"{int(trace.clock_mhz[tick]) // 15 * 15}",
        "clocks.max.sm": f"{model.highest_mhz or model.clock_mhz}",
        "clocks_event_reasons.active": f"0x{int(trace.events[tick]):016x}",
        **_faults(scenario.faults, gpu, second),
        **_copies(scenario, noise),
    }


def _faults(faults: Faults, gpu: int, second: float) -> dict[str, str]:
    """Return the link and the errors of a GPU; a lost one says nothing else."""
    narrow = faults.link == gpu
    failed = faults.errors is not None and faults.errors[0] == gpu and second >= faults.errors[1]
    return {
        "pcie.link.gen.current": "3" if narrow else "4",
        "pcie.link.gen.max": "4",
        "pcie.link.width.current": "8" if narrow else "16",
        "pcie.link.width.max": "16",
        "ecc.errors.uncorrected.volatile.total": "1" if failed else "0",
    }


def _copies(scenario: Scenario, noise: float) -> dict[str, str]:
    if scenario.copied_bytes_per_second == 0:
        return {}
    received = scenario.copied_bytes_per_second * (0.94 + 0.12 * noise)
    return {"pcie.rx": f"{received:.0f}", "pcie.tx": f"{0.02 * received:.0f}"}


def _cell(scenario: Scenario, reading: Reading, second: float, name: str) -> str:
    """Return a cell of the CSV, with its unit; of a lost GPU only what identifies it."""
    lost = scenario.faults.lost
    if lost is not None and reading.cells["index"] == str(lost[0]) and second >= lost[1]:
        known = name in {"timestamp", "index", "name"}
        return reading.cells.get(name, "") if known else "[GPU is lost]"
    return f"{reading.cells[name]} {_UNITS[name]}" if name in _UNITS else reading.cells[name]


def _ticks(played: Played) -> Iterator[list[Reading]]:
    """Yield what the logger read each time it woke up, one reading a GPU."""
    scenario = played.scenario
    rng = np.random.default_rng([scenario.seed, 1])
    started = datetime.fromisoformat(scenario.started)
    for woke in _stamps(rng, played.seconds, scenario.interval):
        moment, readings = float(woke), []
        for gpu in range(len(played.traces)):
            moment += 0.001 + 0.002 * float(rng.random())
            cells = _reading(played, gpu, moment, float(rng.random()))
            readings.append(Reading(started + timedelta(seconds=moment), cells))
        yield readings


def nvidia_smi_csv(played: Played) -> str:
    """Return the log `nvidia-smi --query-gpu=... --format=csv -l N` would have written."""
    scenario = played.scenario
    lines = [", ".join(f"{name} [{_UNITS[name]}]" if name in _UNITS else name for name in scenario.fields)]
    started = datetime.fromisoformat(scenario.started)
    for readings in _ticks(played):
        for reading in readings:
            second = (reading.moment - started).total_seconds()
            if scenario.faults.unseen(second):
                continue
            stamp = reading.moment.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
            stamped = Reading(reading.moment, {"timestamp": stamp, **reading.cells})
            lines.append(", ".join(_cell(scenario, stamped, second, name) for name in scenario.fields))
    return "\n".join(lines) + "\n"


def dmon_log(played: Played) -> str:
    """Return the log `nvidia-smi dmon -o DT -s pucm -d N` would have written: whole watts, whole seconds."""
    scenario = played.scenario
    rng = np.random.default_rng([scenario.seed, 1])
    started = datetime.fromisoformat(scenario.started)
    lines: list[str] = []
    for woke in _stamps(rng, played.seconds, scenario.interval):
        moment = float(woke)
        for gpu in range(len(played.traces)):
            read = _reading(played, gpu, moment, float(rng.random()))
            cells = [*(read.get(_MONITORED.get(name, ""), _UNSEEN.get(name, "0")) for name in _DMON)]
            stamp = (started + timedelta(seconds=moment)).strftime("%Y%m%d   %H:%M:%S")
            if sum(not line.startswith("#") for line in lines) % _HEADING_ROWS == 0:
                lines += [_heading("Date       Time", _DMON), _heading("YYYYMMDD   HH:MM:SS", _DMON_UNITS)]
            lines.append(f" {stamp}" + "".join(f" {round(float(cell)) if cell != '-' else cell:>6}" for cell in cells))
    return "\n".join(lines) + "\n"


def _snapshots(played: Played, write: Callable[[datetime, list[dict[str, str]]], str]) -> str:
    """Return the log a command with `-l N` would have written that shows all GPUs at a time."""
    scenario = played.scenario
    rng = np.random.default_rng([scenario.seed, 1])
    started = datetime.fromisoformat(scenario.started)
    written = []
    for woke in _stamps(rng, played.seconds, scenario.interval):
        readings = [_reading(played, gpu, float(woke), float(rng.random())) for gpu in range(len(played.traces))]
        written.append(write(started + timedelta(seconds=float(woke)), readings))
    return "".join(written)


def _heading(first: str, names: Sequence[str]) -> str:
    return f"#{first:<19}" + "".join(f" {name:>6}" for name in names)


def _load(played: Played, machine: Machine, before: float, second: float) -> tuple[float, float]:
    span = np.array([before, second])
    seconds = max(second - before, 0.1)
    batches = float(np.diff(played.course.batches(span))[0])
    stalled = float(np.diff(played.course.stalled(span))[0])
    return 100.0 * batches * machine.work_seconds / (machine.cores * seconds), _STALLED_PERCENT * stalled / seconds


def host_csv(played: Played) -> str | None:
    scenario, machine = played.scenario, played.scenario.machine
    if machine is None:
        return None
    rng = np.random.default_rng([scenario.seed, 2])
    started = datetime.fromisoformat(scenario.started)
    lines = ["timestamp,cpu_percent,cpu_max_core_percent,ram_used_mib,ram_total_mib,iowait_percent"]
    before = 0.0
    for woke in _stamps(rng, played.seconds, scenario.interval):
        second = float(woke) + 0.25
        work, waiting = _load(played, machine, before, second)
        cpu = min(100.0 - 0.9 * float(rng.random()), machine.idle_percent + work + 3.0 * float(rng.random()))
        busiest = cpu + (100.0 - cpu) * (0.2 + 0.4 * float(rng.random()))
        alive = memory_mib(scenario, played.course, second) > 0
        if machine.busiest_percent is not None and work > 0:
            busiest = machine.busiest_percent + (100.0 - machine.busiest_percent) * float(rng.random())
        ram = machine.ram_total_mib * 0.021 + machine.ram_job_mib * alive + 90 * float(rng.random())
        iowait = machine.iowait_percent * 2 * float(rng.random()) + waiting
        stamp = (started + timedelta(seconds=second)).isoformat(timespec="milliseconds")
        lines.append(f"{stamp},{cpu:.1f},{busiest:.1f},{int(ram)},{machine.ram_total_mib},{iowait:.1f}")
        before = second
    return "\n".join(lines) + "\n"


def _write_moment(scenario: Scenario, second: float) -> str:
    moment = datetime.fromisoformat(scenario.started) + timedelta(seconds=float(second))
    return moment.isoformat(timespec="milliseconds")


def training_csv(played: Played) -> str | None:
    """Return the validation losses, one a hundred steps, or the rate; None where the scenario has none."""
    scenario, ends = played.scenario, played.course.ends
    if scenario.rated_steps is not None:
        last = np.arange(scenario.rated_steps, len(ends), scenario.rated_steps)
        rates = 64 * scenario.rated_steps / (ends[last] - ends[last - scenario.rated_steps])
        stamps = (_write_moment(scenario, ends[step]) for step in last)
        losses = ("" if step % _EVALUATED else f"{3 - step / 500:.2f}" for step in last)
        rows = (
            f"{stamp},{step},{rate:.1f},{loss}"
            for stamp, step, rate, loss in zip(stamps, last, rates, losses, strict=True)
        )
        return "\n".join(["timestamp,step,samples_per_second,val_loss", *rows]) + "\n"
    if scenario.learns_until is None:
        return None
    rng = np.random.default_rng([scenario.seed, 3])
    lines = ["timestamp,step,val_loss"]
    for step in range(_EVALUATED, len(ends) + 1, _EVALUATED):
        left = max(0.0, 1.0 - step / scenario.learns_until)
        loss = 1.2 + 1.9 * left * left + 0.04 * (step / len(ends)) + 0.004 * float(rng.random())
        lines.append(f"{_write_moment(scenario, ends[step - 1])},{step},{loss:.4f}")
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[Played], str]] = {
    "nvidia-smi.csv": nvidia_smi_csv,
    "nvidia-smi.csv.gz": nvidia_smi_csv,
    "dmon.log": dmon_log,
    "gpustat.json": lambda played: gpustat_json(_ticks(played)),
    "dcgmi-dmon.txt": lambda played: dcgmi_dmon(_ticks(played)),
    "wandb.csv": lambda played: wandb_csv(_ticks(played)),
    "wrapper.csv": lambda played: wrapper_csv(_ticks(played)),
    "nvidia-smi.log": partial(_snapshots, write=printing.tables),
    "nvidia-smi-q.xml": partial(_snapshots, write=printing.documents),
}
"""What writes the log of each name."""


def files(scenario: Scenario) -> dict[str, str]:
    played = play(scenario)
    written = {scenario.log: WRITERS[scenario.log](played)}
    beside = {"host.csv": host_csv(played), "training.csv": training_csv(played)}
    return written | {name: text for name, text in beside.items() if text is not None}


def write(target: Path) -> None:
    for scenario in SCENARIOS:
        folder = target / scenario.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files(scenario).items():
            content = text.encode("ascii")
            # no name and no time in the header: always the same bytes
            (folder / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


if __name__ == "__main__":
    write(Path(__file__).parents[2] / "sample_logs")
