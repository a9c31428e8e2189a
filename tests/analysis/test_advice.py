"""Which steps a finding gets, by what the run shows; asserted by the names of steps."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, Source, analyze, steps, with_host, with_params, with_training
from tests.analysis.tables import Hold, rec
from tests.support.tables import read_table

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


def pairs(text: str) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in text.split())


def known(run: Recording, texts: Iterable[str]) -> dict[str, Recording]:
    """Return a run with the params of each text, by the text."""
    return {text: with_params(run, **pairs(text)) for text in texts}


def test_steps_that_fit_come_first(hold: Hold) -> None:
    for name, run in RUNS.items():
        hold(name.partition(" ")[0], {name: run})
        for one in analyze(run).findings:
            asked = [bool(step.unknown) for step in one.steps]
            assert one.steps or one.cause == "no job", (name, one.kind)
            assert asked == sorted(asked), (name, one.kind)


def low(gpus: int = 1, job_cores: float | None = None) -> Recording:
    run = rec(util=[np.full(SECONDS, 47.0)] * gpus)
    used = {} if job_cores is None else {"job_cpu_cores": job_cores}
    return with_host(run, np.arange(float(SECONDS)), cpu_utilization_ratio=0.15, cpu_iowait_ratio=0.0, **used)


def test_what_params_say(hold: Hold) -> None:
    more = {f"underutilised at 47%, {gpus} GPUs": low(gpus) for gpus in (2, 3, 4)}
    more |= {"underutilised at 47%": low(), "underutilised at 47%, idle cores": low(job_cores=0.01)}
    more |= {"full_precision by params": rec(util=BUSY[:300])}
    for name, text in read_table(Path(__file__).with_name("params.tsv")):
        hold(name.partition(" ")[0], known((RUNS | more)[name], [text]))


def test_what_the_run_shows_decides(hold: Hold) -> None:
    hold("cpu_bound", {"all cores full": job(LOW, cpu=phase(20, 97, 20), core=60.0)})
    hold("io_bound", {"crowded": job(LOW, iowait=phase(1, 40, 1), held=95.0)})
    reserved = rec(
        util=LOW,
        cpu=np.full(SECONDS, 15.0),
        memory=steps((0.0, 10), (72.0, SECONDS - 10)),
        host={"iowait": np.zeros(SECONDS)},
    )
    split = job(LOW)
    split = replace(split, run=replace(split.run, devices=tuple(replace(one, mig=True) for one in split.run.devices)))
    memory = {"75 of 80 GiB": job(LOW, peak=75.0), "reserved at once": reserved, "a slice of a GPU": split}
    hold("underutilised, mem_headroom", memory)
    links: dict[str, dict[str, Any]] = {
        "x16 of a highest that was not logged": {},
        "x8 of x16": {"link_width": 8, "link_width_max": 16},
        "x8 of x8": {"link_width": 8, "link_width_max": 8, "link_generation_max": 4},
    }
    copied = {"received": phase(2, 26, 2), **COPIES}
    hold("transfer_bound", {name: job(phase(97, 30, 97), **copied | link) for name, link in links.items()})


def test_what_the_gpu_and_its_limits_ask_for(hold: Hold) -> None:
    models = ("Tesla P100-PCIE-16GB", "NVIDIA A100-SXM4-80GB", "a GPU nobody knows")
    full = {model: with_params(job(BUSY, peak=77.0, model=model), precision="32") for model in models}
    hold("mem_pressure", full)
    limit = {"power_limit": 300, "default_limit": 400}
    hold("power_limited", {f"{power} W": rec(util=np.full(300, 97.0), power=power, **limit) for power in (298, 150)})
    hot = {"temperature": 92, "sw_thermal_slowdown": np.ones(300), "power": 240, "power_limit": 400}
    hold("thermal_throttle", {"hot": rec(util=np.full(300, 97.0), **hot)})


def test_workers_that_match_the_cores_leave_no_room(hold: Hold) -> None:
    four = rec(util=[LOW] * 4, cpu=phase(20, 80, 20), host={"host_memory": np.full(SECONDS, 30.0)})
    one = known(RUNS["cpu_bound"], ("lr=1", "num_workers=16 cpu_count=16", "num_workers=2 cpu_count=2"))
    hold("workers_headroom, cpu_bound", one)
    hold("workers_headroom, cpu_bound", known(four, ("num_workers=4 cpu_count=16",)))


def test_what_the_run_excludes_is_not_advised(hold: Hold) -> None:
    requests = np.where(np.isin(np.arange(SECONDS) // 30 % 4, (0, 3)) & (np.arange(SECONDS) % 7 < 3), 60.0, 0.0)
    shared = rec(util=[BUSY, np.zeros(SECONDS)])
    tracked = replace(shared, run=replace(shared.run, sources=(Source(kind="mlflow", locator="mlruns", sha256=""),)))
    table = {
        "memory full at once": rec(util=LOW, memory=np.full(SECONDS, 78.0)),
        "an unused GPU": shared,
        "an unused GPU of a tracker": tracked,
        "requests": rec(util=requests, memory=steps((1, 20), (5, 20), (10, 920))),
    }
    hold("low_util_cause_unknown, unused_gpu, mem_headroom", table)
