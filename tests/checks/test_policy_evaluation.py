"""Limits held against runs: every kind of them, and what is missing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpureport.checks.check_wording import describe_failures, describe_passed
from gpureport.checks.policy import Policy
from gpureport.report.wording.display import plain
from gpureport.testing import (
    GIB,
    Analysis,
    CheckOutcome,
    Confidence,
    Severity,
    Source,
    Work,
    analyze,
    finding,
    recording,
    steps,
)
from tests.nightly.nights import judged, policy, priced

PASSED, BROKEN, CANNOT = CheckOutcome.PASSED, CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE


def run(found: tuple[object, ...] | None = None, **fields: object) -> Analysis:
    """Return 20 minutes of two GPUs at 90 and 70% and 200 W, with findings and fields of the run set by hand."""
    made = priced(recording(util=np.array([[90.0] * 1200, [70.0] * 1200]), power=200.0, memory=40.0))
    chosen = made.findings if found is None else found
    return replace(made, findings=chosen, run=replace(made.run, **fields))  # type: ignore[arg-type]  # real fields


@pytest.mark.parametrize(
    ("limit", "outcome", "observed"),
    [
        ("gpu_utilization_ratio >= 65%", PASSED, "70% on GPU 1"),
        ("gpu_utilization_ratio >= 80%", BROKEN, "70% on GPU 1"),
        ("gpu_utilization_ratio <= 95%", PASSED, "90% on GPU 0"),
        ("gpu_utilization_ratio below_70 <= 10%", PASSED, "0% on GPU 0"),
        ("gpu_memory_used_bytes max <= 39 GiB", BROKEN, "40 GiB on GPU 0"),
        ("gpu_memory_headroom_ratio >= 40%", PASSED, "50% on GPU 0"),
        ("gpu_memory_peak_bytes <= 80 GiB", PASSED, "40 GiB on GPU 0"),
        ("idle_seconds <= 1 s", PASSED, "0 s on GPU 0"),
        ("idle_ratio <= 1%", PASSED, "0%"),
        ("energy_joules <= 130 Wh", BROKEN, "133 Wh"),
        ("gpu_seconds <= 1 h", PASSED, "39 min 58 s"),
        ("duration >= 30 min", BROKEN, "19 min 59 s"),
        ("duration < 0.333 h", BROKEN, "0.3331 h"),
        ("energy_joules <= 133.2 Wh", BROKEN, "133.22 Wh"),
        ("rejected <= 0", PASSED, "0 lines"),
        ("cost <= 3000 EUR", PASSED, "€2,398.00"),
        ("idle_cost <= 1 EUR", PASSED, "€0.00"),
        ("carbon <= 40 g", BROKEN, "48 g"),
        ("idle <= 1%", PASSED, "0%"),
        ("computing >= 40 min", BROKEN, "32.0 GPU-min"),
        ("no_samples <= 1%", PASSED, "0%"),
    ],
)
def test_a_figure_is_held_against_its_limit(limit: str, outcome: CheckOutcome, observed: str) -> None:
    """Statistics, figures, cost and GPU time, of the worst GPU where each has its own."""
    (check,) = judged(limit, run())
    assert (check.outcome, check.observed.replace("\N{NO-BREAK SPACE}", " ")) == (outcome, observed)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("gpu_sm_clock_hertz >= 1 GHz", "gpu_sm_clock_hertz of GPU 0 was not recorded; needs gpureport record"),
        ("cpu_utilization_ratio <= 90%", "no host was recorded"),
        ("work_rate_hertz >= 3", "work_rate_hertz cannot be told: say the work done with --work N:UNIT"),
        ("cost <= 3 USD", "prices are stated in EUR, not in USD"),
        ("waiting_for_input <= 1%", "cpu_bound could not be judged (cpu_utilization_ratio was not recorded)"),
        ("throttled <= 1%", "thermal_throttle could not be judged"),
        ("change idle_ratio <= 2 points", "no baseline was named (--baseline)"),
        ("no new problem", "no baseline was named (--baseline)"),
        ("no cpu_bound", "cpu_bound was not assessed: cpu_utilization_ratio was not recorded"),
    ],
)
def test_what_was_not_recorded_cannot_be_judged(limit: str, reason: str) -> None:
    """A limit whose metric is absent is not kept."""
    (check,) = judged(limit, run())
    assert check.outcome is CANNOT
    assert check.reason.startswith(reason)


def test_coverage_of_a_single_sample_is_not_known() -> None:
    """It has no length that could be covered."""
    (check,) = judged("coverage >= 90%", analyze(recording(util=[90.0])))
    assert (check.outcome, check.reason) == (
        CANNOT,
        "the coverage of a log without time stamps, or of one sample, is not known",
    )


def test_idle_cost_without_utilisation_says_so() -> None:
    """No idle time is known, which is not none; and energy rests on the time of power, not of utilisation."""
    made = priced(recording(power=np.full(1200, 200.0)))
    assert made.cost is not None
    assert made.cost.idle is None
    idle, energy = (judged(limit, made)[0] for limit in ("idle_cost <= 1 EUR", "energy_joules <= 100 Wh"))
    assert (idle.outcome, idle.reason) == (
        CANNOT,
        "the utilisation of a GPU was not recorded, so what was idle is not known",
    )
    assert energy.outcome is PASSED


def test_a_metric_that_one_gpu_lacks_cannot_pass() -> None:
    """What one GPU did not record may break a limit; what the others did still breaks one."""
    power = np.array([[200.0] * 300, [np.nan] * 300])
    made = analyze(recording(util=90.0, power=power))
    assert [judged(f"gpu_power_watts <= {watts} W", made)[0].outcome for watts in (300, 100)] == [CANNOT, BROKEN]


@pytest.mark.parametrize("limit", ["gpu_utilization_ratio >= 50%", "idle_ratio <= 50%", "problem", "lost <= 99%"])
def test_half_a_minute_passes_nothing(limit: str) -> None:
    """A recording of less than a minute keeps no limit."""
    (check,) = judged(limit, analyze(recording(util=np.full(30, 90.0))))
    assert (check.outcome, "a minute is the least" in check.reason) == (CANNOT, True)


@pytest.mark.parametrize("limit", ["lost <= 99%", "idle <= 99%"])
def test_a_handful_of_samples_passes_nothing(limit: str) -> None:
    """Four samples over minutes are too few, which is said of their number and of no share of the time."""
    (check,) = judged(limit, analyze(recording(util=np.full(4, 90.0), every=60.0)))
    reason = check.reason.replace("\N{NO-BREAK SPACE}", " ")
    assert (check.outcome, reason) == (CANNOT, "only 4 samples with a utilisation, and 5 are the least")


def test_time_without_samples_may_be_lost() -> None:
    """A share of GPU time is judged by what it can be: holes of the log may hold any of it."""
    times = np.concatenate([np.arange(300), np.arange(400, 700)])
    made = analyze(recording(util=np.full(600, 90.0), times=times))
    outcomes = {limit: judged(f"lost <= {limit}%", made)[0] for limit in (5, 20)}
    assert [check.outcome for check in outcomes.values()] == [CANNOT, PASSED]
    assert outcomes[5].reason == "whether it is kept depends on time without samples"
    reason = judged("gpu_utilization_ratio >= 80%", made)[0].reason.replace("\N{NO-BREAK SPACE}", " ")
    assert reason == "only 86% of the time of GPU 0 was recorded"


def gaps(*seconds: float, severity: Severity = Severity.WARNING, **fields: object) -> tuple[object, ...]:
    """Return idle gaps on GPU 0 that lost so many GPU-seconds each."""
    found = [finding("idle_gap", (at * 100.0, at * 100 + 50), lost=lost) for at, lost in enumerate(seconds)]
    return tuple(replace(each, severity=severity, **fields) for each in found)  # type: ignore[arg-type]  # real fields


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ("no idle_gap", BROKEN),
        ("idle_gap <= 2", PASSED),
        ("idle_gap <= 1", BROKEN),
        ("idle_gap <= 4%", BROKEN),
        ("idle_gap <= 5%", PASSED),
        ("idle_gap <= 99 s", BROKEN),
        ("idle_gap <= 99 EUR", BROKEN),
        ("idle_gap <= 101 EUR", PASSED),
        ("no problem", PASSED),
        ("no warning", BROKEN),
        ("no info", BROKEN),
        ("no thermal_throttle", CANNOT),
    ],
)
def test_findings_are_counted_and_weighed(limit: str, outcome: CheckOutcome) -> None:
    """Kinds and severities, by number, by share or time lost, and by money."""
    assert judged(limit, run(gaps(50.0, 50.0)))[0].outcome is outcome


def test_a_consequence_is_part_of_its_root() -> None:
    """What follows from a finding that counts is not lost twice."""
    (root,) = gaps(50.0)
    after = replace(finding("low_util_cause_unknown", (0, 50), lost=50.0), root=getattr(root, "fingerprint"))  # noqa: B009 - typed as object
    assert judged("warning <= 51 s", run((root, after)))[0].outcome is PASSED


def test_a_loss_that_is_not_known_cannot_pass() -> None:
    """A finding whose cost in GPU time is not known keeps no limit on GPU time."""
    made = run((finding("idle_gap", (0, 50)),))
    assert judged("idle_gap <= 5%", made)[0].reason == "what idle_gap lost is not known in GPU time"


def test_suspicions_do_not_break_a_limit(tmp_path: Path) -> None:
    """Findings with low confidence do not count, which is said where the rule passes, unless a limit wants them to."""
    made = run(gaps(50.0, confidence=Confidence.LOW))
    (check,) = judged("no idle_gap", made)
    text = "0 findings, 1 finding with less than medium confidence not counted"
    assert (check.outcome, check.observed) == (PASSED, text)
    assert describe_passed([check]) == f"no idle_gap ({text})"
    strict = policy(tmp_path, '[[policy]]\nlimit = "no idle_gap"\nconfidence = "low"\n')
    assert judged(strict, made)[0].outcome is BROKEN


@pytest.mark.parametrize(
    ("spent", "kind", "outcome", "reason"),
    [
        ("low_use", "low_util_cause_unknown", CANNOT, "whether it is kept depends on low use of unknown cause"),
        ("low_use", "underutilised", PASSED, ""),
        ("short_pauses", "underutilised", CANNOT, "whether it is kept depends on short pauses"),
    ],
)
def test_time_that_may_be_waiting_cannot_pass(spent: str, kind: str, outcome: CheckOutcome, reason: str) -> None:
    """Half of the time that nothing explains may be waits for input; low use beside an idle host is none."""
    made = run((finding(kind, (0, 600), devices=("gpu:0", "gpu:1")),))
    halves = (("computing", 600.0), (spent, 600.0))
    made = replace(made, gpu_time=tuple(replace(gpu, seconds=halves) for gpu in made.gpu_time), not_judged=())
    (check,) = judged("waiting_for_input <= 2%", made)
    assert (check.outcome, check.reason) == (outcome, reason)
    assert judged("waiting_for_input <= 60%", made)[0].outcome is PASSED


def test_a_rule_ends_with_where_it_applies(tmp_path: Path) -> None:
    """What was seen and what is allowed stand side by side; the scope follows."""
    rule = policy(tmp_path, '[[policy]]\nlimit = "idle_ratio <= 1%"\nunless = "duration < 1 min"\n')
    checks = judged(rule, analyze(recording(util=np.full(300, 2.0))))
    assert list(describe_failures(checks)) == ["idle share 100%, allowed 1% unless duration < 1 min"]


def test_what_could_not_be_judged_is_said_beside_a_severity() -> None:
    """A severity passes with the kinds named that could not be judged."""
    (check,) = judged("no problem", run(()))
    assert (check.outcome, check.reason.startswith("not assessed: ")) == (PASSED, True)
    assert "cpu_bound" in check.reason


def test_a_kind_nobody_looked_for_cannot_pass() -> None:
    """--ignore cannot make a gate green."""
    (check,) = judged("no idle_gap", run(()), asked=frozenset({"cpu_bound"}))
    assert (check.outcome, check.reason) == (CANNOT, "idle_gap was not looked for (--select, --ignore)")


def test_a_limit_holds_for_the_gpu_named(tmp_path: Path) -> None:
    """With `for` only that GPU counts, and one that is not there cannot be judged."""
    text = '[[policy]]\nlimit = "{limit}"\nfor = {{ gpu = {gpu} }}\n'
    made = run(gaps(50.0))
    results = [
        judged(policy(tmp_path, text.format(limit=limit, gpu=gpu)), made)[0].outcome
        for limit in ("gpu_utilization_ratio >= 80%", "no idle_gap", "idle_gap <= 3%")
        for gpu in (0, 1, 7)
    ]
    assert results == [PASSED, BROKEN, CANNOT, BROKEN, PASSED, CANNOT, BROKEN, PASSED, CANNOT]


def test_gpus_that_are_there_are_judged_and_the_others_named(tmp_path: Path) -> None:
    """Of several GPUs meant those the run has are judged, and it is said which it lacks."""
    text = '[[policy]]\nlimit = "gpu_utilization_ratio >= {share}%"\nfor = {{ gpu = {gpus} }}\n'
    results = [
        judged(policy(tmp_path, text.format(share=share, gpus=gpus)), run())[0]
        for share, gpus in ((80, [0, 4, 7]), (80, [1, 4]), (80, [0, 1]), (80, [4, 5, 6]))
    ]
    assert [(check.outcome, check.reason) for check in results] == [
        (PASSED, "the run has no GPU 4 and 7"),
        (BROKEN, "the run has no GPU 4"),
        (BROKEN, ""),
        (CANNOT, "the run has no GPU 4, 5 and 6"),
    ]


@pytest.mark.parametrize(
    ("unless", "outcome"),
    [("duration < 1 h", CheckOutcome.NOT_APPLIED), ("duration < 1 min", CANNOT), ("idle_gap", CANNOT)],
)
def test_an_exception_of_the_whole_run_excuses_without_its_gpu(
    tmp_path: Path, unless: str, outcome: CheckOutcome
) -> None:
    """A run too short for a limit is excused whatever GPUs it has; what is found on other GPUs excuses nothing."""
    text = f'[[policy]]\nlimit = "gpu_utilization_ratio >= 99%"\nfor = {{ gpu = 7 }}\nunless = "{unless}"\n'
    (check,) = judged(policy(tmp_path, text), run(gaps(50.0)))
    assert check.outcome is outcome


def test_a_limit_holds_for_the_step_and_source_named(tmp_path: Path) -> None:
    """Runs are chosen by patterns; where no run is meant nothing passes."""
    night = run(step="night-31", sources=(Source(kind="nvidia_smi", locator="logs/node1.csv", sha256="ab"),))
    other = run(step="other", id="x")
    text = '[[policy]]\nlimit = "gpu_utilization_ratio >= 1%"\nfor = {{ {where} }}\n'
    for where, names in (
        ('step = "night-*"', ["night-31"]),
        ('source = "node1.*"', ["night-31"]),
        ('source = "logs/*"', ["night-31"]),
    ):
        found = judged(policy(tmp_path, text.format(where=where)), night, other)
        assert [check.outcome for check in found] == [PASSED] * len(names)
    (check,) = judged(policy(tmp_path, text.format(where='step = "day-*"')), night, other)
    assert (check.outcome, check.reason) == (CANNOT, "no run is step day-*")


@pytest.mark.parametrize(
    ("unless", "outcome", "reason"),
    [
        ("idle_gap", CheckOutcome.NOT_APPLIED, "idle_gap: 1 finding: idle_gap"),
        ("duration < 1 h", CheckOutcome.NOT_APPLIED, "duration < 1 h: 19 min 59 s"),
        ("duration < 1 min", BROKEN, ""),
        ("tag profiled = yes", CheckOutcome.NOT_APPLIED, "tag profiled is yes"),
        ("tag profiled = no", BROKEN, ""),
        ("param lr = 1", BROKEN, ""),
        ("mem_leak", BROKEN, ""),
        ("cpu_utilization_ratio > 90%", BROKEN, "whether cpu_utilization_ratio mean > 90% could not be told"),
    ],
)
def test_an_exception_excuses_a_limit(tmp_path: Path, unless: str, outcome: CheckOutcome, reason: str) -> None:
    """A limit does not apply where its exception holds; one that cannot be told excuses nothing."""
    text = f'[[policy]]\nlimit = "gpu_utilization_ratio >= 99%"\nunless = "{unless}"\n'
    (check,) = judged(policy(tmp_path, text), run(gaps(50.0), tags=(("profiled", "yes"),)))
    assert (check.outcome, plain(check.reason)) == (outcome, reason)


def test_every_limit_is_held_against_every_run() -> None:
    """Two limits and two runs are four checks, in the order of the limits."""
    wanted = Policy().with_limits(["duration >= 1 min", "rejected <= 0"])
    found = judged(wanted, run(), run(name="other", id="x"))
    assert [check.run for check in found] == ["made by hand", "other"] * 2


def test_work_makes_figures_known() -> None:
    """Figures per unit of work are judged where the work is said."""
    made = run(work=Work(amount=12_000, unit="steps"))
    assert judged("work_rate_hertz >= 9 /s", made)[0].outcome is PASSED
    assert judged("cost_per_1000_work <= 100 EUR", made)[0].outcome is BROKEN


def test_a_peak_is_exact() -> None:
    """The value stands in its base unit for machines."""
    (check,) = judged("gpu_memory_peak_bytes <= 80 GiB", run())
    assert (check.metric, check.value, check.unit, check.bounds) == ("gpu_memory_peak_bytes", 40 * GIB, "By", None)


def test_a_gap_is_not_what_a_mean_rests_on() -> None:
    """A run that idles half of its time breaks a limit on idleness, found as it is."""
    made = analyze(recording(util=steps((95, 600), (0, 600)), power=200.0))
    assert judged("idle_ratio <= 40%", made)[0].outcome is BROKEN


@pytest.mark.parametrize("limit", ["cost <= 3 EUR", "idle_cost <= 3 EUR"])
def test_a_price_without_a_currency_says_where_to_name_one(limit: str) -> None:
    """A limit on money is in a currency, which a price of the command line has none of."""
    made = run()
    assert made.cost is not None
    (check,) = judged(limit, replace(made, cost=replace(made.cost, currency="")))
    wanted = 'the price names no currency, and the limit is in EUR: write currency = "EUR" under [prices]'
    assert (check.outcome, check.reason) == (CANNOT, wanted)
