"""Which steps a finding gets, by what the run shows; asserted by the names of steps."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import (
    Finding,
    Floats,
    Recording,
    Source,
    analyze,
    findings_of,
    steps,
    unjudged,
    with_host,
    with_params,
    with_training,
)
from tests.analysis.tables import rec

SECONDS = 960


def phase(*levels: float) -> Floats:
    return steps(*((level, SECONDS // 3) for level in levels))


def job(util: Any, *, peak: float = 32.0, cpu: Any = 15.0, held: float = 30.0, **series: Any) -> Recording:
    """Return a job on an A100 whose memory fills in steps, beside a host with memory and cores to spare."""
    defaults = {"iowait": 0.0, "core": 20.0, "host_memory": held}
    host = {name: np.broadcast_to(series.pop(name, level), SECONDS) for name, level in defaults.items()}
    memory = np.r_[
        np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, SECONDS // 2), (peak, SECONDS - SECONDS // 2 - 20))
    ]
    return rec(util=util, memory=memory, cpu=np.broadcast_to(cpu, SECONDS), host=host, **series)


def gaps(metric: str = "") -> Recording:
    """Return a job with a gap of 12 s each two minutes, and a metric at the end of each."""
    util = np.where(np.arange(SECONDS) % 120 >= 108, 0.0, 97.0)
    points = [(120.0 * (place + 1) - 1, metric, float(place)) for place in range(8)]
    return with_training(job(util), points) if metric else job(util)


COPIES: dict[str, Any] = {"sent": 0.5, "link_generation": 4, "link_width": 16}
HUNG: dict[str, Any] = {"power": phase(330, 150, 330), "power_limit": 400, "clock": 1410, "clock_max": 1410}
BUSY, LOW = np.full(SECONDS, 97.0), phase(97, 30, 97)
EVALUATED = [(40.0 * (place + 1), "val_loss", 1 + 0.01 * abs(place - 4)) for place in range(20)]
RUNS = {
    "cpu_bound": job(LOW, cpu=phase(20, 80, 20), core=60.0),
    "cpu_bound_single": job(phase(97, 38, 97), core=phase(60, 100, 60)),
    "io_bound": job(LOW, iowait=phase(1, 40, 1)),
    "transfer_bound": job(phase(97, 40, 97), received=phase(1, 22, 1), **COPIES),
    "host_memory_pressure": job(LOW, iowait=phase(1, 40, 1), held=93.0),
    "underutilised": job(LOW),
    "low_util_cause_unknown": rec(util=LOW),
    "idle_gap epoch": gaps("val_loss"),
    "idle_gap checkpoint": gaps("checkpoint_seconds"),
    "idle_gap unknown": job(steps((97, 300), (0, 60), (97, 600))),
    "idle_gap data": job(
        np.where((np.arange(SECONDS) % 20 < 10) | (np.arange(SECONDS) < 320), 97.0, 0.0),
        iowait=np.where(np.arange(SECONDS) < 320, 1.0, 40.0),
    ),
    "periodic_stall": gaps(),
    "hollow_util": job(np.full(SECONDS, 98.0), core=100.0, **HUNG),
    "full_precision": job(BUSY, tensor_active=0.2),
    "no_progress": with_training(job(BUSY), EVALUATED),
    "mem_pressure": job(BUSY, peak=77.0),
    "mem_headroom": job(BUSY),
}
"""By kind, or kind and cause, a run in which it is found."""
PIPELINES = {"pytorch_input", "tensorflow_input", "jax_input", "input_pipeline"}


def advised(kind: str, run: Recording | None = None, **params: Any) -> Finding:
    run = with_params(RUNS[kind] if run is None else run, **params)
    return findings_of(analyze(run), kind.partition(" ")[0])[0]


def names(kind: str, run: Recording | None = None, **params: Any) -> list[str]:
    return [step.name for step in advised(kind, run, **params).steps]


def unknown(finding: Finding, step: str) -> tuple[str, ...] | None:
    return next((one.unknown for one in finding.steps if one.name == step), None)


def pairs(text: str) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in text.split())


TAKEN = {
    "num_workers=16 cpu_count=16": ("cpu_bound", "loader_workers"),
    "num_workers=8 cpus_per_task=8": ("io_bound", "loader_workers"),
    "num_workers=1": ("host_memory_pressure", "fewer_workers"),
    "persistent_workers=True num_workers=4": ("idle_gap epoch", "persistent_workers"),
    "prefetch_factor=8": ("idle_gap data", "prefetch"),
    "prefetch=AUTOTUNE": ("idle_gap data", "prefetch"),
    "pin_memory=True": ("transfer_bound", "pinned_memory"),
    "non_blocking=1": ("transfer_bound", "overlapped_copies"),
    "torch_compile=true": ("hollow_util", "compile"),
    "compile_mode=reduce-overhead": ("hollow_util", "cuda_graphs"),
    "cudnn_benchmark=True": ("full_precision", "cudnn_autotuning"),
    "pretrained=imagenet/resnet50.pth": ("no_progress", "pretrained_weights"),
    "async_save=True": ("idle_gap checkpoint", "asynchronous_checkpoints"),
    "gradient_accumulation_steps=4": ("mem_pressure", "gradient_accumulation"),
    "precision=bf16": ("mem_pressure", "mixed_precision"),
    # spellings
    "dataloader_pin_memory=True": ("transfer_bound", "pinned_memory"),
    "pin=True": ("transfer_bound", "pinned_memory"),
    "dataloader_prefetch_factor=8": ("io_bound", "prefetch"),
    "prefetch=tf.data.AUTOTUNE": ("io_bound", "prefetch"),
    "model.compile=inductor": ("hollow_util", "compile"),
    "use_cuda_graphs=yes": ("hollow_util", "cuda_graphs"),
    "accumulate_grad_batches=8": ("mem_pressure", "gradient_accumulation"),
    "async_save=on": ("idle_gap checkpoint", "asynchronous_checkpoints"),
}
NOT_TAKEN = {
    "num_workers=2 cpu_count=16": ("underutilised", "loader_workers"),
    "workers=2 cores=16": ("cpu_bound_single", "loader_workers"),
    "num_workers=0": ("low_util_cause_unknown", "loader_workers"),
    "persistent_workers=False num_workers=4": ("idle_gap unknown", "persistent_workers"),
    "prefetch_factor=1": ("io_bound", "prefetch"),
    "pin_memory=False": ("transfer_bound", "pinned_memory"),
    "non_blocking=False pin_memory=True": ("transfer_bound", "overlapped_copies"),
    "compile=False": ("hollow_util", "compile"),
    "use_cuda_graphs=0": ("hollow_util", "cuda_graphs"),
    "async_save=False": ("periodic_stall", "asynchronous_checkpoints"),
    "per_device_train_batch_size=1": ("underutilised", "larger_batch"),
    "precision=32": ("mem_pressure", "mixed_precision"),
}


def test_steps_that_fit_come_first_and_those_taken_are_left_out() -> None:
    for name, run in RUNS.items():
        for one in analyze(run).findings:
            asked = [bool(step.unknown) for step in one.steps]
            assert one.steps or one.cause == "no job", (name, one.kind)
            assert asked == sorted(asked), (name, one.kind)
    for params, (kind, step) in TAKEN.items():
        told = advised(kind, **pairs(params))
        assert (step in names(kind), step in {one.name for one in told.steps}) == (True, False), params
        assert params.split()[0] in told.recommendation or "precision" in params, params
    for params, (kind, step) in NOT_TAKEN.items():
        assert names(kind, **pairs(params))[0] == step, params


def test_spellings_of_params() -> None:
    said = {
        "num_workers=16": "num_workers=4 dataloader_num_workers=4 data.num_workers=4 config/data/num-workers=4 "
        "cfg.loader.numWorkers=4 --workers=4.0"
    }
    for name in said["num_workers=16"].split():
        assert suggested("underutilised", **pairs(f"{name} cpu_count=64"))[:2] == [8, 4], name
    unsaid = (
        "val.num_workers=4;eval_dataloader/num_workers=4;scaling_config/num_workers=4;num_workers=many;"
        "num_workers=-3;workers_per_node=4;train.num_workers=4 num_workers=8"
    )
    for text in unsaid.split(";"):
        assert suggested("underutilised", **pairs(f"{text} cpu_count=64"))[:1] == [64], text
    assert suggested("underutilised", **pairs("num_workers=4 args.num_workers=4 cpu_count=64"))[:2] == [8, 4]
    assert names("hollow_util", compile="None")[0] == "compile"
    assert names("hollow_util", compile="0.5") == names("hollow_util")


def test_what_the_run_shows_decides() -> None:
    full = RUNS["cpu_bound"], job(LOW, cpu=phase(20, 97, 20), core=60.0)
    assert ["loader_workers" in names("cpu_bound", run) for run in full] == [True, False]
    assert names("cpu_bound", full[1])[0] == "offline_preprocessing"
    assert {"offline_preprocessing", "gpu_preprocessing"}.isdisjoint(names("io_bound"))
    crowded = job(LOW, iowait=phase(1, 40, 1), held=95.0)
    assert {"loader_workers", "prefetch", "pinned_memory"}.isdisjoint(names("io_bound", crowded))
    blind = advised("low_util_cause_unknown")
    assert (len(unknown(blind, "loader_workers") or ()), unknown(blind, "profile_step")) == (3, ())
    first, *_ = advised("low_util_cause_unknown", num_workers="2", cpu_count="16").steps
    assert (first.name, bool(first.unknown)) == ("loader_workers", True)


def test_a_larger_batch_needs_memory_that_is_free_for_sure() -> None:
    def offered(run: Recording) -> tuple[str, ...] | None:
        return unknown(advised("underutilised", run), "larger_batch")

    reserved = rec(
        util=LOW,
        cpu=np.full(SECONDS, 15.0),
        memory=steps((0.0, 10), (72.0, SECONDS - 10)),
        host={"iowait": np.zeros(SECONDS)},
    )
    assert offered(RUNS["underutilised"]) == ()
    assert offered(job(LOW, peak=75.0)) is None
    assert offered(reserved) not in {None, ()}


def test_only_a_link_below_its_best_is_reseated() -> None:
    table: dict[str, tuple[dict[str, Any], str | None]] = {
        "x16 of a highest that was not logged": ({}, "asked"),
        "x8 of x16": ({"link_width": 8, "link_width_max": 16}, "known"),
        "x8 of x8": ({"link_width": 8, "link_width_max": 8, "link_generation_max": 4}, None),
    }
    for name, (link, expected) in table.items():
        run = job(phase(97, 30, 97), received=phase(2, 26, 2), **(COPIES | link))
        asked = unknown(advised("transfer_bound", run), "reseat_card")
        assert (None if asked is None else "asked" if asked else "known") == expected, name


def test_what_the_gpu_and_its_limits_ask_for() -> None:
    offered = {"Tesla P100-PCIE-16GB": None, "NVIDIA A100-SXM4-80GB": (), "a GPU nobody knows": 1}
    for model, expected in offered.items():
        got = unknown(advised("mem_pressure", job(BUSY, peak=77.0, model=model), precision="32"), "mixed_precision")
        assert got == expected if expected != 1 else bool(got), model
    for power, raised in ((298, True), (150, False)):
        run = rec(util=np.full(300, 97.0), power=power, power_limit=300, default_limit=400)
        assert bool(findings_of(analyze(run), "power_limited")[0].steps) == raised, power
    hot = {"temperature": 92, "sw_thermal_slowdown": np.ones(300), "power": 240, "power_limit": 400}
    heat = findings_of(analyze(rec(util=np.full(300, 97.0), **hot)), "thermal_throttle")[0]
    assert [one.observed for one in heat.evidence if one.metric == "gpu_power_watts"] == [240]


def test_only_the_input_pipeline_of_the_framework() -> None:
    table = {
        "framework=pytorch": ("pytorch_input", True),
        "torch_version=2.11.0": ("pytorch_input", True),
        "torch_dtype=bfloat16": ("pytorch_input", True),
        "mlflow.autologging=tensorflow": ("tensorflow_input", False),
        "framework=TF_2.16": ("tensorflow_input", False),
        "KERAS_BACKEND=jax": ("jax_input", False),
        "flax/version=0.10": ("jax_input", False),
        "source_code/integrations/neptune-pytorch-lightning=1.1.0": ("pytorch_input", True),
        "lr=0.1": ("input_pipeline", True),
        "allow_tf32=True": ("input_pipeline", True),
        "tf_ratio=0.5": ("input_pipeline", True),
        "torch_compile=False": ("input_pipeline", True),
        "dist_backend=nccl": ("input_pipeline", True),
        "framework=own": ("input_pipeline", True),
        "note=ported_from_torch": ("input_pipeline", True),
        "torch_version=2.11 jax_version=0.7": ("input_pipeline", True),
    }
    for text, (pipeline, pins) in table.items():
        got = names("cpu_bound", **pairs(text))
        assert ([name for name in got if name in PIPELINES], "pinned_memory" in got) == ([pipeline], pins), text
    for kind in ("cpu_bound_single", "io_bound"):
        assert [name for name in names(kind, framework="jax") if name in PIPELINES] == ["jax_input"], kind


def test_workers_that_match_the_cores_leave_no_room() -> None:
    run = RUNS["cpu_bound"]
    assert findings_of(analyze(run), "workers_headroom")
    matched = analyze(with_params(run, num_workers="16", cpu_count="16"))
    assert findings_of(matched, "workers_headroom") == []
    assert [step.name for step in findings_of(matched, "cpu_bound")[0].steps][:2] == [
        "offline_preprocessing",
        "gpu_preprocessing",
    ]
    four = rec(util=[LOW] * 4, cpu=phase(20, 80, 20), host={"host_memory": np.full(SECONDS, 30.0)})
    assert findings_of(analyze(with_params(four, num_workers="4", cpu_count="16")), "workers_headroom") == []
    assert "loader_workers" not in names("cpu_bound", four, num_workers="4", cpu_count="16")


def suggested(kind: str, run: Recording | None = None, **params: Any) -> list[float]:
    """Return the numbers of the suggestion on loader workers: how many, instead of how many, and why."""
    finding = advised(kind, run, **params)
    text = next((step.suggestion for step in finding.steps if step.name == "loader_workers"), "")
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def low(level: float, gpus: int = 1, job_cores: float | None = None) -> Recording:
    run = rec(util=[np.full(SECONDS, level)] * gpus)
    used = {} if job_cores is None else {"job_cpu_cores": job_cores}
    return with_host(run, np.arange(float(SECONDS)), cpu_utilization_ratio=0.15, cpu_iowait_ratio=0.0, **used)


def test_how_many_loader_workers_are_suggested() -> None:
    table = {
        "num_workers=2 cpu_count=16": [4, 2, 16, 16, 1],
        "num_workers=5 cpu_count=8": [8, 5, 8, 8, 1],
        "num_workers=0 cpu_count=16": [2, 0, 16, 16, 1],
        "num_workers=2": [4, 2],
        "num_workers=0": [2, 0],
        # the machine may have 16 cores
        "num_workers=14": [14],
        "cpu_count=16": [16, 16, 1],
        "cpus_per_task=6": [6, 6],
        "lr=1": [],
    }
    run = low(47.0)
    assert {text: suggested("underutilised", run, **pairs(text)) for text in table} == table
    shared = {(2, "cpu_count=16"): [8, 16, 2], (4, "num_workers=2 cpu_count=16"): [4, 2, 4, 16, 4]}
    assert {key: suggested("underutilised", low(47.0, key[0]), **pairs(key[1])) for key in shared} == shared
    for gpus, workers in ((4, 4), (4, 8), (3, 5), (1, 16)):
        got = names("underutilised", low(47.0, gpus), num_workers=str(workers), cpu_count="16")
        assert "loader_workers" not in got, (gpus, workers)


def test_steps_that_ask_and_workers_beyond_cores() -> None:
    table = {"lr=1": 2, "compile=False": 1, "compile=True": None}
    for text, count in table.items():
        got = unknown(advised("full_precision", **pairs(text)), "cudnn_autotuning")
        assert (None if got is None else len(got)) == count, text
    for text, count in {"lr=1": 1, "pretrained=False": 0}.items():
        last = advised("no_progress", **pairs(text)).steps[-1]
        assert (last.name, len(last.unknown)) == ("pretrained_weights", count), text
    idle = low(47.0, job_cores=0.01)
    first = {"num_workers=1 cpu_count=2": [2, 1], "num_workers=16 cpu_count=16": [32, 16], "num_workers=2": [4, 2]}
    assert {text: suggested("underutilised", idle, **pairs(text))[:2] for text in first} == first
    assert suggested("underutilised", idle, cpu_count="16") == []
    assert "loader_workers" not in names("cpu_bound", num_workers="2", cpu_count="2")


def test_what_the_run_excludes_is_not_advised() -> None:
    requests = np.where(np.isin(np.arange(SECONDS) // 30 % 4, (0, 3)) & (np.arange(SECONDS) % 7 < 3), 60.0, 0.0)
    level = rec(util=LOW, memory=np.full(SECONDS, 78.0))
    split = job(LOW)
    split = replace(split, run=replace(split.run, devices=tuple(replace(one, mig=True) for one in split.run.devices)))
    shared = rec(util=[BUSY, np.zeros(SECONDS)])
    tracked = replace(shared, run=replace(shared.run, sources=(Source(kind="mlflow", locator="mlruns", sha256=""),)))
    assert "larger_batch" not in names("low_util_cause_unknown", level)
    assert "larger_batch" in names("low_util_cause_unknown")
    assert "larger_batch" not in names("underutilised", split)
    assert [entry.code for entry in unjudged(analyze(split), "mem_headroom")] == ["mig_mode"]
    assert [names("unused_gpu", run)[0] for run in (shared, tracked)] == ["fewer_gpus", "name_gpus"]
    cleared = names("underutilised")
    assert cleared.index("loader_workers") > cleared.index("profile_step")
    assert names("mem_headroom", rec(util=requests, memory=steps((1, 20), (5, 20), (10, 920)))) == ["smaller_gpu"]
