"""A rate that falls, a GPU slower than equal ones, changes that nothing explains; and what is none of them."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, Stage, analyze, at, steps, with_host, with_training
from tests.analysis.tables import Hold, rec


def noisy(values: Floats, part: float, seed: int = 1) -> Floats:
    return values * (1 + part * np.random.default_rng(seed).standard_normal(len(values)))


def rated(rates: Floats, name: str = "samples_per_second", every: float = 5.0, **series: Any) -> Recording:
    """Return a busy GPU beside a training log with a value every 5 s."""
    times = 20 + every * np.arange(len(rates))
    run = rec(**({"util": np.full(int(times[-1]) + 1, 97.0)} | series))
    return with_training(run, [(float(second), name, float(rate)) for second, rate in zip(times, rates, strict=True)])


def beside(rates: Floats, **host: Floats) -> Recording:
    """Return the same with a host, of which a value is sampled every 5 s."""
    return with_host(rated(rates), 20 + 5.0 * np.arange(len(rates)), **host)


STEP, DRIFT = noisy(steps((500, 200), (300, 200)), 0.02), noisy(np.linspace(500, 200, 400), 0.03)
GPU: dict[str, Any] = {"util": np.full(2020, 97.0)}


def test_rate_falls(hold: Hold) -> None:
    slower = [*range(1000), *range(1000, 2000, 2)]
    table = {
        "a step": rated(STEP),
        "a steady drift": rated(DRIFT),
        "seconds of a step": rated(64 / STEP, "step_time"),
        "seconds per iteration": rated(64 / STEP, "sec_per_iter"),
        "tokens": rated(80 * STEP, "tokens_per_sec"),
        # a loss and its step, one a second at first, one every other second later
        "the step alone": with_training(rec(util=[97] * 2001), [(float(at), "loss", 1.0) for at in slower]),
        "the clock": rated(STEP, **GPU, clock=steps((1410, 1020), (900, 1000))),
        "full memory": rated(STEP, **GPU, power=steps((300, 1020), (140, 1000)), memory=steps((60, 1020), (79, 1000))),
        "less power": rated(STEP, **GPU, power=steps((300, 1020), (200, 1000)), memory=60),
        "storage": beside(STEP, cpu_iowait_ratio=steps((0.01, 200), (0.25, 200))),
        "reading": beside(STEP, host_disk_read_bytes_per_second=steps((4e7, 200), (4e8, 200))),
        "host memory": beside(STEP, host_memory_used_ratio=steps((0.5, 200), (0.97, 200))),
        "a warm-up": rated(noisy(steps((90, 20), (500, 380)), 0.02)),
        "a last batch": rated(noisy(steps((500, 397), (90, 3)), 0.02)),
        "pauses of every epoch": rated(np.where(np.arange(400) % 50 < 3, 100, STEP[0])),
        "scatter": rated(noisy(steps((500, 400)), 0.3)),
        "validation alone": rated(STEP, "val_samples_per_second"),
    }
    hold("rate_falls", table)
    hold("summaries", {"the clock": table["the clock"]})


def four(odd: Floats, usual: float = 1410, **series: Any) -> Recording:
    clocks = [noisy(np.full(len(odd), usual), 0.003, seed) for seed in (1, 2)]
    return rec(**({"util": 97} | series), clock=[clocks[0], clocks[1], noisy(odd, 0.003), clocks[0]])


def test_slow_gpu(hold: Hold) -> None:
    half = np.full(900, 700.0)
    equal, models = four(half), list(four(half).run.devices)
    models[2] = replace(models[2], model="NVIDIA L40S")
    hot = [np.full(900, each) for each in (60.0, 62.0, 88.0, 61.0)]
    table = {
        "at half": four(half),
        "7% slower": four(np.full(900, 1311.0)),
        "hotter": four(half, temperature=hot),
        "all at the limit": four(np.full(900, 1250.0), power=395, power_limit=400, sw_power_cap=1),
        "heat": four(half, temperature=hot, sw_thermal_slowdown=[np.arange(900) * 0 + (gpu == 2) for gpu in range(4)]),
        "a pair": rec(util=97, clock=[np.full(900, 1410.0), noisy(half, 0.003)]),
        "two of six": rec(util=97, clock=[np.full(600, clock) for clock in (1410, 900, 1400, 905, 1405, 1410)]),
        "power alone": rec(util=97, power=[np.full(600, watts) for watts in (300, 305, 210, 300)]),
        "half of eight": rec(
            util=97, clock=[noisy(np.full(900, clock), 0.003, int(clock)) for clock in (1450, 1800) * 4]
        ),
        "busier for it": four(half, util=[np.full(900, used) for used in (82, 80, 100, 81)]),
        "busier with more work": four(np.full(900, 1300.0), util=[np.full(900, used) for used in (62, 60, 97, 61)]),
        "a minute of a quarter": four(steps((1410, 600), (900, 300))),
        "all scatter": rec(util=97, clock=[np.full(600, clock) for clock in (1410, 1340, 1270, 1200)]),
        "less busy": four(half, util=[np.full(900, used) for used in (97, 97, 60, 97)]),
        "another model": replace(equal, run=replace(equal.run, devices=tuple(models))),
        "a brief difference at a time": four(np.where(np.arange(900) % 300 < 60, 700.0, 1410.0)),
    }
    hold("slow_gpu", table)


def test_unexplained_change(hold: Hold) -> None:
    uneven = [noisy(np.full(900, used), 0.05, seed) for seed, used in enumerate((90, 90, 54, 54, 90, 90))]
    table = {
        "in heat": rec(util=97, clock=steps((1410, 900), (1100, 900)), temperature=steps((60, 900), (72, 900))),
        "power": rec(util=97, power=noisy(steps((300, 900), (240, 900)), 0.05)),
        "a rate": rated(noisy(steps((500, 200), (440, 200)), 0.01)),
        "two of six": rec(util=uneven),
        "memory that fills up": rec(
            util=97, power=noisy(steps((300, 900), (230, 900)), 0.05), memory=steps((60, 900), (79.5, 900))
        ),
        "hot all along": rec(
            util=97, clock=noisy(np.full(900, 1140.0), 0.02), clock_max=1627, power=150, power_limit=400, temperature=88
        ),
        "hot at a high clock": rec(
            util=97, clock=noisy(np.full(900, 1500.0), 0.02), clock_max=1627, power=150, power_limit=400, temperature=88
        ),
        "scatter": rec(util=97, power=noisy(np.full(1800, 300.0), 0.15), clock=noisy(np.full(1800, 1400.0), 0.03)),
        "a falling rate": rated(STEP, **GPU, clock=steps((1410, 1020), (900, 1000))),
    }
    hold("unexplained_change", table)
    hold("summaries")


def test_what_the_job_names_is_no_change(hold: Hold) -> None:
    run = rec(util=97, power=steps((300, 1500), (220, 300)))
    points = [(5.0 * place, "samples_per_second", 500.0) for place in range(300)]
    begun = Stage(name="finetune", start=at(1500), end=at(1800))
    series = {"power": steps((300, 600), (60, 120), (220, 600)), "memory": steps((60, 600), (0.4, 120), (60, 600))}
    table = {
        "nothing named": with_training(run, points),
        "an evaluation": with_training(run, [*points, (1795.0, "val_loss", 0.4)]),
        "a stage": replace(run, run=replace(run.run, stages=(begun,))),
        "another job": rec(util=steps((97, 600), (0, 120), (97, 600)), **series),
    }
    hold("unexplained_change", table)


def test_a_clock_that_leaps_by_years_takes_little_memory() -> None:
    levels = [np.full(200, clock) for clock in (1410, 1100)]
    run = rec(util=[np.full(200, 97)] * 2, clock=levels, times=np.r_[0:100, 1e9 : 1e9 + 100])
    tracemalloc.start()
    analyze(run)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**27
