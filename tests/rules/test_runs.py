"""Rules held against runs: every kind of them, what is missing, where they apply, and what is acknowledged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gpureport
from gpureport import Analysis
from gpureport.testing import Confidence, Finding, Severity, Source, Work, check, finding, recording, steps
from tests.rules.nights import BROKEN, CANNOT, PASSED, one, told
from tests.support.tables import read_table

PRICED = {"prices": {"gpu_hour": 3600, "currency": "EUR", "date": "2026-11-01"}, "carbon": {"intensity": 360}}
MADE = gpureport.analyze(
    recording(util=np.array([[90.0] * 1200, [70.0] * 1200]), power=200.0, memory=40.0), settings=PRICED
)


def run(findings: Sequence[Finding] | None = None, **info: Any) -> Analysis:
    """Return 20 minutes of two GPUs at 90 and 70% and 200 W, with findings and fields of the run set by hand."""
    chosen = MADE.findings if findings is None else tuple(findings)
    return replace(MADE, findings=chosen, run=replace(MADE.run, **info))


def bare(every: float = 1.0, **series: Any) -> Analysis:
    return gpureport.analyze(recording(every=every, **series), settings=PRICED)


NO_CURRENCY = replace(MADE, cost=replace(MADE.cost, currency="") if MADE.cost else None)
HOLES = bare(util=np.full(600, 90.0), times=np.concatenate([np.arange(300), np.arange(400, 700)]))


def gaps(*seconds: float, confidence: Confidence = Confidence.HIGH) -> list[Finding]:
    found = [
        finding("idle_gap", (at * 100.0, at * 100 + 50), lost=lost, confidence=confidence)
        for at, lost in enumerate(seconds)
    ]
    return [replace(each, severity=Severity.WARNING) for each in found]


RUNS = {
    "usual": run(),
    "no currency": NO_CURRENCY,
    "no prices": gpureport.analyze(recording(util=np.full(90, 90.0))),
    "no power": bare(util=np.full(90, 90.0)),
    "one sample": bare(util=[90.0]),
    "power alone": bare(power=np.full(1200, 200.0)),
    "half a minute": bare(util=np.full(30, 90.0)),
    "four samples": bare(util=np.full(4, 90.0), every=60.0),
    "holes": HOLES,
    "loss not known": run([finding("idle_gap", (0, 50))]),
    "two gaps": run(gaps(50.0, 50.0)),
}


def test_a_run_is_held_against_each_limit() -> None:
    for name, limit, outcome, said in read_table(Path(__file__).with_name("judged.tsv")):
        found = one(limit, RUNS[name])
        why = found.reason_code if outcome == CANNOT else found.observed.replace("\N{NO-BREAK SPACE}", " ")
        assert (found.outcome.value, said) == (outcome, why if said != "-" else "-"), (name, limit)


def test_what_is_known_is_judged_beside_findings_that_do_not_count() -> None:
    assert one("energy_joules <= 100 Wh", bare(power=np.full(1200, 200.0))).outcome.value == PASSED
    assert one("lost <= 20%", HOLES).outcome.value == PASSED
    half = bare(util=90.0, power=np.array([[200.0] * 300, [np.nan] * 300]))
    assert [one(f"gpu_power_watts <= {watts} W", half).outcome.value for watts in (300, 100)] == [CANNOT, BROKEN]
    idle = bare(util=steps((95, 600), (0, 600)), power=200.0)
    broken = one("idle_ratio <= 40%", idle)
    assert broken.outcome.value == BROKEN
    # the class `idle` leaves both out
    assert "start-up and end included" in broken.observed
    worked = run(work=Work(amount=12_000, unit="steps"))
    assert one("work_rate_hertz >= 9 /s", worked).outcome.value == PASSED
    assert one("cost_per_1000_work <= 100 EUR", worked).outcome.value == BROKEN
    (root,) = gaps(50.0)
    after = replace(finding("low_util_cause_unknown", (0, 50), lost=50.0), root=root.fingerprint)
    assert one("warning <= 51 s", run([root, after])).outcome.value == PASSED
    unsure = run(gaps(50.0, confidence=Confidence.LOW))
    assert (one("no idle_gap", unsure).outcome.value, one("no idle_gap", unsure).value) == (PASSED, 0)
    strict = {"policy": [{"limit": "no idle_gap", "confidence": "low"}]}
    assert one(strict, unsure).outcome.value == BROKEN
    assert told(one("warning <= 1", run([*gaps(50.0), *gaps(1.0, confidence=Confidence.LOW)])))[0] == PASSED


def test_time_that_may_be_waiting_cannot_pass() -> None:
    cases: list[tuple[str, str, str, str]] = [
        ("low_use", "low_util_cause_unknown", CANNOT, "unknown_gpu_time"),
        ("low_use", "underutilised", PASSED, ""),
        ("short_pauses", "underutilised", CANNOT, "unknown_gpu_time"),
    ]
    for spent, kind, outcome, code in cases:
        made = run([finding(kind, (0, 600), devices=("gpu:0", "gpu:1"))])
        halves = (("computing", 600.0), (spent, 600.0))
        made = replace(made, gpu_time=tuple(replace(gpu, seconds=halves) for gpu in made.gpu_time), not_judged=())
        assert told(one("waiting_for_input <= 2%", made)) == (outcome, code), spent
        assert one("waiting_for_input <= 60%", made).outcome.value == PASSED, spent


def scoped(limit: str, **more: Any) -> dict[str, Any]:
    return {"policy": [{"limit": limit, **more}]}


def test_a_limit_holds_for_the_gpus_named() -> None:
    made = run(gaps(50.0))
    results = [
        one(scoped(limit, **{"for": {"gpu": gpu}}), made).outcome.value
        for limit in ("gpu_utilization_ratio >= 80%", "no idle_gap", "idle_gap <= 3%")
        for gpu in (0, 1, 7)
    ]
    assert results == [PASSED, BROKEN, CANNOT, BROKEN, PASSED, CANNOT, BROKEN, PASSED, CANNOT]
    for gpus, expected in (
        ([0, 4, 7], (PASSED, "no_such_gpu")),
        ([1, 4], (BROKEN, "no_such_gpu")),
        ([0, 1], (BROKEN, "")),
        ([4, 5, 6], (CANNOT, "no_such_gpu")),
    ):
        assert told(one(scoped("gpu_utilization_ratio >= 80%", **{"for": {"gpu": gpus}}), run())) == expected, gpus
    # a run too short for a limit is excused whatever GPUs it has; what is found on other GPUs excuses nothing
    for unless, outcome in (("duration < 1 h", "does not apply"), ("duration < 1 min", CANNOT), ("idle_gap", CANNOT)):
        rule = scoped("gpu_utilization_ratio >= 99%", unless=unless, **{"for": {"gpu": 7}})
        assert one(rule, made).outcome.value == outcome, unless
    assert told(one(scoped("change idle_ratio <= 1 point", **{"for": {"gpu": 0}}), run())) == (CANNOT, "no_baseline")
    assert told(one(scoped("val_accuracy >= 0.1", **{"for": {"gpu": 0}}), run())) == (CANNOT, "no_gpu_scope")


def test_a_limit_holds_for_the_step_and_source_named() -> None:
    source = Source(kind="nvidia_smi", locator="logs/node1.csv", sha256="ab")
    night, other = run(step="night-31", name="night", sources=(source,)), run(step="other", id="x", name="other")
    for where in ({"step": "night-*"}, {"source": "node1.*"}, {"source": "logs/*"}):
        found = check(scoped("gpu_utilization_ratio >= 1%", **{"for": where}), night, other)
        assert [(each.run, each.outcome.value) for each in found] == [("night", PASSED)], where
    assert told(one(scoped("rejected <= 0", **{"for": {"step": "day-*"}}), night, other)) == (CANNOT, "no_run_matches")
    every = check(["duration >= 1 min", "rejected <= 0"], night, other)
    assert [each.run for each in every] == ["night", "other"] * 2


def test_an_exception_excuses_a_limit() -> None:
    cases: list[tuple[str, tuple[str, str]]] = [
        ("idle_gap", ("does not apply", "exempt")),
        ("duration < 1 h", ("does not apply", "exempt")),
        ("duration < 1 min", (BROKEN, "")),
        ("tag profiled = yes", ("does not apply", "exempt")),
        ("tag profiled = no", (BROKEN, "")),
        ("param lr = 1", (BROKEN, "")),
        ("mem_leak", (BROKEN, "")),
        ("cpu_utilization_ratio > 90%", (BROKEN, "exemption_not_known")),
    ]
    for unless, expected in cases:
        rule = scoped("gpu_utilization_ratio >= 99%", unless=unless)
        assert told(one(rule, run(gaps(50.0), tags=(("profiled", "yes"),)))) == expected, unless


GAP, LEAK = finding("idle_gap", (0, 50), lost=50.0), finding("mem_leak", (0, 50), lost=50.0)
UNEXPLAINED_GAP = replace(GAP, cause="unknown")
CAP = finding("power_cap", (0, 50))
CAP_BELOW = replace(CAP, kind="power_limited", cause="capped below its limit")
ACKNOWLEDGED = ("acknowledged", "acknowledged")
TEN = gpureport.analyze(recording(util=[90.0] * 600))


def known(limit: str, until: str = "2026-12-31", /, **of: str) -> dict[str, Any]:
    return scoped(limit) | {"acknowledge": [{"reason": "disk is ordered", "until": until, **of}]}


def test_what_is_acknowledged_does_not_break_a_limit() -> None:
    cases: list[tuple[str, dict[str, str], list[Finding], tuple[str, str]]] = [
        ("no idle_gap", {"finding": "idle_gap"}, [GAP], ACKNOWLEDGED),
        ("no warning", {"finding": "idle_gap"}, [GAP], ACKNOWLEDGED),
        ("no warning", {"finding": GAP.fingerprint}, [GAP], ACKNOWLEDGED),
        ("no warning", {"finding": replace(GAP, cause="io").fingerprint}, [UNEXPLAINED_GAP], ACKNOWLEDGED),
        ("no warning", {"finding": CAP.fingerprint}, [CAP_BELOW], ACKNOWLEDGED),
        ("no warning", {"finding": "power_cap"}, [CAP_BELOW], ACKNOWLEDGED),
        ("no warning", {"finding": CAP.fingerprint}, [GAP], (BROKEN, "kinds_not_judged")),
        ("idle_gap <= 1%", {"finding": "idle_gap"}, [GAP], ACKNOWLEDGED),
        ("no warning", {"limit": "no warning"}, [GAP], ACKNOWLEDGED),
        ("gpu_utilization_ratio >= 99%", {"limit": "gpu_utilization_ratio >= 99%"}, [GAP], ACKNOWLEDGED),
        ("no warning", {"finding": "idle_gap"}, [GAP, LEAK], (BROKEN, "kinds_not_judged")),
        ("no warning", {"finding": "idle_gap"}, [], (PASSED, "kinds_not_judged")),
        ("gpu_sm_clock_hertz >= 1 GHz", {"limit": "gpu_sm_clock_hertz >= 1 GHz"}, [], (CANNOT, "not_recorded")),
        (
            "no cpu_bound",
            {"finding": "cpu_bound"},
            [finding("cpu_bound", (0, 50), lost=50.0)],
            (CANNOT, "kind_not_judged"),
        ),
    ]
    for limit, of, findings, expected in cases:
        found = one(known(limit, **of), replace(TEN, findings=tuple(findings)))
        assert told(found) == expected, limit
        assert LEAK not in findings or found.value == 1, limit


def test_acknowledgements_and_severities_say_what_is_open() -> None:
    found = one("no problem", run([]))
    assert (told(found), "cpu_bound" in found.reason) == ((PASSED, "kinds_not_judged"), True)
    ignored = gpureport.analyze(recording(util=np.full(90, 90.0)), ignore="idle_gap")
    assert told(one("no idle_gap", ignored)) == (CANNOT, "not_looked_for")
    made = replace(TEN, findings=(GAP,))
    for until, expected in (("2026-11-21", ACKNOWLEDGED), ("2026-11-20", (BROKEN, "acknowledgement_expired"))):
        assert told(one(known("no idle_gap", until, finding="idle_gap"), made)) == expected
