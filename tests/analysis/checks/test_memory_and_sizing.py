"""GPU memory, precision, progress of validation metrics, and GPUs larger than a job needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpureport.testing import GIB, Floats, Recording, analyze, findings_of, steps, unjudged, with_params, with_training
from tests.analysis.tables import Table, check, rec, want

UTIL = steps((0, 20), (97, 280))
KINDS = ("mem_headroom", "mem_pressure", "mem_prealloc")


def growing(peak: float) -> Floats:
    """Return memory that an allocator takes in steps, the last of which comes in the middle of the run."""
    return np.concatenate([np.zeros(10), np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, 120), (peak, 150))])


def with_memory(memory: Any, util: Any = UTIL, **known: Any) -> Recording:
    return rec(util=util, memory=memory, **known)


def test_room_pressure_and_preallocation_exclude_each_other() -> None:
    again = np.concatenate([steps((0, 10)), np.tile(steps((62, 100), (20, 20)), 5)])
    table = {
        "room": (with_memory(growing(30)), {"mem_headroom"}),
        "pressure": (with_memory(growing(78)), {"mem_pressure"}),
        "preallocation": (with_memory(steps((0, 10), (62, 290))), {"mem_prealloc"}),
        "well filled": (with_memory(growing(66)), set()),
        "reserved memory not known": (with_memory(growing(75)), set()),
        "a reserve of all of it": (with_memory(growing(30), reserved=80 * GIB), {"mem_headroom"}),
        "the fullest GPU decides": (with_memory([growing(20), growing(60)]), set()),
        "a step that goes on growing": (with_memory(np.concatenate([np.zeros(10), np.linspace(60, 63, 290)])), set()),
        "a bare context": (with_memory(steps((0.5, 300)), np.zeros(300)), set()),
        "given back and taken again": (with_memory(again, np.full(len(again), 97.0)), set()),
    }
    for name, (run, kinds) in table.items():
        assert {one.kind for one in analyze(run).findings} & set(KINDS) == kinds, name


def test_how_full_memory_was() -> None:
    mem_pressure: Table = {
        "less reserved memory": want(with_memory(growing(75), reserved=4 * GIB), severity="warning"),
        "the fuller of two": want(with_memory([growing(79.92), growing(20)]), gpus="0"),
        "never moves": want(with_memory(steps((78.0, 300))), confidence="low", ruled_out=0),
    }
    check("mem_pressure", mem_pressure)
    mem_headroom: Table = {
        "little for a GPU that works": want(with_memory(steps((0.5, 20), (2.5, 280))), confidence="high"),
        "beside an unused GPU": want(with_memory([growing(2.5), np.full(300, 0.5)], [UTIL, np.zeros(300)]), gpus="0"),
        "never moves": want(with_memory(steps((30.0, 300))), confidence="low", ruled_out=0),
        "a small step that stays": want(with_memory(steps((0.6, 10), (7.3, 290))), ruled_out=1),
    }
    check("mem_headroom", mem_headroom)
    rare = with_memory(steps((0, 1), (50.2, 60)), steps((0, 1), (98, 60)), every=1000.0)
    check("mem_headroom", {"16 min between samples": want(rare, confidence="low", ruled_out=0)})
    full = with_memory(steps((0, 7), (78, 53)), steps((0, 7), (97, 53)), every=10.0)
    mem_prealloc: Table = {
        "released at the end": want(with_memory(steps((0, 10), (62, 280), (0, 10))), severity="info"),
        "5 s between samples": want(with_memory(steps((0, 14), (78, 106)), steps((0, 14), (97, 106)), every=5.0)),
        "10 s between samples": (full, "coarse_samples"),
        "16 min between samples": (rare, "coarse_samples"),
    }
    check("mem_prealloc", mem_prealloc)
    check("mem_pressure", {"10 s between samples": (full, "coarse_samples")})
    check("mem_headroom", {"10 s between samples, full": full})
    assert not {step.name for one in analyze(full).findings for step in one.steps} & {"larger_batch", "lower_peak"}
    for kind in KINDS:
        check(
            kind,
            {
                "no memory": (rec(util=UTIL), "not_recorded", "gpu_memory_used_bytes"),
                "no size": (with_memory(growing(30), memory_total=None), "not_recorded", "gpu_memory_total_bytes"),
            },
        )


LONG = steps((0, 20), (97, 1200))


def leaking(per_minute: float, start: float = 20.0) -> Floats:
    grown = start + per_minute * np.arange(1200) / 60
    return np.concatenate([np.zeros(20), np.floor(grown * 50) / 50])


def test_memory_that_keeps_growing() -> None:
    first, second = leaking(2.0)[20:], leaking(2.0)[20:400]
    restarted = with_memory(
        np.concatenate([np.zeros(20), first, np.zeros(30), second]),
        np.concatenate([steps((0, 20), (97, 1200)), steps((0, 30)), steps((97, 380))]),
    )
    times = np.concatenate([np.arange(620), 1800 + np.arange(600)]).astype(np.float64)
    holed = np.concatenate([np.zeros(20), 20 + 0.5 * (times[20:] - 20) / 60])
    half = 0.5 * GIB / 60
    table: Table = {
        "half a GiB a minute": want(
            with_memory(leaking(0.5), LONG),
            severity="problem",
            confidence="high",
            spans=[(260, 1219)],
            within=5,
            evidence={"gpu_memory_used_bytes": (half, 0.1), "time until memory is full": 6000.0},
        ),
        "0.4 GiB an hour": want(
            with_memory(10 + 0.4 * np.arange(3000) / 120, steps((97, 3000)), every=30.0), severity="warning"
        ),
        "less what the driver keeps": want(
            with_memory(leaking(0.5), LONG, reserved=10 * GIB), evidence={"time until memory is full": 4800.0}
        ),
        "up to a restart": want(
            restarted, spans=[(260, 1219)], within=12, evidence={"gpu_memory_used_bytes": 4 * half}
        ),
        "over a hole in the log": want(with_memory(holed, LONG, times=times), evidence={"gpu_memory_used_bytes": half}),
        "one of two GPUs": want(with_memory([steps((0, 20), (30, 1200)), leaking(0.5)], LONG), gpus="1"),
        "thirty samples": want(with_memory(np.linspace(10, 40, 30), steps((97, 30)), every=60.0), confidence="medium"),
        "warm-up": with_memory(np.concatenate([np.zeros(20), np.linspace(20, 60, 250), np.full(950, 60.0)]), LONG),
        "running maximum": with_memory(np.concatenate([np.zeros(20), 60 - 40 * np.exp(-np.arange(1200) / 150)]), LONG),
        "one step": with_memory(np.concatenate([np.zeros(20), np.full(600, 20.0), np.full(600, 40.0)]), LONG),
        "sawtooth": with_memory(np.concatenate([np.zeros(20), np.tile(np.linspace(20, 30, 60), 20)]), LONG),
        "reserved at once": (with_memory(steps((0, 20), (62, 1200)), LONG), "memory_reserved_at_once"),
        "16 samples": (with_memory(np.linspace(10, 40, 20), steps((97, 20)), every=60.0), "too_few_samples"),
        "no memory": (rec(util=LONG), "not_recorded", "gpu_memory_used_bytes"),
        "no size": (with_memory(leaking(0.5), LONG, memory_total=None), "not_recorded", "gpu_memory_total_bytes"),
    }
    check("mem_leak", table)


def test_what_rules_out_preallocation_and_room() -> None:
    for seconds, peak in ((30, 52), (120, 52), (30, 30), (120, 30)):
        memory = steps((0.9 * peak, seconds // 2), (peak, seconds // 2))
        analysis = analyze(with_memory(memory, steps((97, seconds))))
        (room,) = findings_of(analysis, "mem_headroom")
        is_assessed = seconds > 60 or peak < 48
        assert (unjudged(analysis, "mem_prealloc") == []) == is_assessed, (seconds, peak)
        assert (bool(room.ruled_out), str(room.confidence)) == (is_assessed, "high" if is_assessed else "medium")
    analysis = analyze(with_memory(np.linspace(1, 40, 300), steps((97, 300))))
    assert [one.kind for one in analysis.findings if one.kind in {"mem_leak", "mem_headroom"}] == ["mem_leak"]
    assert [entry.code for entry in unjudged(analysis, "mem_headroom")] == ["memory_keeps_growing"]


ENDED, HELD = steps((0, 20), (97, 280), (0, 300)), steps((0, 5), (40, 595))


def test_memory_held_after_the_work() -> None:
    cpu = steps((60, 300), (2, 300))
    table: Table = {
        "held": want(with_memory(HELD, ENDED), spans=[(299.5, 599)], within=2, severity="warning", confidence="medium"),
        "beside an idle CPU": want(with_memory(HELD, ENDED, cpu=cpu, host={"core": cpu}), confidence="high"),
        "released": with_memory(steps((0, 5), (40, 300), (0, 295)), ENDED),
        "mostly released": with_memory(steps((0, 5), (40, 300), (15, 295)), ENDED),
        "was there before": with_memory(40.0, ENDED),
        "there from the first row on": with_memory(40.0, steps((97, 300), (0, 300))),
        "a context": with_memory(steps((0, 5), (0.4, 595)), ENDED),
        "CPU busy": with_memory(HELD, ENDED, cpu=steps((60, 300), (40, 300))),
        "a core busy": with_memory(
            HELD, ENDED, cpu=steps((60, 300), (5, 300)), host={"core": steps((90, 300), (99, 300))}
        ),
        "another GPU works": with_memory(HELD, [ENDED, steps((97, 600))]),
        "no memory": (rec(util=ENDED), "not_recorded", "gpu_memory_used_bytes"),
    }
    check("zombie_memory", table)


BUSY = steps((97, 300))
NAN = float("nan")


def test_full_precision() -> None:
    run = rec(util=BUSY)
    idle, mixed = rec(util=steps((0, 300))), rec(util=97.0, tensor_active=[[30.0] * 300, [NAN] * 300])
    silent = {
        "tensor activity decides": with_params(rec(util=BUSY, tensor_active=30), precision="32"),
        "P100": with_params(rec(util=BUSY, model="Tesla P100-PCIE-16GB"), precision="32"),
        "GTX 1080": with_params(rec(util=BUSY, model="NVIDIA GeForce GTX 1080"), precision="32"),
        "an idle GPU in 16 bits": with_params(idle, precision="bf16"),
        "counts of one GPU, in 16 bits": with_params(mixed, precision="bf16"),
    }
    check("full_precision", silent)
    assert [name for name, each in silent.items() if unjudged(analyze(each), "full_precision")] == []
    unknown = rec(util=BUSY, model="Some GPU", tensor_active=0)
    table: Table = {
        "idle tensor cores": want(
            rec(util=steps((97, 250), (0, 50)), tensor_active=steps((0.2, 250), (0, 50))),
            severity="info",
            confidence="high",
            spans=[],
        ),
        "by params": want(with_params(run, precision="32-true"), confidence="medium"),
        "unknown GPU": (unknown, "gpu_not_in_table"),
        "neither params nor counters": (run, "precision_not_recorded"),
        "no work": (idle, "precision_not_recorded"),
        "no work, in 32 bits": (with_params(idle, precision="32"), "precision_not_recorded"),
        "counts of one GPU": (mixed, "gpu:1 precision_not_recorded"),
    }
    check("full_precision", table)


def test_what_params_say_of_precision() -> None:
    """Any that says less than 32 bits decides; names of something else say nothing."""
    full = (
        "precision=32;precision=fp32;torch_dtype=torch.float32;fp16=False bf16=False;use_amp=false;mixed_precision=no"
    )
    reduced = (
        "trainer/precision=16-mixed;precision=bf16-mixed;fp16=False bf16=True;model.dtype=bfloat16 amp=False;"
        "mixed_precision=bf16"
    )
    silent = "dtype=auto;precision=0.93;data_dtype=float32;fp16_opt_level=O1;learning_rate=32;"
    for expected, texts in ((True, full), (False, reduced), (None, silent)):
        for text in texts.split(";"):
            analysis = analyze(with_params(rec(util=BUSY), **dict(pair.split("=") for pair in text.split())))
            unknown = None if unjudged(analysis, "full_precision") else False
            assert (True if findings_of(analysis, "full_precision") else unknown) is expected, text


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


def test_no_progress() -> None:
    loss, accuracy = evaluated("val_loss", valley(20, 3)), evaluated("val_acc", 2 - valley(20, 8))
    others = evaluated("train_loss", np.linspace(2, 0, 20)) + evaluated("test_acc", [0.1, 0.9], every=990.0)
    lost = [*np.linspace(2, 1, 10), NAN, -np.inf, *[NAN] * 8]
    flat = np.concatenate([[2, 1.5, 1.2, 1.0], 1.1 + 0.05 * np.sin(np.arange(16) * 2.3)])
    first = with_training(rec(util=np.full(2001, 97.0)), evaluated("loss", np.linspace(2, 0, 20)))
    second = with_training(first, evaluated("val_loss", valley(20, 4)))
    chunked = replace(first, training=pa.concat_tables([first.training, second.training]))
    early: Points = [(-5000.0, "val_loss", 0.5), *evaluated("val_loss", valley(20, 4))]
    untimed: Points = [(None, "val_loss", 1.0)] * 20
    facts = {"severity": "info", "confidence": "medium", "gpus": "", "lost": 3000, "near": 2}
    table: Table = {
        "the time of both GPUs": want(
            trained(evaluated("val_loss", valley(20, 4)), gpus=2),
            spans=[(500, 2000)],
            evidence={"share of the job": 0.75, "count": 20, "val_loss": 1.0},
            **facts,
        ),
        "in any order": want(trained(evaluated("val_loss", valley(20, 4))[::-1], gpus=2), spans=[(500, 2000)], **facts),
        "an accuracy": want(trained(evaluated("eval/accuracy", 2 - valley(20, 9))), spans=[(1000, 2000)]),
        "the first of equal values": want(
            trained(evaluated("val_acc", np.minimum(np.arange(20) * 0.1, 1.0))), spans=[(1100, 2000)]
        ),
        "noise without progress": want(trained(evaluated("val_loss", flat)), spans=[(400, 2000)]),
        "the last of two metrics": want(trained(loss + accuracy + others), spans=[(900, 2000)]),
        "lost values": want(
            trained([*evaluated("val_loss", lost), (1950.0, "val_loss", None)]), spans=[(1000, 2000)], samples=10
        ),
        "not the tail": want(
            trained(evaluated("val_loss", valley(20, 4)), util=steps((97, 2000), (0, 600))),
            spans=[(500, 2000)],
            within=2,
        ),
        "best before the log": want(trained(early), spans=[(0, 2000)]),
        "evaluations that stopped": want(trained(evaluated("val_loss", valley(12, 4))), spans=[(500, 1300)]),
        "a table in chunks": want(chunked, spans=[(500, 2000)]),
        "improves": trained(evaluated("val_loss", np.linspace(2, 1, 20))),
        "an accuracy that rises": trained(evaluated("eval/accuracy", np.linspace(0.1, 0.9, 20))),
        "another metric improves": trained(loss + evaluated("val_acc", np.linspace(0.1, 0.9, 20)) + others),
        "improves until evaluations stop": trained(evaluated("val_loss", np.linspace(2, 1, 12))),
        "better after the last sample": trained([*evaluated("val_loss", valley(20, 4)), (2500.0, "val_loss", 0.5)]),
        **{
            f"noise {seed}": trained(
                evaluated("val_loss", np.linspace(2, 1, 20) + np.random.default_rng(seed).normal(0, 0.03, 20))
            )
            for seed in range(20)
        },
    }
    check("no_progress", table)
    few: dict[str, Points] = {
        "no numbers": evaluated("val_loss", [NAN] * 20),
        "one": evaluated("val_loss", valley(1, 0)),
        "two of eight processes": evaluated("val_loss", [2.0, 3.0]) * 8,
        "no metrics": [],
        "a training loss": evaluated("loss", np.ones(20)),
        "a time": evaluated("eval/step_time", np.ones(20)),
        "no times": untimed,
    }
    check("no_progress", {name: (trained(points), "too_few_evaluations") for name, points in few.items()})


SOME, MEMORY = np.tile([25.0, 15.0], 400), np.concatenate([np.linspace(1, 10, 100), np.full(700, 10.0)])


def sized(util: Any = SOME, memory: Any = MEMORY, **known: Any) -> Recording:
    return rec(util=util, memory=memory, **known)


def test_gpus_larger_than_needed() -> None:
    facts = {"severity": "info", "confidence": "low", "lost": None}
    large = findings_of(analyze(sized()), "oversized_gpu")[0].evidence[1].observed
    assert large == pytest.approx(0.2 * 2039 / 600, abs=0.01)
    older = findings_of(analyze(sized(np.tile([12.4, 12.2], 400), np.minimum(MEMORY, 8.0))), "oversized_gpu")[0].summary
    assert not {"T4", "V100", "P100"} & set(older.split()), "what runs in bfloat16 needs compute capability 8.0"
    table: Table = {
        "fits an A10": want(sized(), **facts),
        "the smallest": sized(model="NVIDIA L4", memory_total=24 * 2**30),
        "the busier of two": sized([SOME, np.full(800, 97.0)], [MEMORY, MEMORY]),
        "reserved memory": (sized(memory=steps((0.5, 10), (60, 790))), "memory_reserved_at_once"),
        "5 min": (sized(SOME[:300], MEMORY[:300]), "too_short"),
        **{
            model: (sized(model=model), "gpu_not_in_table")
            for model in ("Some GPU", "NVIDIA GeForce RTX 3090", "NVIDIA GH200 480GB")
        },
    }
    check("oversized_gpu", table)
