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


def bits(held: Floats) -> Recording:
    slowed = np.pad(held, 100)
    return hot(np.where(slowed > 0, 1120, 1400), np.where(slowed > 0, 86, 60), sw_thermal_slowdown=slowed)


def capped(held: Floats) -> Recording:
    return rec(util=98, power=300, power_limit=400, sw_power_cap=np.pad(held, (20, 100)))


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


def later(recorded: int, more: float, every: float = 1, begun: float = 0) -> Recording:
    run = rec(util=np.full(recorded, 97.0), every=every)
    return with_host(run, begun + np.arange(0, recorded * every + more, every), cpu_utilization_ratio=0.2)


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


ROWS = np.arange(900)
LIMITS: dict[str, Callable[[float], Recording]] = {
    "startup_idle.long": lambda x: rec(util=steps((0, round(x / 10)), (97, 5000)), every=10),
    "startup_idle.light": lambda x: rec(util=steps((8, round(x)), (0, 100 - round(x)), (97, 900))),
    "startup_idle.unused": lambda x: rec(util=np.where(x > ROWS % 100, ROWS % 2 * 40, 0)),
    "throttling.near_limit": lambda x: hot(
        part(1200, 1400, 60, 100), part(95 - x, 70, 60, 100), margin=part(x, 25, 60, 100)
    ),
    "throttling.problem": lambda x: bits(steps((1, round(x)), (0, 200 - round(x)))),
    "mem_leak.settled": lambda x: filling(steps((0, round(x)), (1, 100 - round(x)))),
    "mem_leak.released": lambda x: rec(
        util=np.full(900, 97.0), memory=np.r_[np.full(300, 40.0), 0.4 * x + np.linspace(0, 10, 600)]
    ),
    "pcie_degraded.problem": lambda x: link(*((4, 4) if x else (1, 16))),
    "pcie_degraded.fewest": lambda x: link(1, util=steps((0, 120 - round(x)), (97, round(x)))),
    "hollow_util.busy_share": lambda x: hollow(85, util=np.where(x > ROWS % 10, 60, 98)),
    "imbalance.differs": lambda x: rec(util=[part(97), part(x), part(97)]),
    "imbalance.agree": lambda x: rec(util=[part(97), part(50), part(x)]),
    "imbalance.shortest": lambda x: rec(util=[part(97, length=x), part(58, length=x), part(97, length=x)]),
    "unused_gpu.shortest_empty": lambda x: unused(x, memory=True),
    "zombie_memory.load": lambda x: held(40, cpu=(60, x)),
    "zombie_memory.core": lambda x: held(40, cpu=(60, 5), core=(90, x)),
    "full_precision.capability": lambda x: rec(
        util=np.full(300, 97.0), tensor_active=0.2, model=f"NVIDIA {'A100' if x > 7 else 'P100'}"
    ),
    "rate_falls.fall": lambda x: paced(steps((500, 100), (500 - 5 * x, 100))),
    "rate_falls.shortest": lambda x: paced(steps((500, 120), (300, round(x / 5)))),
    "slow_gpu.slower": lambda x: one_of_four(1410, 1410 - 14.1 * x),
    "slow_gpu.weaker": lambda x: one_of_four(300, 300 - 3 * x, "power"),
    "unexplained_change.fall": lambda x: rec(util=97, clock=steps((1400, 400), (1400 - 14 * x, 400))),
    "unexplained_change.weaker": lambda x: rec(util=97, power=steps((300, 400), (300 - 3 * x, 400))),
    "unexplained_change.uneven": lambda x: rec(util=[np.full(900, 95 - x * odd) for odd in (0, 0, 1, 1, 0, 0)]),
}
"""What makes a run of a number where `limits.tsv` does not say it."""


def value_of(text: str, x: float) -> Any:
    """Return a number, the series `level*count,...`, or that of `part`, whose arguments have colons between them."""
    if ":" in text:
        return part(*(value_of(each, x) for each in text.split(":")))
    if "*" in text:
        levels = ([value_of(each, x) for each in piece.split("*")] for piece in text.split(","))
        return steps(*((level, round(count)) for level, count in levels))
    return x if text == "x" else int(text) if text.isdigit() else float(text)


def make_run(label: str, recipe: str, x: float) -> Any:
    """Return the run of a number x: a recipe is the name of a function of this module, and its arguments."""
    if recipe == "-":
        return LIMITS[label](x)
    maker, *words = recipe.split()
    given = [(word.rpartition("=")[0], value_of(word.rpartition("=")[2], x)) for word in words]
    named = {name: value for name, value in given if name}
    return globals()[maker](*(value for name, value in given if not name), **named)


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
    for label, other, recipe, quiet, loud, moved, *said in rows:
        (rule, _, name), expected = label.partition("."), "".join(said) or "0"
        kind = rule if other == "-" else other
        got = [outcome(rule, kind, make_run(label, recipe, float(number)), expected, {}) for number in (quiet, loud)]
        by_setting = outcome(rule, kind, make_run(label, recipe, float(loud)), expected, {name: float(moved)})
        assert (got[0], by_setting, got[1] in {expected, "0"}) == (expected, expected, False), (label, *got)
    surface = (Path(__file__).parents[1] / "golden/surface.txt").read_text(encoding="utf-8").splitlines()
    settings = {line.removeprefix("setting rules.") for line in surface if line.startswith("setting rules.")}
    # no row moves this one yet
    assert settings - {label for label, *_ in rows} <= {"gpu_lost.said"}
