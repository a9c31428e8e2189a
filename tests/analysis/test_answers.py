"""Every kind has an answer for every group of devices, and every question of the checklist a state and a code."""

from dataclasses import replace

import numpy as np

import gpureport
from gpureport.testing import (
    Device,
    Recording,
    Severity,
    Work,
    analyze,
    findings_of,
    steps,
    unjudged,
    with_host,
    with_params,
    with_training,
)
from tests.analysis.tables import Hold, rec

KINDS = [answer.kind for answer in analyze(rec(util=steps((97, 100)))).answers]


def grouped(*gpus: tuple[str | None, str], hosts: tuple[str, ...] = ()) -> Recording:
    others = [steps((97, 60), (0, 1), (97, 119))] * (len(gpus) - 1)
    run = rec(util=[steps((97, 60), (0, 20), (97, 100)), *others])
    devices = [replace(gpu, node=node, model=model) for gpu, (node, model) in zip(run.run.devices, gpus, strict=True)]
    devices += [Device(id=f"{each}/host", node=each) for each in hosts]
    return replace(run, run=replace(run.run, devices=tuple(devices)))


def test_every_kind_is_answered_once_a_group() -> None:
    l4, a100 = "NVIDIA L4", "NVIDIA A100"
    table = {
        "one": (grouped((None, l4)), ["1 x NVIDIA L4"]),
        "two models": (grouped((None, l4), (None, l4), (None, a100)), ["2 x NVIDIA L4", "1 x NVIDIA A100"]),
        "two nodes": (
            grouped(("a", l4), ("a", l4), ("b", l4), ("b", a100), hosts=("a",)),
            ["2 x NVIDIA L4 of a", "1 x NVIDIA L4 of b", "1 x NVIDIA A100 of b"],
        ),
        "no GPU": (replace((run := rec(util=[50.0])), run=replace(run.run, devices=())), ["no GPU"]),
    }
    for name, (run, groups) in table.items():
        analysis = analyze(run)
        assert list(dict.fromkeys(answer.group for answer in analysis.answers)) == groups, name
        for group in groups:
            assert [answer.kind for answer in analysis.answers if answer.group == group] == KINDS, name
        grouped_ids = [device for answer in analysis.answers if answer.kind == KINDS[0] for device in answer.devices]
        assert sorted(grouped_ids) == sorted(gpu.id for gpu in run.run.gpus), name


def test_found_suspected_judged_and_not(hold: Hold) -> None:
    gap = steps((97, 60), (0, 20), (97, 60))
    run = grouped(("a", "NVIDIA L4"), ("b", "NVIDIA L4"))
    run = with_host(run, np.arange(180.0), Device(id="a/host", node="a"), cpu_utilization_ratio=0.2)
    run = with_host(run, np.arange(20.0), Device(id="b/host", node="b"), cpu_utilization_ratio=0.2)
    chosen = {
        "found": rec(util=gap),
        "suspected": rec(util=steps((97, 30), (0, 10), (97, 30)), every=120.0),
        "judged": rec(util=steps((97, 140))),
        "not assessed": rec(power=steps((100, 60))),
        "found, and a part not assessed": rec(util=[gap, np.full(140, np.nan)]),
        "in one of two groups": run,
    }
    # what concerns one group leaves the others alone
    select = ["idle_gap", "cpu_bound"]
    hold("answers, idle_gap", {name: gpureport.analyze(one, select=select) for name, one in chosen.items()})
    part = analyze(chosen["found, and a part not assessed"])
    (answer,) = (each for each in part.answers if each.kind == "idle_gap")
    assert answer.findings == (findings_of(part, "idle_gap")[0].fingerprint,)
    assert [entry.device for entry in answer.missing] == ["gpu:1"]
    assert answer.reason.startswith("gpu:1: ")


def test_answers_agree_with_findings_and_with_what_was_selected() -> None:
    analysis = analyze(rec(util=[steps((97, 60), (0, 20), (97, 60)), steps((97, 140))], memory=np.full(140, 10)))
    kinds, missing = {one.kind for one in analysis.findings}, {entry.kind for entry in analysis.not_judged}
    assert [answer.kind for answer in analysis.answers] == KINDS
    for answer in analysis.answers:
        assert (str(answer.outcome) in {"found", "suspected"}) is (answer.kind in kinds)
        assert bool(answer.reason_code) is bool(answer.reason) is bool(answer.recording) is (answer.kind in missing)
    run = rec(util=steps((97, 60), (0, 20), (97, 60)))
    chosen = gpureport.analyze(run, select=["idle_gap", "log_gap"])
    assert [answer.kind for answer in chosen.answers] == ["idle_gap", "log_gap"]
    assert {one.kind for one in chosen.findings} == {"idle_gap"}


