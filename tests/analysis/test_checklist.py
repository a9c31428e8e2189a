"""The checklist of the practice: done, worth trying, or what to record; asserted by state and code."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, Work, analyze, steps, with_host, with_params, with_training
from tests.analysis.tables import rec

ITEMS = ["memory", "precision", "cpu_beside_gpu", "input_pipeline", "cpu_cores", "batch", "framework", "throughput"]
BUSY, CALM = steps((97, 300)), steps((20, 300))
DONE, TRY, CANNOT = "done", "worth trying", "cannot be judged"
Answers = dict[str, tuple[str, str]]


def answers(run: Recording) -> Answers:
    return {entry.item: (str(entry.state), entry.reason_code) for entry in analyze(run).checklist}


def check(table: dict[str, tuple[Recording, Answers]]) -> None:
    wrong = {}
    for name, (run, expected) in table.items():
        got = answers(run)
        if {item: got[item] for item in expected} != expected:
            wrong[name] = {item: got[item] for item in expected}
    assert not wrong, wrong


def test_every_question_is_answered() -> None:
    runs = (
        rec(util=BUSY, cpu=CALM, memory=np.linspace(1, 60, 300)),
        rec(temperature=steps((60, 60))),
        rec(util=[50.0]),
    )
    for run in runs:
        entries = analyze(run).checklist
        assert [entry.item for entry in entries] == ITEMS
        assert all(entry.reason and entry.reason_code for entry in entries)
        assert [entry.item for entry in entries if bool(entry.recording) is not (str(entry.state) == CANNOT)] == []


def test_memory_and_batch() -> None:
    def both(state: str, code: str) -> Answers:
        return {"memory": (state, code), "batch": (state, code)}

    def held(*parts: tuple[float, int]) -> Recording:
        return rec(util=np.full(sum(count for _, count in parts), 97.0), memory=steps(*parts))

    check(
        {
            "40 of 80 GiB": (held((20, 40), (40, 260)), both(TRY, "memory_left")),
            "50 of 80 GiB": (held((25, 40), (50, 260)), both(TRY, "memory_left")),
            "60 of 80 GiB": (held((30, 40), (60, 260)), both(DONE, "memory_filled")),
            "78 of 80 GiB": (held((39, 40), (78, 260)), both(DONE, "memory_filled")),
            "next to none": (held((0, 10), (0.3, 90), (0.46, 200)), both(TRY, "memory_left")),
            "a leak": (
                rec(util=BUSY, memory=np.linspace(1, 40, 300)),
                {"memory": (TRY, "memory_keeps_growing"), "batch": (CANNOT, "memory_keeps_growing")},
            ),
            "reserved": (held((1, 30), (70, 270)), both(CANNOT, "memory_reserved_at_once")),
            "not recorded": (rec(util=BUSY), both(CANNOT, "not_recorded")),
            "one sample": (held((60, 1)), both(CANNOT, "too_short")),
            "ten minutes at one level": (held((60, 600)), both(DONE, "memory_filled")),
        }
    )


def test_precision() -> None:
    """By params, compute capability and tensor activity, which does not show whether 16 bits or TF32 made it."""
    run, tensor = rec(util=BUSY), rec(util=BUSY, tensor_active=30)
    unknown = rec(util=BUSY, model="a GPU nobody knows")
    idle = rec(util=steps((0, 300)))
    check(
        {
            name: (run, {"precision": expected})
            for name, run, expected in (
                ("16 bits", with_params(run, precision="bf16"), (DONE, "reduced_precision")),
                ("32 bits", with_params(run, precision="32"), (TRY, "full_precision")),
                ("no params", run, (CANNOT, "precision_not_recorded")),
                ("32 bits on an unknown GPU", with_params(unknown, precision="32"), (CANNOT, "unknown_gpu_model")),
                ("a GPU that never worked", idle, (CANNOT, "precision_not_recorded")),
                ("tensor cores at work", tensor, (CANNOT, "unknown_precision")),
                ("tensor cores, 32 bits", with_params(tensor, precision="32"), (TRY, "full_precision_stated")),
                ("no tensor cores", rec(util=BUSY, model="Tesla P100-PCIE-16GB"), (DONE, "no_tensor_cores")),
            )
        }
    )
    (judged,) = (each for each in analyze(tensor).answers if each.kind == "full_precision")
    assert str(judged.outcome) == "judged, nothing found"


PAUSED = 80 + 2 * (np.arange(300.0) % 3 - 1)


def filled(util: Floats, cores_of_job: float) -> Recording:
    host = {"cpu_iowait_ratio": 0.0, "cpu_busiest_core_ratio": 0.96, "host_memory_used_ratio": 0.2}
    host |= {"cpu_utilization_ratio": 0.95, "cpu_logical_cores": 16.0, "job_cpu_cores": cores_of_job}
    run = rec(util=util, received=0.0, sent=0.0, link_generation=4.0, link_width=16.0)
    return with_host(run, np.arange(300.0), **host)


def test_the_cpu_beside_the_gpu_and_the_input_pipeline() -> None:
    starved = rec(util=steps((97, 100), (30, 300)), cpu=steps((20, 100), (95, 300)))
    recorded = {"cpu_beside_gpu": (DONE, "recorded_together")}
    check(
        {
            "both": (rec(util=BUSY, cpu=CALM), recorded),
            "no CPU": (rec(util=BUSY), {"cpu_beside_gpu": (CANNOT, "not_recorded")}),
            "a brief CPU log": (rec(util=BUSY, cpu=steps((20, 60))), {"cpu_beside_gpu": (CANNOT, "covers_too_little")}),
            "a wait": (starved, {"input_pipeline": (TRY, "waits_found")}),
            "not assessed": (rec(temperature=CALM), {"input_pipeline": (CANNOT, "waits_not_assessed")}),
            "pauses": (
                filled(PAUSED, 15.0),
                {"input_pipeline": (CANNOT, "short_pauses"), "cpu_cores": (CANNOT, "short_pauses")},
            ),
            "no pauses": (filled(BUSY, 0.01), {"input_pipeline": (DONE, "no_waits"), "cpu_cores": (DONE, "no_waits")}),
        }
    )
    (pipeline,) = (each for each in analyze(rec(temperature=CALM)).checklist if each.item == "input_pipeline")
    assert pipeline.recording.count("gpureport record") == 1, "what several kinds lack is named once"


def test_cores_are_judged_by_what_they_did() -> None:
    waiting: dict[str, Any] = {"util": steps((97, 60), (30, 300)), "cpu": steps((40, 60), (96, 300))}
    low: dict[str, Any] = {"util": np.full(360, 30.0), "cpu": np.full(360, 5.0)}
    fed: dict[str, Any] = {"util": np.full(360, 97.0), "cpu": np.full(360, 40.0)}
    eight = {"cores": np.full(360, 8.0)}
    one = {"util": np.full(360, 38.0), "cpu": np.full(360, 12.0)}

    def host(job: float) -> Recording:
        series: dict[str, Any] = {"cpu_utilization_ratio": steps((20, 100), (95, 300)) / 100, "cpu_logical_cores": 16.0}
        return with_host(rec(util=steps((97, 100), (30, 300))), np.arange(400.0), **series, job_cpu_cores=job)

    busy, unknown = (TRY, "cpu_busy_while_waiting"), (CANNOT, "cores_not_recorded")
    check(
        {
            name: (run, {"cpu_cores": expected})
            for name, run, expected in (
                ("counted", rec(**waiting, host=eight), busy),
                ("by params", with_params(rec(**waiting), cpu_count="8"), busy),
                ("by process", with_params(rec(**waiting), cpus_per_task="4", num_workers="2"), busy),
                ("low use for another reason", with_params(rec(**low), cpu_count="8"), (DONE, "no_waits")),
                ("a wait, not counted", rec(**waiting), unknown),
                ("fed", rec(**fed, host=eight), (DONE, "no_waits")),
                ("fed, not counted", rec(**fed), unknown),
                ("no CPU", with_params(rec(util=fed["util"]), cpu_count="8"), (CANNOT, "not_recorded")),
                ("other programs", host(1.0), busy),
                ("the job hardly uses it", host(0.02), (CANNOT, "beside_other_programs")),
                (
                    "one core",
                    rec(**one, host={"core": np.full(360, 99.0), **eight}),
                    (TRY, "one_core_busy_while_waiting"),
                ),
            )
        }
    )
    assert answers(host(0.02))["input_pipeline"] == (CANNOT, "beside_other_programs")


def test_throughput() -> None:
    run = rec(util=BUSY)
    stated = replace(run, run=replace(run.run, work=Work(amount=1000, unit="steps")))
    losses = [(10.0, "train/loss", 2.0), (20.0, "train/loss", 1.5), (30.0, "train/loss", 1.0)]
    check(
        {
            name: (run, {"throughput": expected})
            for name, run, expected in (
                ("stated", stated, (DONE, "work_known")),
                ("speed", with_training(run, [*losses, (20, "samples_per_second", 120.0)]), (DONE, "speed_logged")),
                ("three points", with_training(run, losses), (DONE, "steps_logged")),
                ("two points", with_training(run, losses[:2]), (CANNOT, "unknown_work")),
                ("one moment", with_training(run, [(10.0, *each[1:]) for each in losses]), (CANNOT, "unknown_work")),
                ("nothing", run, (CANNOT, "unknown_work")),
            )
        }
    )


def test_the_means_of_the_framework() -> None:
    run = rec(util=BUSY)
    check(
        {
            str(params): (with_params(run, **params), {"framework": expected})
            for params, expected in (
                ({"compile": "True"}, (DONE, "means_used")),
                ({"framework": "jax", "xla": "1"}, (DONE, "means_used")),
                ({"cudnn_benchmark": "0"}, (TRY, "means_not_used")),
                ({"framework": "torch"}, (CANNOT, "means_not_recorded")),
            )
        }
    )
