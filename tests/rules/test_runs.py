"""Rules held against runs: every kind of them, what is missing, where they apply, and what is acknowledged."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport import Analysis
from gpureport.testing import Confidence, Finding, Severity, Source, Work, check, finding, recording, steps
from tests.rules.nights import BROKEN, CANNOT, PASSED, one, told
from tests.statistics.runs import learning, made
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
STARTED = np.concatenate([np.zeros(300), np.full(600, 90.0)])
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
    "after a start-up": made("a", util=STARTED, work=Work(amount=12_000, unit="steps")),
    "without work": made("a", util=STARTED),
}
ACCURACY = [0.2, 0.5, 0.7, 0.76, 0.8, 0.79, 0.79, 0.79]
LOSS = [2.0, 1.0, 0.6, 0.5, 0.4, 0.45, 0.45, 0.45]
CURVES = {
    "trained": {"val_accuracy": ACCURACY, "val_loss": LOSS},
    "priced": {"val_accuracy": ACCURACY},
    "without metrics": {},
    "a loss": {"loss": LOSS},
    "a gain": {"gain": LOSS},
    "a validation loss": {"val_loss": LOSS},
    "an accuracy of 0.4": {"val_accuracy": [0.4] * 8},
    "an accuracy that rises slowly": {"val_accuracy": [0.1 + minute / 100 for minute in range(8)]},
    "an accuracy in per cent": {"val_accuracy": [value * 100 for value in ACCURACY]},
    "diverged": {name: [*ACCURACY[:7], float("nan")] for name in ("val_loss", "val_accuracy")},
}
"""Training metrics of runs of ten minutes, one value a minute."""


def test_a_run_is_held_against_each_limit() -> None:
    runs, target = dict(RUNS), dict.fromkeys(CURVES, "val_accuracy=0.75")
    for name, curves in CURVES.items():
        points = {metric: (np.arange(1, 9) * 60.0, values) for metric, values in curves.items()}
        runs[name] = learning("a", points, is_priced=name == "priced")
    for name, limit, outcome, said in read_table(Path(__file__).with_name("judged.tsv")):
        found = one(limit, runs[name], target=target.get(name))
        observed = "no value" if found.value is None else found.observed.replace("\N{NO-BREAK SPACE}", " ")
        why = found.reason_code if outcome == CANNOT else observed
        assert (found.outcome.value, said) == (outcome, why if said != "-" else "-"), (name, limit)
        assert {name not in CURVES, outcome != CANNOT, found.value is None} != {False}, (name, limit)
    assert one("val_loss <= 1", runs["diverged"]).observed.startswith("diverged")
    assert one("training_rate_hertz >= 19 /s", RUNS["after a start-up"]).value == pytest.approx(20, rel=0.01)


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


def having(*findings: Finding) -> Analysis:
    return replace(TEN, findings=findings)


TEN = gpureport.analyze(recording(util=[90.0] * 600))
GAP, LEAK = finding("idle_gap", (0, 50), lost=50.0), finding("mem_leak", (0, 50), lost=50.0)
CAP = finding("power_cap", (0, 50))
FINGERPRINTS = {"gap": GAP.fingerprint, "caused_gap": replace(GAP, cause="io").fingerprint, "cap": CAP.fingerprint}
FOUND = {
    "usual": run(),
    "a gap": run(gaps(50.0), tags=(("profiled", "yes"),)),
    "nothing found": having(),
    "a long gap": having(GAP),
    "an unexplained gap": having(replace(GAP, cause="unknown")),
    "a long gap and a leak": having(GAP, LEAK),
    "a cap below its limit": having(replace(CAP, kind="power_limited", cause="capped below its limit")),
    "a wait": having(finding("cpu_bound", (0, 50), lost=50.0)),
}


def test_where_a_limit_holds_and_what_excuses_it() -> None:
    for name, limit, where, outcome, code in read_table(Path(__file__).with_name("policies.tsv")):
        more = tomllib.loads(Template(where).substitute(FINGERPRINTS).replace("; ", "\n"))
        known = {"reason": "disk is ordered", "until": "2026-12-31", **more.pop("acknowledge", {"limit": "lost <= 1%"})}
        found = one(scoped(limit, **more) | {"acknowledge": [known]}, FOUND[name])
        assert (found.outcome.value, code) == (outcome, found.reason_code if code != "-" else "-"), (limit, where)
        assert name != "a long gap and a leak" or found.value == 1


def test_a_limit_holds_for_the_step_and_source_named() -> None:
    source = Source(kind="nvidia_smi", locator="logs/node1.csv", sha256="ab")
    night, other = run(step="night-31", name="night", sources=(source,)), run(step="other", id="x", name="other")
    for where in ({"step": "night-*"}, {"source": "node1.*"}, {"source": "logs/*"}):
        found = check(scoped("gpu_utilization_ratio >= 1%", **{"for": where}), night, other)
        assert [(each.run, each.outcome.value) for each in found] == [("night", PASSED)], where
    assert told(one(scoped("rejected <= 0", **{"for": {"step": "day-*"}}), night, other)) == (CANNOT, "no_run_matches")
    every = check(["duration >= 1 min", "rejected <= 0"], night, other)
    assert [each.run for each in every] == ["night", "other"] * 2


def test_a_severity_says_what_is_open() -> None:
    found = one("no problem", run([]))
    assert (told(found), "cpu_bound" in found.reason) == ((PASSED, "kinds_not_judged"), True)
    ignored = gpureport.analyze(recording(util=np.full(90, 90.0)), ignore="idle_gap")
    assert told(one("no idle_gap", ignored)) == (CANNOT, "not_looked_for")