def test_findings_are_whole_and_sorted_by_weight() -> None:
    util, cpu = steps((0, 60), (97, 300), (20, 300), (0, 30), (97, 100)), steps((20, 360), (95, 300), (20, 130))
    series = {"power": steps((398, 20), (399, 770)), "power_limit": 400, "temperature": 60, "clock": 1400}
    findings = analyze(rec(util=util, cpu=cpu, memory=steps((20, 200), (30, 590)), **series)).findings
    kinds = {"startup_idle", "cpu_bound", "mem_headroom", "power_cap", "idle_gap"}
    assert {one.kind for one in findings} >= kinds
    lacking = [one.kind for one in findings if not (one.evidence and one.samples and one.steps and one.recommendation)]
    assert lacking == []
    order = [(-list(Severity).index(one.severity), -(one.lost_gpu_seconds or 0.0)) for one in findings]
    assert order == sorted(order)


def test_what_is_not_assessed_names_a_code_and_what_to_record(hold: Hold) -> None:
    run = rec(util=[50.0] * 60)
    table = {
        "rows of several GPUs": replace(run, run=replace(run.run, devices=(replace(run.run.devices[0], mixed=True),))),
    }
    hold("missing, kinds, jobs", table)
    for covered in (59.56, 59.99, 59.4):
        run = rec(util=steps((97, 60)), times=np.linspace(0, covered, 60), memory=70.0)
        (entry,) = unjudged(analyze(run), "mem_prealloc")
        assert (entry.needed_seconds, "1 min" in entry.reason) == (60.0, False), covered


def test_caveats_of_the_sampling(hold: Hold) -> None:
    changes = [*range(600), *range(600, 900, 10), *range(900, 1200)]
    seldom = [*range(600), *range(600, 1800, 10)]
    table = {
        "fine": rec(util=steps((97, 60))),
        "coarse": rec(util=steps((97, 60)), every=30.0),
        "slower for 5 min": rec(util=steps((97, len(changes))), times=changes),
        "slower most of the time": rec(util=steps((97, len(seldom))), times=seldom),
        "one sample": rec(util=[50.0], power=100.0, memory=10.0),
    }
    hold("caveats, log_gap", table)
    for name, analysis in ((name, analyze(run)) for name, run in table.items()):
        assert (len(analysis.limits), analysis.coverage_ratio in {1.0, None}) == (len(analysis.limit_codes), True), name


def test_logs_of_a_few_rows_and_of_years_are_analysed() -> None:
    for length in (1, 2, 3):
        series = {"memory": 10, "power": 100, "temperature": 60, "clock": 1400, "sw_power_cap": 1}
        analysis = analyze(rec(util=steps((50, length)), **series))
        assert analysis.statistics[0].metric("gpu_utilization_ratio") is not None
    years = 20.0 * 365 * 86_400
    times = np.concatenate([[0.0, 1.0], np.arange(298.0) + years])
    analysis = analyze(rec(util=steps((97, 300)), times=times, cpu=np.full(300, 20.0)))
    assert dict(analysis.gpu_time[0].seconds)["no_job"] > 0.99 * years


BUSY, CALM = steps((97, 300)), steps((20, 300))


def test_memory_and_batch(hold: Hold) -> None:
    table = {
        "a leak": rec(util=BUSY, memory=np.linspace(1, 40, 300)),
    }
    hold("checklist", table)


def test_precision_throughput_and_the_means_of_the_framework(hold: Hold) -> None:
    """By params, compute capability and tensor activity, which does not show whether 16 bits or TF32 made it."""
    run, tensor = rec(util=BUSY), rec(util=BUSY, tensor_active=30)
    losses = [(10.0, "train/loss", 2.0), (20.0, "train/loss", 1.5), (30.0, "train/loss", 1.0)]
    params: list[dict[str, str]] = [{"precision": "bf16"}, {"precision": "32"}, {"compile": "True"}]
    params += [{"framework": "jax", "xla": "1"}, {"cudnn_benchmark": "0"}, {"framework": "torch"}]
    table = {
        "nothing": run,
        **{f"{said}": with_params(run, **said) for said in params},
        **{f"32 bits on {name}": with_params(rec(util=BUSY, model=name), precision="32") for name in ("new", None)},
        "a GPU that never worked": rec(util=steps((0, 300))),
        "tensor cores at work": tensor,
        "tensor cores, 32 bits": with_params(tensor, precision="32"),
        "no tensor cores": rec(util=BUSY, model="Tesla P100-PCIE-16GB"),
        "work that is stated": replace(run, run=replace(run.run, work=Work(amount=1000, unit="steps"))),
        "speed": with_training(run, [*losses, (20, "samples_per_second", 120.0)]),
        "three points": with_training(run, losses),
        "two points": with_training(run, losses[:2]),
        "one moment": with_training(run, [(10.0, *each[1:]) for each in losses]),
    }
    hold("checklist", table)


def test_the_cpu_beside_the_gpu_and_the_input_pipeline(hold: Hold) -> None:
    hold("checklist")
    (pipeline,) = (each for each in analyze(rec(temperature=CALM)).checklist if each.item == "input_pipeline")
    assert pipeline.recording.count("gpureport record") == 1, "what several kinds lack is named once"


def test_cores_are_judged_by_what_they_did(hold: Hold) -> None:
    hold("checklist")
