"""Every kind has an answer for every group of devices, and every question of the checklist a state and a code."""

from dataclasses import replace
from typing import Any

import numpy as np

import gpureport
from gpureport.testing import (
    Analysis,
    Device,
    Floats,
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
from tests.analysis.tables import rec

KINDS = [answer.kind for answer in analyze(rec(util=steps((97, 100)))).answers]


def outcomes(analysis: Analysis, kind: str) -> list[tuple[str, str, str]]:
    return [(each.group, str(each.outcome), each.reason_code) for each in analysis.answers if each.kind == kind]


def grouped(*gpus: tuple[str | None, str], hosts: tuple[str, ...] = ()) -> Recording:
    run = rec(
        util=[steps((97, 60), (0, 20 if place == 0 else 1), (97, 119 if place else 100)) for place in range(len(gpus))]
    )
    devices = [
        replace(device, node=node, model=model) for device, (node, model) in zip(run.run.devices, gpus, strict=True)
    ]
    return replace(
        run, run=replace(run.run, devices=(*devices, *(Device(id=f"{each}/host", node=each) for each in hosts)))
    )


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


def test_found_suspected_judged_and_not() -> None:
    gap = steps((97, 60), (0, 20), (97, 60))
    part = rec(util=[gap, np.full(140, np.nan)])
    low = rec(util=steps((97, 30), (0, 10), (97, 30)), every=120.0)
    table = {
        "found": (rec(util=gap), ("found", "")),
        "suspected": (low, ("suspected", "")),
        "judged": (rec(util=steps((97, 140))), ("judged, nothing found", "")),
        "not assessed": (rec(power=steps((100, 60))), ("cannot judge", "not_recorded")),
        "found, and a part not assessed": (part, ("found", "not_recorded")),
    }
    for name, (run, expected) in table.items():
        assert outcomes(analyze(run), "idle_gap") == [
            ("1 x NVIDIA A100-SXM4-80GB" if "part" not in name else "2 x NVIDIA A100-SXM4-80GB", *expected)
        ], name
    (answer,) = (each for each in analyze(part).answers if each.kind == "idle_gap")
    assert (answer.findings, [entry.device for entry in answer.missing]) == (
        (findings_of(analyze(part), "idle_gap")[0].fingerprint,),
        ["gpu:1"],
    )
    assert answer.reason.startswith("gpu:1: ")


def test_what_concerns_one_group_leaves_the_others_alone() -> None:
    run = grouped(("a", "NVIDIA L4"), ("b", "NVIDIA L4"))
    run = with_host(run, np.arange(180.0), Device(id="a/host", node="a"), cpu_utilization_ratio=0.2)
    run = with_host(run, np.arange(20.0), Device(id="b/host", node="b"), cpu_utilization_ratio=0.2)
    analysis = analyze(run)
    assert [each[1] for each in outcomes(analysis, "idle_gap")] == ["found", "judged, nothing found"]
    judged = [each[1:] for each in outcomes(analysis, "cpu_bound")]
    assert judged == [("judged, nothing found", ""), ("cannot judge", "covers_too_little")]
    both = analyze(grouped(("a", "NVIDIA L4"), ("b", "NVIDIA L4")).with_series(run.series))
    assert len(outcomes(both, "idle_gap")) == 2


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
    series = {"power": 399, "power_limit": 400, "temperature": 60, "clock": 1400}
    findings = analyze(rec(util=util, cpu=cpu, memory=steps((20, 200), (30, 590)), **series)).findings
    kinds = {"startup_idle", "cpu_bound", "mem_headroom", "power_cap", "idle_gap"}
    assert {one.kind for one in findings} >= kinds
    lacking = [one.kind for one in findings if not (one.evidence and one.samples and one.steps and one.recommendation)]
    assert lacking == []
    order = [(-list(Severity).index(one.severity), -(one.lost_gpu_seconds or 0.0)) for one in findings]
    assert order == sorted(order)


def test_what_is_not_assessed_names_a_code_and_what_to_record() -> None:
    heat = analyze(rec(temperature=[steps((60, 60)), steps((61, 60))]))
    kinds = [entry.kind for entry in heat.not_judged]
    assert len(kinds) == len(set(kinds))
    assert {"idle_gap", "cpu_bound", "mem_pressure", "thermal_throttle", "power_limited"} <= set(kinds)
    assert (heat.findings, heat.phases) == ((), ())
    short = analyze(rec(util=steps((97, 4)), cpu=steps((20, 4)), memory=10, power=100, power_limit=400))
    brief = (
        "idle_gap",
        "startup_idle",
        "tail_idle",
        "cpu_bound",
        "low_util_cause_unknown",
        "mem_prealloc",
        "power_cap",
    )
    assert {kind: [each.code for each in unjudged(short, kind)] for kind in brief} == {
        key: ["too_short"] for key in brief
    }
    moment = analyze(rec(util=[97.0], memory=10.0, sw_thermal_slowdown=1.0))
    once = ("mem_headroom", "mem_pressure", "thermal_throttle")
    assert {kind: [each.code for each in unjudged(moment, kind)] for kind in once} == {
        key: ["too_short"] for key in once
    }
    for analysis in (heat, short, moment):
        assert [each.kind for each in analysis.not_judged if not each.code or not each.reason] == []
    untold = replace(
        (run := rec(util=[50.0] * 60)), run=replace(run.run, devices=(replace(run.run.devices[0], mixed=True),))
    )
    assert {each.code for each in analyze(untold).not_judged} == {"rows_of_several_gpus"}


def test_what_is_short_or_without_values_is_not_asked_for_again() -> None:
    run = rec(
        util=[50.0] * 60, link_generation=np.nan, link_generation_max=np.nan, link_width=np.nan, link_width_max=np.nan
    )
    (entry,) = unjudged(analyze(run), "pcie_degraded")
    assert (entry.code, entry.recording, entry.metrics) == ("logged_without_values", "", ())
    for covered in (59.56, 59.99, 59.4):
        run = rec(util=steps((97, 60)), times=np.linspace(0, covered, 60), memory=70.0)
        (entry,) = unjudged(analyze(run), "mem_prealloc")
        assert entry.needed_seconds == 60.0
        assert "1 min" not in entry.reason, covered


def test_caveats_of_the_sampling() -> None:
    changes = [*range(600), *range(600, 900, 10), *range(900, 1200)]
    seldom = [*range(600), *range(600, 1800, 10)]
    table = {
        "fine": (rec(util=steps((97, 60))), {"short_gaps"}),
        "coarse": (rec(util=steps((97, 60)), every=30.0), {"short_gaps", "point_samples"}),
        "slower for 5 min": (rec(util=steps((97, len(changes))), times=changes), {"short_gaps", "sparser_part"}),
        "slower most of the time": (
            rec(util=steps((97, len(seldom))), times=seldom),
            {"short_gaps", "denser_part", "point_samples"},
        ),
        "one sample": (rec(util=[50.0], power=100.0, memory=10.0), set()),
    }
    for name, (run, codes) in table.items():
        analysis = analyze(run)
        assert set(analysis.limit_codes) == codes, name
        assert len(analysis.limits) == len(analysis.limit_codes), name
        assert findings_of(analysis, "log_gap") == [], name
        assert analysis.coverage_ratio in {1.0, None}, name


def test_logs_of_a_few_rows_and_of_years_are_analysed() -> None:
    for length in (1, 2, 3):
        series = {"memory": 10, "power": 100, "temperature": 60, "clock": 1400, "sw_power_cap": 1}
        analysis = analyze(rec(util=steps((50, length)), **series))
        assert analysis.statistics[0].metric("gpu_utilization_ratio") is not None
    years = 20.0 * 365 * 86_400
    times = np.concatenate([[0.0, 1.0], np.arange(298.0) + years])
    analysis = analyze(rec(util=steps((97, 300)), times=times, cpu=np.full(300, 20.0)))
    assert dict(analysis.gpu_time[0].seconds)["no_job"] > 0.99 * years


ITEMS = ["memory", "precision", "cpu_beside_gpu", "input_pipeline", "cpu_cores", "batch", "framework", "throughput"]
BUSY, CALM = steps((97, 300)), steps((20, 300))
DONE, TRY, CANNOT = "done", "worth trying", "cannot be judged"
Answers = dict[str, tuple[str, str]]


def answers(run: Recording) -> Answers:
    return {entry.item: (str(entry.state), entry.reason_code) for entry in analyze(run).checklist}


def check(table: dict[str, tuple[Recording, Answers]]) -> None:
    for name, (run, expected) in table.items():
        got = answers(run)
        assert {item: got[item] for item in expected} == expected, name


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
