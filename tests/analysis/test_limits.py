"""Each limit that can be set: just on one side of it, just on the other, and moved by a setting."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpureport
from gpureport.testing import Floats, Recording, findings_of, steps, with_host, with_training
from tests.analysis.tables import rec
from tests.support.tables import read_table


def part(level: float, usual: float = 97, length: float = 300, edge: int = 300) -> Floats:
    return steps((usual, edge), (level, round(length)), (usual, edge))


def beside(util: Floats, **host: Any) -> Recording:
    cpu = host.pop("cpu", 10.0)
    rows = len(util)
    return rec(
        util=util, cpu=np.broadcast_to(cpu, rows), host={name: np.broadcast_to(one, rows) for name, one in host.items()}
    )


def pcie(util: Floats, received: Floats) -> Recording:
    return rec(util=util, received=received, sent=0.1, link_generation=4, link_width=16)


def link(generation: float, width: float = 16, util: Any = 97.0) -> Recording:
    util = np.broadcast_to(util, 120)
    return rec(util=util, link_generation=generation, link_generation_max=4, link_width=width, link_width_max=16)


def hot(clock: Floats, temperature: Any, **more: Any) -> Recording:
    return rec(util=98, power=300, power_limit=400, clock=clock, temperature=temperature, **more)


def bits(*parts: tuple[float, int], clock: float = 1120) -> Recording:
    slowed = steps((0, 100), *parts, (0, 100))
    return hot(np.where(slowed > 0, clock, 1400), np.where(slowed > 0, 86, 60), sw_thermal_slowdown=slowed)


def capped(*parts: tuple[float, int]) -> Recording:
    return rec(util=98, power=300, power_limit=400, sw_power_cap=steps((0, 20), *parts, (0, 100)))


def board(**series: Any) -> Recording:
    return rec(util=steps((0, 20), (97, 200)), clock_max=1410, power_limit=400, **series)


def hollow(watts: float, length: float = 300, util: Any = 98, gpus: int = 1, edge: int = 300) -> Recording:
    power = part(watts, 330, length, edge)
    return rec(util=[np.full(len(power), util)] * gpus, power=power, power_limit=400, clock=1410, clock_max=1410)


def growing(peak: float) -> Recording:
    memory = np.concatenate([np.zeros(10), np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, 120), (peak, 150))])
    return rec(util=steps((0, 20), (97, 280)), memory=memory)


def taken(level: float, length: float = 290) -> Recording:
    memory = steps((0, 10), (level, round(length)))
    return rec(util=np.full(len(memory), 97.0), memory=memory)


def leaking(per_hour: float, every: float = 30.0) -> Recording:
    rows = round(90_000 / every)
    return rec(util=np.full(rows, 97.0), memory=10 + per_hour * np.arange(rows) * every / 3600, every=every)


def held(after: float, rest: float = 300, before: float = 40, **host: Any) -> Recording:
    rows = round(rest)
    util, memory = steps((0, 20), (97, 280), (0, rows)), steps((0, 5), (before, 295), (after, rows))
    series = {name: steps((usual, 300), (level, rows)) for name, (usual, level) in host.items()}
    cpu = series.pop("cpu", None)
    return rec(util=util, memory=memory, cpu=cpu, host=series or None)


def evaluated(count: float, best: float) -> Recording:
    """Return a job of 2000 s with evaluations each 100 s, the best of them at a place."""
    points = [(100.0 * (place + 1), "val_loss", 1 + 0.01 * abs(place - best)) for place in range(round(count))]
    return with_training(rec(util=np.full(2001, 97.0)), points)


def unused(seconds: float, *, memory: bool = False, watts: float | None = None) -> Recording:
    busy, idle = np.full(round(seconds), 97.0), np.zeros(round(seconds))
    series: dict[str, Any] = {} if watts is None else {"power": [busy + 200, idle + watts], "power_limit": 400}
    return rec(util=[busy, idle], **series, **({"memory": [busy / 4, idle]} if memory else {}))


def later(recorded: int, seconds: float, every: float = 1, begun: float = 0) -> Recording:
    run = rec(util=np.full(recorded, 97.0), every=every)
    return with_host(run, begun + np.arange(0, seconds, every), cpu_utilization_ratio=0.2)


def brief(level: float, usual: float) -> Floats:
    return part(level, usual, 60, 100)


def starving(memory: float, cpu: float = 80, length: float = 300) -> Recording:
    return beside(part(30, length=length), cpu=part(cpu, 20, length), host_memory=memory)


def chosen(clock: float, length: float = 200) -> Recording:
    setting = steps((0, 20), (1, round(length)), (0, 200 - round(length)))
    return board(clock=clock, power=390, applications_clocks_setting=setting)


def uneven_watts(one: float, other: float) -> Recording:
    return rec(util=98, power=[part(330, 330), part(one, 330), part(other, 330)], power_limit=400)


def sized(busy: float = 20, peak: float = 10, seconds: float = 800) -> Recording:
    memory = np.r_[np.linspace(1, peak, 100), np.full(round(seconds) - 100, peak)]
    return rec(util=np.tile([busy + 5, busy - 5], round(seconds / 2)), memory=memory)


def filling(growth: Floats) -> Recording:
    """Return memory that grows to 30 GiB, with the growth of each of 100 parts of the job."""
    memory = 10 + 20 * np.repeat(np.cumsum(growth), 6) / sum(growth)
    return rec(util=np.full(600, 97.0), memory=memory)


def paced(rates: Floats) -> Recording:
    points = [(20 + 5.0 * place, "samples_per_second", float(rate)) for place, rate in enumerate(rates)]
    return with_training(rec(util=np.full(5 * len(rates) + 20, 97.0)), points)


def one_of_four(usual: float, odd: float, metric: str = "clock", seconds: float = 600) -> Recording:
    levels = [np.full(round(seconds), level) for level in (usual, usual, odd, usual)]
    return rec(**({"util": 97} | {metric: levels}))


def resumed(level: float, length: int = 60, cpu: float = 10, **host: float) -> Recording:
    util = steps((97, 100), (30, length + 40), (level, length), (30, length + 40), (97, 100))
    rows = np.arange(len(util))
    waits = (rows >= 100) & (rows < len(util) - 100)
    return beside(util, cpu=np.where(waits, cpu, 10), **{name: np.where(waits, one, 1) for name, one in host.items()})


def apart(spread: float, **series: Any) -> Recording:
    """Return samples 10 s apart that are low on average, and far from each other."""
    util = np.concatenate([np.full(60, 97.0), np.tile([60 - spread, 60 + spread], 40), np.full(60, 97.0)])
    given = {name: np.where(util < 97, one, 1) for name, one in series.items()}
    cpu = given.pop("cpu", None)
    host = {name: given.pop(name) for name in ("iowait", "core") if name in given} or None
    link = {"sent": 0.1, "link_generation": 4, "link_width": 16} if given else {}
    return rec(util=util, every=10.0, cpu=cpu, cpu_every=10.0, host=host, **given, **link)


def idle_beside(memory: float, seconds: int = 300) -> Recording:
    return rec(
        util=[np.full(seconds, 97.0), np.zeros(seconds)], memory=[np.full(seconds, 20.0), np.full(seconds, memory)]
    )


WAIT, WORK, ROWS = part(95, 20), np.full(300, 98.0), np.arange(900)
LIMITS: dict[str, Callable[[float], Recording]] = {
    "idle_gap.idle": lambda x: rec(util=part(x, length=20)),
    "idle_gap.still": lambda x: rec(util=steps((97, 60), (0, 3), (x, 4), (0, 3), (97, 60))),
    "idle_gap.shortest": lambda x: rec(util=part(0, length=x)),
    "idle_gap.warning": lambda x: rec(util=part(0, length=x, edge=500)),
    "idle_gap.problem": lambda x: rec(util=part(0, length=x, edge=500)),
    "startup_idle.shortest": lambda x: rec(util=steps((0, round(x)), (97, 1000))),
    "startup_idle.long": lambda x: rec(util=steps((0, round(x / 10)), (97, 5000)), every=10),
    "startup_idle.share": lambda x: rec(util=steps((0, round(x)), (97, 1000))),
    "startup_idle.light": lambda x: rec(util=steps((8, round(x)), (0, 100 - round(x)), (97, 900))),
    "startup_idle.unused": lambda x: rec(util=np.where(x > ROWS % 100, ROWS % 2 * 40, 0)),
    "throttling.merge": lambda x: bits((1, 10), (0, round(x)), (1, 10)),
    "throttling.shortest": lambda x: bits((1, round(x))),
    "throttling.clock_drop": lambda x: hot(brief(x, 1400), brief(85, 70)),
    "throttling.near_limit": lambda x: hot(brief(1200, 1400), brief(95 - x, 70), margin=brief(x, 25)),
    "throttling.problem": lambda x: bits((1, round(x)), (0, 200 - round(x))),
    "power_limits.merge": lambda x: capped((1, 40), (0, round(x)), (1, 40)),
    "power_limits.shortest": lambda x: capped((1, round(x))),
    "power_limits.at_limit": lambda x: rec(util=WORK, power=x, power_limit=400),
    "power_limits.lowered": lambda x: rec(util=WORK, power=300, power_limit=x, default_limit=400),
    "power_limits.slow": lambda x: rec(util=WORK, power=400, power_limit=400, clock=x, sw_power_cap=1),
    "cpu_bound.gpu": lambda x: rec(util=part(x), cpu=WAIT),
    "cpu_bound.cpu": lambda x: rec(util=part(30), cpu=part(x, 20)),
    "cpu_bound.shortest": lambda x: rec(util=part(30, length=x), cpu=part(95, 20, x)),
    "cpu_bound.problem": lambda x: rec(util=part(30, length=x), cpu=part(95, 20, x)),
    "cpu_bound.leave": lambda x: resumed(x, cpu=95),
    "io_bound.gpu": lambda x: apart(x, cpu=5, iowait=40),
    "io_bound.leave": lambda x: resumed(x, iowait=40),
    "io_bound.iowait": lambda x: beside(part(30), iowait=part(x, 1)),
    "io_bound.enter": lambda x: beside(part(x), iowait=part(40, 1)),
    "io_bound.shortest": lambda x: beside(part(30, length=x), iowait=part(40, 1, x)),
    "cpu_bound_single.gpu": lambda x: apart(x, cpu=5, core=100),
    "cpu_bound_single.leave": lambda x: resumed(x, core=100),
    "cpu_bound_single.core": lambda x: beside(part(38), core=part(x, 60)),
    "cpu_bound_single.enter": lambda x: beside(part(x), core=part(100, 60)),
    "cpu_bound_single.shortest": lambda x: beside(part(38, length=x), core=part(100, 60, x)),
    "transfer_bound.gpu": lambda x: apart(x, received=22),
    "transfer_bound.leave": lambda x: pcie(
        steps((97, 100), (30, 100), (x, 60), (30, 100), (97, 100)), steps((1, 100), (22, 260), (1, 100))
    ),
    "transfer_bound.link": lambda x: pcie(part(40), part(x, 1)),
    "transfer_bound.enter": lambda x: pcie(part(x), part(22, 1)),
    "transfer_bound.shortest": lambda x: pcie(part(40, length=x), part(22, 1, x)),
    "host_memory.roomy": starving,
    "host_memory.full": starving,
    "host_memory.cores": lambda x: starving(30, x),
    "host_memory.shortest": lambda x: starving(30, length=x),
    "underutilised.enter": lambda x: beside(part(x)),
    "underutilised.gpu": lambda x: apart(x, cpu=5),
    "underutilised.leave": lambda x: resumed(x, 300),
    "underutilised.idle": lambda x: beside(part(x)),
    "underutilised.shortest": lambda x: beside(np.full(round(x), 30.0)),
    "low_util_cause_unknown.enter": lambda x: rec(util=part(x)),
    "low_util_cause_unknown.gpu": apart,
    "low_util_cause_unknown.leave": lambda x: rec(util=steps((97, 100), (30, 340), (x, 300), (30, 340), (97, 100))),
    "low_util_cause_unknown.idle": lambda x: rec(util=part(x)),
    "low_util_cause_unknown.shortest": lambda x: rec(util=np.full(round(x), 30.0)),
    "memory.roomy": growing,
    "memory.used": lambda x: rec(util=np.zeros(300), memory=x),
    "memory.full": growing,
    "memory.step": taken,
    "memory.shortest": lambda x: taken(62, x),
    "clocks_locked.held": lambda x: chosen(1100, x),
    "clocks_locked.fewest": lambda x: rec(
        util=steps((0, 100), (97, round(x))), clock=1100, clock_max=1410, applications_clocks_setting=1
    ),
    "clocks_locked.below": lambda x: board(clock=x, power=200),
    "clocks_locked.highest": chosen,
    "clocks_locked.power_free": lambda x: board(clock=1005, power=x),
    "ecc_error.rise": lambda x: rec(util=np.full(100, 97.0), uncorrected=steps((0, 60), (x, 40))),
    "gpu_lost.silent": lambda x: rec(util=steps((97, 100), (np.nan, round(x)))),
    "gpu_lost.rows": lambda x: rec(util=steps((97, 100), (np.nan, round(x))), every=20),
    "mem_leak.settled": lambda x: filling(steps((0, round(x)), (1, 100 - round(x)))),
    "mem_leak.quarter": lambda x: filling(steps((100, 80), (x, 20))),
    "mem_leak.released": lambda x: rec(
        util=np.full(900, 97.0), memory=np.r_[np.full(300, 40.0), 0.4 * x + np.linspace(0, 10, 600)]
    ),
    "mem_leak.growth": leaking,
    "mem_leak.soon": leaking,
    "monitoring_ended.early": lambda x: later(300, 300 + x),
    "monitoring_ended.steps": lambda x: later(100, 3000 + x, 30),
    "monitoring_ended.shifted": lambda x: later(300, 320, begun=x),
    "monitoring_ended.warning": lambda x: later(3000, 3000 + x),
    "pcie_degraded.common": lambda x: link(4, x),
    "pcie_degraded.problem": lambda x: link(*((4, 4) if x else (1, 16))),
    "pcie_degraded.busy": lambda x: link(1, util=x),
    "pcie_degraded.fewest": lambda x: link(1, util=steps((0, 120 - round(x)), (97, round(x)))),
    "no_progress.fewest": lambda x: evaluated(x, 1),
    "no_progress.stands": lambda x: evaluated(20, x),
    "hollow_util.busy": lambda x: hollow(85, util=x),
    "hollow_util.busy_share": lambda x: hollow(85, util=np.where(x > ROWS % 10, 60, 98)),
    "hollow_util.power": hollow,
    "hollow_util.shortest": lambda x: hollow(85, x),
    "hollow_util.problem": lambda x: hollow(85, x, gpus=2, edge=1200),
    "imbalance.differs": lambda x: rec(util=[part(97), part(x), part(97)]),
    "imbalance.agree": lambda x: rec(util=[part(97), part(50), part(x)]),
    "imbalance.power_agree": lambda x: uneven_watts(215, x),
    "imbalance.power_differs": lambda x: uneven_watts(x, 330),
    "imbalance.shortest": lambda x: rec(util=[part(97, length=x), part(58, length=x), part(97, length=x)]),
    "unused_gpu.context": idle_beside,
    "unused_gpu.empty": lambda x: idle_beside(x, 45),
    "unused_gpu.shortest": unused,
    "unused_gpu.shortest_empty": lambda x: unused(x, memory=True),
    "unused_gpu.power_at_work": lambda x: unused(300, watts=x),
    "zombie_memory.held": held,
    "zombie_memory.idle": lambda x: held(40, x),
    "zombie_memory.least": lambda x: held(x, before=x),
    "zombie_memory.load": lambda x: held(40, cpu=(60, x)),
    "zombie_memory.core": lambda x: held(40, cpu=(60, 5), core=(90, x)),
    "full_precision.active": lambda x: rec(util=np.full(300, 97.0), tensor_active=x),
    "full_precision.worked": lambda x: rec(util=np.full(300, 97.0), tensor_active=0.2, sm_active=x),
    "full_precision.capability": lambda x: rec(
        util=np.full(300, 97.0), tensor_active=0.2, model=f"NVIDIA {'A100' if x > 7 else 'P100'}"
    ),
    "full_precision.busy": lambda x: rec(util=np.full(round(x), 97.0), tensor_active=0.2),
    "oversized_gpu.shortest": lambda x: sized(seconds=x),
    "oversized_gpu.roomy": lambda x: sized(peak=x),
    "oversized_gpu.busy": lambda x: sized(busy=x),
    "rate_falls.fall": lambda x: paced(steps((500, 100), (500 - 5 * x, 100))),
    "rate_falls.shortest": lambda x: paced(steps((500, 120), (300, round(x / 5)))),
    "slow_gpu.slower": lambda x: one_of_four(1410, 1410 - 14.1 * x),
    "slow_gpu.weaker": lambda x: one_of_four(300, 300 - 3 * x, "power"),
    "slow_gpu.shortest": lambda x: one_of_four(1410, 700, seconds=x),
    "unexplained_change.fall": lambda x: rec(util=97, clock=steps((1400, 400), (1400 - 14 * x, 400))),
    "unexplained_change.weaker": lambda x: rec(util=97, power=steps((300, 400), (300 - 3 * x, 400))),
    "unexplained_change.uneven": lambda x: rec(util=[np.full(900, 95 - x * odd) for odd in (0, 0, 1, 1, 0, 0)]),
    "unexplained_change.shortest": lambda x: rec(util=97, clock=steps((1400, 600), (1000, round(x)))),
    "oversized_gpu.fits": lambda x: sized(peak=x),
}
"""What makes a run of a number, for each setting of a rule; `limits.tsv` has the numbers."""


def outcome(rule: str, kind: str, run: Recording, expected: str, settings: dict[str, float]) -> str:
    """Return how many findings a run gives, or what is expected of the only one if that holds."""
    findings = findings_of(gpureport.analyze(run, settings={"rules": {rule: settings}} if settings else {}), kind)
    if expected == "0" or len(findings) != 1:
        return str(len(findings))
    (one,) = findings
    said = {str(len(one.intervals)), one.severity, one.confidence, *f"{one.recommendation} {one.summary}".split()}
    return expected if expected in said else "another"


def test_limits_hold_on_both_sides_where_they_are_moved_and_all_are_tried() -> None:
    rows = read_table(Path(__file__).with_name("limits.tsv"))
    for label, other, quiet, loud, moved, *said in rows:
        (rule, _, name), expected = label.partition("."), "".join(said) or "0"
        kind = rule if other == "-" else other
        got = [outcome(rule, kind, LIMITS[label](float(number)), expected, {}) for number in (quiet, loud)]
        by_setting = outcome(rule, kind, LIMITS[label](float(loud)), expected, {name: float(moved)})
        assert (got[0], by_setting, got[1] in {expected, "0"}) == (expected, expected, False), (label, *got)
    surface = (Path(__file__).parents[1] / "golden/surface.txt").read_text(encoding="utf-8").splitlines()
    settings = {line.removeprefix("setting rules.") for line in surface if line.startswith("setting rules.")}
    # no row moves this one yet
    assert settings - {label for label, *_ in rows} <= {"gpu_lost.said"}
