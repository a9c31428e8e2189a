"""Precision, progress of validation metrics, and GPUs larger than a job needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpureport.testing import Floats, Recording, analyze, findings_of, steps, unjudged, with_params, with_training
from tests.analysis.tables import Table, check, rec, want

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
        "the best stands for a fifth": want(trained(evaluated("val_loss", valley(20, 15)))),
        "improves": trained(evaluated("val_loss", np.linspace(2, 1, 20))),
        "an accuracy that rises": trained(evaluated("eval/accuracy", np.linspace(0.1, 0.9, 20))),
        "stands for less than a fifth": trained(evaluated("val_loss", valley(20, 16))),
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
        "nine": evaluated("val_loss", valley(9, 0)),
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
        "busy": sized(97),
        "full": sized(memory=MEMORY * 5.5),
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
