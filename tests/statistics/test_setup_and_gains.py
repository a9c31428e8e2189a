"""What changed between steps, what had advised it, what it was worth, and what is left to gain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.testing import GPU_TIME_CLASSES, AdvisedStep, Device, Finding, Work, finding
from tests.statistics.runs import document, judged, level, made, thrice

GPU = Device(id="gpu:0", index=0, model="NVIDIA H100 80GB HBM3", driver="550.54")
PLAIN = made("plain", util=np.full(601, 90.0), device=GPU)
LOST = {"hollow", "low_use", "throttled", "waiting_for_input", "idle", "unused", "startup", "tail", "gpu_lost"}


def configured(  # noqa: PLR0913 - each argument is something a test varies
    step: str,
    params: dict[str, str] | None = None,
    *,
    tags: dict[str, str] | None = None,
    findings: Sequence[Finding] = (),
    name: str = "1",
    device: Device = GPU,
) -> Analysis:
    told = {"step": step, "id": f"{step} {name}", "name": f"{step} {name}", "devices": (device,)}
    said = {"params": tuple((params or {}).items()), "tags": tuple((tags or {}).items())}
    return judged(PLAIN, *findings, info=told | said)


def advising(*names: str, kind: str = "low_util_cause_unknown", lost: float | None = 10.0) -> Finding:
    return replace(finding(kind, (100, 120), lost=lost), steps=tuple(AdvisedStep(name=name) for name in names))


WORKERS = advising("loader_workers", "prefetch")


def changes(*runs: Analysis) -> dict[str, dict[str, Any]]:
    return {change["key"]: change for change in document(*runs)["changes"]}


def test_params_that_changed_between_runs() -> None:
    found = changes(
        configured("a", {"workers": "2", "lr": "0.1"}), configured("b", {"workers": "14", "lr": "0.1", "pin": "1"})
    )
    values = {key: (change["before"], change["after"]) for key, change in found.items()}
    assert values == {"workers": ("2", "14"), "pin": (None, "1")}
    before = [configured("a", {"workers": value}, name=str(at)) for at, value in enumerate(("2", "2", "14"))]
    after = [configured("b", {"workers": value}, name=str(at)) for at, value in enumerate(("14", "14", "2"))]
    workers = changes(*before, *after)["workers"]
    assert (workers["before"], workers["after"]) == ("14, 2", "14, 2")
    assert workers["values_before"] == [{"text": "2", "runs": 2}, {"text": "14", "runs": 1}]
    assert workers["values_after"] == [{"text": "14", "runs": 2}, {"text": "2", "runs": 1}]
    same = [configured("b", dict(one.run.params), name=one.run.name) for one in before]
    assert changes(*before, *same) == {}


def test_what_describes_one_run_is_no_change() -> None:
    one_run = ("sys/id", "run_id", "runId", "created", "git.commit", "mlflow.source.git.commit", "mlflow.note.content")
    for key in (*one_run, "user", "job"):
        found = changes(configured("a", tags={key: "1"}), configured("b", tags={key: "2"}))
        assert [change["of_one_run"] for change in found.values()] == [True], key
    for key in ("model.name", "data_dir", "optimizer", "user_embedding", "seed"):
        found = changes(configured("a", {key: "1"}), configured("b", {key: "2"}))
        assert [change["of_one_run"] for change in found.values()] == [False], key
    for seeds, is_of_one_run in ((("1", "2", "3", "4"), True), (("1", "1", "2", "2"), False)):
        runs = [configured("ab"[at // 2], {"seed": seed}, name=str(at)) for at, seed in enumerate(seeds)]
        assert changes(*runs)["seed"]["of_one_run"] == is_of_one_run, seeds


def test_hardware_and_params_are_changes_where_they_were_recorded() -> None:
    # A GPU of another size is a change; totals that a tracker's shares give are of one size within 5%.
    sizes = [replace(GPU, memory_total_bytes=total) for total in (79_600_000_000, 80_400_000_000, 40_000_000_000)]
    first, second, third = (configured(label, device=gpu) for label, gpu in zip("abc", sizes, strict=True))
    assert changes(first, second) == {}
    assert [(each["kind"], each["after"]) for each in changes(second, third).values()] == [("hardware", "37 GiB")]
    runs = configured("a", {"x": "1"}), configured("b", tags={"y": "2"}), configured("c", tags={"user": "ada"})
    gains = document(*runs, configured("d"))["gains"]
    assert [row["params_recorded"] for row in gains[1:]] == [True, False, False]


def test_what_bears_on_the_gpu_comes_first() -> None:
    first, second = (
        configured(
            label,
            {"CUDA_HOME": label, "accuracy": label, "batch_size": size, "depth": label, "lr": label}
            | {"precision": "fp32" if label == "a" else "16", "num_workers": size},
            tags={"command": f"python train.py --depth {label} lr={label}", "cluster": label},
            device=replace(GPU, driver=label),
        )
        for label, size in (("a", "1"), ("b", "2"))
    )
    order = ("num_workers", "precision", "batch_size", "driver", "CUDA_HOME", "accuracy", "depth", "lr")
    assert list(changes(first, second)) == [*order, "cluster", "command"]


def test_the_finding_that_advised_is_named() -> None:
    first, second = (configured(label, {"amp": "0"}, findings=[advising("mixed_precision")]) for label in "ab")
    third = configured("c", {"amp": "True"})
    for runs, step in (((first, configured("b", {"amp": "0"}), third), "a"), ((first, second, third), "b")):
        assert [each["advised_in"] for each in document(*runs)["gains"][2]["advised"]] == [step]
    both = [advising("loader_workers", kind=kind, lost=lost) for kind, lost in (("io_bound", 1), ("idle_gap", 9))]
    starved, fed = configured("a", {"workers": "2"}, findings=both), configured("b", {"workers": "14"})
    (found,) = document(starved, fed)["gains"][1]["advised"]
    assert (found["kind"], found["setting"], found["cause"]) == ("idle_gap", "workers", None)
    mixed = [configured("b", {"workers": value}, name=value) for value in ("2", "14")]
    assert document(starved, *mixed)["gains"][1]["advised"] == []


def test_a_change_that_a_finding_had_or_may_have_advised() -> None:
    """The default of a program is not known: 8 workers may be more than before, or fewer. A switch was off."""
    two, eight, plain = {"workers": "2"}, {"lr": "1", "workers": "8"}, {"lr": "1"}
    pin, pinned = [advising("pinned_memory")], {"lr": "1", "pin": "True"}
    large, small = (replace(GPU, memory_total_bytes=size * 2**30) for size in (80, 40))
    less = [advising("smaller_gpu")]
    cases: list[tuple[str, Analysis, Analysis, list[str], list[str]]] = [
        ("more", configured("a", two, findings=[WORKERS]), configured("b", {"workers": "14"}), ["loader_workers"], []),
        ("fewer", configured("a", {"workers": "14"}, findings=[WORKERS]), configured("b", two), [], []),
        ("another", configured("a", {"batch": "64"}, findings=[WORKERS]), configured("b", {"batch": "256"}), [], []),
        ("later", configured("a", two), configured("b", {"workers": "14"}, findings=[WORKERS]), [], []),
        ("no params", configured("a", findings=pin), configured("b", {"pin": "True"}), [], []),
        ("a switch", configured("a", plain, findings=pin), configured("b", pinned), ["pinned_memory"], []),
        ("hardware", configured("a", device=large, findings=less), configured("b", device=small), ["smaller_gpu"], []),
        ("named", configured("a", plain, findings=[WORKERS]), configured("b", eight), [], ["loader_workers"]),
        ("unnamed", configured("a", eight, findings=[WORKERS]), configured("b", plain), [], ["loader_workers"]),
        ("known", configured("a", two, findings=[WORKERS]), configured("b", eight), ["loader_workers"], []),
        ("no advice", configured("a", plain), configured("b", eight), [], []),
        ("unknown size", configured("a", plain, findings=less), configured("b", plain, device=small), [], []),
    ]
    for name, before, after, *expected in cases:
        row = document(before, after)["gains"][1]
        assert [[each["name"] for each in row[key]] for key in ("advised", "possibly_advised")] == expected, name


def runs_of(step: str, seconds: int, *, gpus: int = 1, price: float | None = None) -> list[Analysis]:
    def lasting(work: Work, k: int) -> dict[str, Any]:
        util, power = ([level(mean, seconds + k, k)] * gpus for mean in (90, 200.0))
        return {"util": util, "power": power, "work": work, "price": price}

    return thrice(lasting, {step: Work(amount=1000, unit="images")})


def test_gains_need_a_price_and_stand_with_changes_in_one_row() -> None:
    since = document(*runs_of("a", 300), *runs_of("b", 180, gpus=2))["gains"][1]["since_before"]
    assert since["whole_job"]["ratio"] == pytest.approx(300 / 180, rel=0.03)
    assert since["gpu_time"]["ratio"] == pytest.approx(2 * 180 / 300, rel=0.03)
    assert since["cost"] is None
    priced = document(*runs_of("a", 200, price=2.0), *runs_of("b", 100, price=2.0))["gains"][1]["since_before"]
    assert priced["cost"]["ratio"] == pytest.approx(priced["gpu_time"]["ratio"])
    bare = document(configured("a"), configured("b"))["gains"][1]["since_before"]
    assert {bare[name] for name in ("whole_job", "gpu_time", "cost", "energy")} == {None}
    before = configured("a", {"workers": "2"}, tags={"sys/id": "X-1"}, findings=[advising("loader_workers")])
    row = document(before, configured("b", {"workers": "14"}, tags={"sys/id": "X-2"}))["gains"][1]
    assert row["params_recorded"]
    assert [(each["key"], each["before"], each["after"]) for each in row["changes"]] == [("workers", "2", "14")]
    assert [each["name"] for each in row["advised"]] == ["loader_workers"]
    assert row["findings"]["resolved"] == [{"kind": "low_util_cause_unknown", "cause": None}]


def spent(run: Analysis, seconds: float = 1000.0, **classes: float) -> Analysis:
    parts = {"computing": seconds - sum(classes.values())} | classes
    (gpu,) = run.gpu_time
    return replace(run, gpu_time=(replace(gpu, seconds=tuple(parts.items())),))


def test_what_the_last_step_could_gain_at_most() -> None:
    """A job that loses 30 and 20% is at most twice as fast without; unseen time and short pauses widen the bound."""
    last, first = configured("last"), configured("first")
    for classes, lost, at_most in (
        ({"startup": 300.0, "idle": 200.0}, 0.5, 2.0),
        ({"no_samples": 250.0, "idle": 250.0}, 0.25, 2.0),
        ({"short_pauses": 200.0, "idle": 300.0}, 0.3, 2.0),
        ({"idle": 1000.0}, 1.0, None),
        ({}, 0.0, 1.0),
        ({"no_samples": 600.0, "idle": 100.0}, None, None),
    ):
        found = document(first, spent(last, **classes))["potential"]
        assert found["lost_ratio"] == (None if lost is None else pytest.approx(lost)), classes
        assert found["at_most"] == (None if at_most is None else pytest.approx(at_most)), classes
    each = document(first, spent(last, startup=300.0, idle=200.0))["potential"]["losses"]
    assert [(one["name"], one["lost_ratio"]) for one in each] == [("startup", 0.3), ("idle", 0.2)]
    assert [one["at_most"] for one in each] == pytest.approx([1 / 0.7, 1.25])


def remaining(*runs: Analysis) -> Any:
    return document(configured("first"), *runs)["remaining"]


def lost(kind: str, seconds: float | None, cause: str | None = None, gpu: int = 0) -> Finding:
    return finding(kind, (0, 30), lost=seconds, cause=cause, devices=(f"gpu:{gpu}",))


def test_the_largest_finding_left_counts_one_kind_and_cause() -> None:
    # Two gaps of 30 s for data come before one of 50 s for a checkpoint; a mean over the runs of the step.
    gaps = [lost("idle_gap", 30.0, "data"), lost("idle_gap", 30.0, "data", 1)]
    first = configured("last", findings=[*gaps, lost("idle_gap", 50.0, "checkpoint")], name="1")
    found = remaining(first, configured("last", findings=gaps[:1], name="2"))["largest"]
    assert (found["kind"], found["cause"], found["findings"], found["runs"]) == ("idle_gap", "data", 3, 2)
    assert (found["lost_gpu_seconds"], found["devices"]) == (45.0, ["gpu:0", "gpu:1"])
    gap = lost("idle_gap", 100.0, "data")
    root = replace(lost("cpu_bound", 80.0), consequences=(gap.fingerprint,))
    assert remaining(configured("last", findings=[gap, root]))["largest"]["kind"] == "cpu_bound"
    assert remaining(configured("last", findings=[lost("hw_throttle", None)]))["largest"] is None
    runs = [
        configured("last", findings=[lost("tail_idle", 0.1), lost("idle_gap", 0.3)], name="1"),
        configured("last", findings=[lost("tail_idle", 0.2)], name="2"),
    ]
    assert remaining(*runs)["largest"] == remaining(*runs[::-1])["largest"]


def test_losses_that_are_unknown_and_classes_that_reports_call_lost() -> None:
    for lost, at_most, unmeasured in ((None, None, ["thermal_throttle"]), (5.0, 2.0, [])):
        slowed = configured("last", findings=[finding("thermal_throttle", (0, 10), lost=lost)])
        found = document(configured("first"), spent(slowed, idle=500.0))["potential"]
        assert (found["at_most"], found["unmeasured"]) == (at_most, unmeasured)
    assert set(GPU_TIME_CLASSES) == LOST | {"computing", "short_pauses", "no_samples", "no_job"}
    left = remaining(spent(configured("last"), **{name: 10.0 + at for at, name in enumerate(sorted(LOST))}))
    assert left["step"] == "last"
    assert set(left["lost_gpu_seconds"]) == LOST
    amounts = list(left["lost_gpu_seconds"].values())
    assert amounts == sorted(amounts, reverse=True)


def test_a_share_is_given_where_all_of_the_loss_is_known() -> None:
    cases: list[tuple[dict[str, Any], float | None]] = [
        ({"every": 0.5, "util": [97.0] * 16}, None),
        ({"every": 30.0, "util": [97.0] * 4}, None),
        ({"util": [97.0] * 300}, 0.0),
        ({"util": [97.0] * 100 + [0.0] * 100 + [97.0] * 100}, 1 / 3),
        ({"util": [97.0] * 100 + [np.nan] * 200}, None),
        ({"every": 0.5, "util": [60.0, 20.0] * 20}, None),
        ({"every": 0.5, "util": [70.0, 62.0] * 400 + [0.0] * 60}, None),
    ]
    for place, (series, expected) in enumerate(cases):
        (run,) = document(made("a", power=300.0, **series), PLAIN)["steps"][0]["runs"]
        assert run["lost_ratio"] == (None if expected is None else pytest.approx(expected, abs=0.01)), place
