"""GPU memory, precision, progress of validation metrics, and GPUs larger than a job needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport.testing import GIB, Floats, Recording, steps, with_params, with_training
from tests.analysis.tables import Hold, rec

UTIL = steps((0, 20), (97, 280))


def growing(peak: float) -> Floats:
    """Return memory that an allocator takes in steps, the last of which comes in the middle of the run."""
    return np.concatenate([np.zeros(10), np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, 120), (peak, 150))])


def with_memory(memory: Any, util: Any = UTIL, **known: Any) -> Recording:
    return rec(util=util, memory=memory, **known)


def test_room_pressure_and_preallocation_exclude_each_other(hold: Hold) -> None:
    again = np.concatenate([steps((0, 10)), np.tile(steps((62, 100), (20, 20)), 5)])
    rare = with_memory(steps((0, 1), (50.2, 60)), steps((0, 1), (98, 60)), every=1000.0)
    full = with_memory(steps((0, 7), (78, 53)), steps((0, 7), (97, 53)), every=10.0)
    table = {
        "room": with_memory(growing(30)),
        "pressure": with_memory(growing(78)),
        "preallocation": with_memory(steps((0, 10), (62, 290))),
        "well filled": with_memory(growing(66)),
        "reserved memory not known": with_memory(growing(75)),
        "less reserved memory": with_memory(growing(75), reserved=4 * GIB),
        "a reserve of all of it": with_memory(growing(30), reserved=80 * GIB),
        "the fullest GPU decides": with_memory([growing(20), growing(60)]),
        "the fuller of two": with_memory([growing(79.92), growing(20)]),
        "a step that goes on growing": with_memory(np.concatenate([np.zeros(10), np.linspace(60, 63, 290)])),
        "a bare context": with_memory(steps((0.5, 300)), np.zeros(300)),
        "given back and taken again": with_memory(again, np.full(len(again), 97.0)),
        "never moves, full": with_memory(steps((78.0, 300))),
        "never moves, with room": with_memory(steps((30.0, 300))),
        "little for a GPU that works": with_memory(steps((0.5, 20), (2.5, 280))),
        "beside an unused GPU": with_memory([growing(2.5), np.full(300, 0.5)], [UTIL, np.zeros(300)]),
        "a small step that stays": with_memory(steps((0.6, 10), (7.3, 290))),
        "16 min between samples": rare,
        "released at the end": with_memory(steps((0, 10), (62, 280), (0, 10))),
        "5 s between samples": with_memory(steps((0, 14), (78, 106)), steps((0, 14), (97, 106)), every=5.0),
        "10 s between samples": full,
        "no size": with_memory(growing(30), memory_total=None),
    }
    hold("mem_headroom, mem_pressure, mem_prealloc", table)


LONG = steps((0, 20), (97, 1200))


def leaking(per_minute: float, start: float = 20.0) -> Floats:
    grown = start + per_minute * np.arange(1200) / 60
    return np.concatenate([np.zeros(20), np.floor(grown * 50) / 50])


def test_memory_that_keeps_growing(hold: Hold) -> None:
    first, second = leaking(2.0)[20:], leaking(2.0)[20:400]
    restarted = with_memory(
        np.concatenate([np.zeros(20), first, np.zeros(30), second]),
        np.concatenate([steps((0, 20), (97, 1200)), steps((0, 30)), steps((97, 380))]),
    )
    times = np.concatenate([np.arange(620), 1800 + np.arange(600)]).astype(np.float64)
    holed = np.concatenate([np.zeros(20), 20 + 0.5 * (times[20:] - 20) / 60])
    table = {
        "half a GiB a minute": with_memory(leaking(0.5), LONG),
        "0.4 GiB an hour": with_memory(10 + 0.4 * np.arange(3000) / 120, steps((97, 3000)), every=30.0),
        "less what the driver keeps": with_memory(leaking(0.5), LONG, reserved=10 * GIB),
        "up to a restart": restarted,
        "over a hole in the log": with_memory(holed, LONG, times=times),
        "one of two GPUs": with_memory([steps((0, 20), (30, 1200)), leaking(0.5)], LONG),
        "thirty samples": with_memory(np.linspace(10, 40, 30), steps((97, 30)), every=60.0),
        "warm-up": with_memory(np.concatenate([np.zeros(20), np.linspace(20, 60, 250), np.full(950, 60.0)]), LONG),
        "running maximum": with_memory(np.concatenate([np.zeros(20), 60 - 40 * np.exp(-np.arange(1200) / 150)]), LONG),
        "one step": with_memory(np.concatenate([np.zeros(20), np.full(600, 20.0), np.full(600, 40.0)]), LONG),
        "sawtooth": with_memory(np.concatenate([np.zeros(20), np.tile(np.linspace(20, 30, 60), 20)]), LONG),
        "reserved at once": with_memory(steps((0, 20), (62, 1200)), LONG),
        "16 samples": with_memory(np.linspace(10, 40, 20), steps((97, 20)), every=60.0),
        "no size": with_memory(leaking(0.5), LONG, memory_total=None),
    }
    hold("mem_leak", table)


def test_what_rules_out_preallocation_and_room(hold: Hold) -> None:
    table = {
        f"{peak} GiB in {seconds} s": with_memory(
            steps((0.9 * peak, seconds // 2), (peak, seconds // 2)), steps((97, seconds))
        )
        for seconds, peak in ((30, 52), (120, 52), (30, 30), (120, 30))
    }
    grown = {"a leak": with_memory(np.linspace(1, 40, 300), steps((97, 300)))}
    hold("mem_headroom, mem_prealloc, mem_leak", table | grown)


def test_memory_held_after_the_work(hold: Hold) -> None:
    hold("zombie_memory")


BUSY = steps((97, 300))
NAN = float("nan")


def test_full_precision(hold: Hold) -> None:
    run, idle = rec(util=BUSY), rec(util=steps((0, 300)))
    mixed = rec(util=97.0, tensor_active=[[30.0] * 300, [NAN] * 300])
    table = {
        "tensor activity decides": with_params(rec(util=BUSY, tensor_active=30), precision="32"),
        "P100": with_params(rec(util=BUSY, model="Tesla P100-PCIE-16GB"), precision="32"),
        "GTX 1080": with_params(rec(util=BUSY, model="NVIDIA GeForce GTX 1080"), precision="32"),
        "an idle GPU in 16 bits": with_params(idle, precision="bf16"),
        "counts of one GPU, in 16 bits": with_params(mixed, precision="bf16"),
        "idle tensor cores": rec(util=steps((97, 250), (0, 50)), tensor_active=steps((0.2, 250), (0, 50))),
        "by params": with_params(run, precision="32-true"),
        "unknown GPU": rec(util=BUSY, model="Some GPU", tensor_active=0),
        "no work": idle,
        "no work, in 32 bits": with_params(idle, precision="32"),
        "counts of one GPU": mixed,
    }
    hold("full_precision", table)


EVERY = 100.0
"""Seconds between evaluations: 20 of them in the 2000 s a job works."""
Points = list[tuple[float | None, str, float | None]]


def evaluated(name: str, values: Sequence[float] | Floats, *, every: float = EVERY) -> Points:
    return [((place + 1) * every, name, float(value)) for place, value in enumerate(values)]


def trained(points: Points, *, gpus: int = 1, util: Floats | None = None) -> Recording:
    used = np.full(2001, 97.0) if util is None else util
    return with_training(rec(util=[used] * gpus), points)


def valley(rows: int, best: int) -> Floats:
    return 1.0 + 0.01 * np.abs(np.arange(rows) - best)


def test_no_progress(hold: Hold) -> None:
    loss, accuracy = evaluated("val_loss", valley(20, 3)), evaluated("val_acc", 2 - valley(20, 8))
    others = evaluated("train_loss", np.linspace(2, 0, 20)) + evaluated("test_acc", [0.1, 0.9], every=990.0)
    lost = evaluated("val_loss", [*np.linspace(2, 1, 10), NAN, -np.inf, *[NAN] * 8])
    flat = np.concatenate([[2, 1.5, 1.2, 1.0], 1.1 + 0.05 * np.sin(np.arange(16) * 2.3)])
    best = evaluated("val_loss", valley(20, 4))
    first = with_training(rec(util=np.full(2001, 97.0)), evaluated("loss", np.linspace(2, 0, 20)))
    chunked = replace(first, training=pa.concat_tables([first.training, with_training(first, best).training]))
    noise = [np.random.default_rng(seed).normal(0, 0.03, 20) for seed in range(20)]
    table = {
        "the time of both GPUs": trained(best, gpus=2),
        "in any order": trained(best[::-1], gpus=2),
        "an accuracy": trained(evaluated("eval/accuracy", 2 - valley(20, 9))),
        "the first of equal values": trained(evaluated("val_acc", np.minimum(np.arange(20) * 0.1, 1.0))),
        "noise without progress": trained(evaluated("val_loss", flat)),
        "the last of two metrics": trained(loss + accuracy + others),
        "lost values": trained([*lost, (1950.0, "val_loss", None)]),
        "not the tail": trained(best, util=steps((97, 2000), (0, 600))),
        "best before the log": trained([(-5000.0, "val_loss", 0.5), *best]),
        "evaluations that stopped": trained(evaluated("val_loss", valley(12, 4))),
        "a table in chunks": chunked,
        "improves": trained(evaluated("val_loss", np.linspace(2, 1, 20))),
        "an accuracy that rises": trained(evaluated("eval/accuracy", np.linspace(0.1, 0.9, 20))),
        "another metric improves": trained(loss + evaluated("val_acc", np.linspace(0.1, 0.9, 20)) + others),
        "improves until evaluations stop": trained(evaluated("val_loss", np.linspace(2, 1, 12))),
        "better after the last sample": trained([*best, (2500.0, "val_loss", 0.5)]),
        **{
            f"noise {seed}": trained(evaluated("val_loss", np.linspace(2, 1, 20) + one))
            for seed, one in enumerate(noise)
        },
        "no numbers": trained(evaluated("val_loss", [NAN] * 20)),
        "one": trained(evaluated("val_loss", valley(1, 0))),
        "two of eight processes": trained(evaluated("val_loss", [2.0, 3.0]) * 8),
        "no metrics": trained([]),
        "a training loss": trained(evaluated("loss", np.ones(20))),
        "a time": trained(evaluated("eval/step_time", np.ones(20))),
        "no times": trained([(None, "val_loss", 1.0)] * 20),
    }
    hold("no_progress", table)


SOME, MEMORY = np.tile([25.0, 15.0], 400), np.concatenate([np.linspace(1, 10, 100), np.full(700, 10.0)])


def sized(util: Any = SOME, memory: Any = MEMORY, **known: Any) -> Recording:
    return rec(util=util, memory=memory, **known)


def test_gpus_larger_than_needed(hold: Hold) -> None:
    table = {
        "fits an A10": sized(),
        "bfloat16 needs compute capability 8.0": sized(np.tile([12.4, 12.2], 400), np.minimum(MEMORY, 8.0)),
        "the smallest": sized(model="NVIDIA L4", memory_total=24 * 2**30),
        "the busier of two": sized([SOME, np.full(800, 97.0)], [MEMORY, MEMORY]),
        "reserved memory": sized(memory=steps((0.5, 10), (60, 790))),
        "5 min": sized(SOME[:300], MEMORY[:300]),
        **{model: sized(model=model) for model in ("Some GPU", "NVIDIA GeForce RTX 3090", "NVIDIA GH200 480GB")},
    }
    hold("oversized_gpu", table)
    hold("summaries", {name: table[name] for name in ("fits an A10", "bfloat16 needs compute capability 8.0")})
