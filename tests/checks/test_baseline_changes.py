"""Changes against a baseline: broken only where the interval excludes the size, and never passed on too little."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpureport.checks import check_wording
from gpureport.checks.formats import check_summary
from gpureport.checks.limit import parse_limit
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.verdicts.repetition_noise import MetricNoise, Noise
from gpureport.report.wording.differences.comparison_reasons import SINGLE_RUN_SCATTER
from gpureport.testing import Check, CheckOutcome, Confidence, Work, finding
from tests.comparison.runs import level, sampled
from tests.nightly.nights import changed, policy

PASSED, BROKEN, CANNOT = CheckOutcome.PASSED, CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE
AGAIN = "ingest its log with --work N:UNIT and set the baseline again"
GIVE = "give --work N:UNIT to this check"
LIMIT = "change gpu_utilization_ratio >= -4 points"


def night(name: str, mean: float, count: int = 1800, seed: int = 0) -> SampledRun:
    """Return half an hour at a utilisation."""
    return sampled(name, util=level(mean, count, seed), power=200.0)


@pytest.mark.parametrize(("mean", "outcome"), [(85.0, PASSED), (90.0, PASSED), (83.0, PASSED), (76.0, BROKEN)])
def test_one_night_breaks_a_limit_that_its_interval_excludes(mean: float, outcome: CheckOutcome) -> None:
    """A pair breaks it only beyond the size and what repeating a run commonly changes, whatever the pair differs by."""
    (check,) = changed(LIMIT, [night("old", 85.0)], [night("new", mean, seed=1)])
    assert check.outcome is outcome
    assert check.reason == "one run a side; the interval is no narrower than what repeating a run commonly changes"
    assert check.bounds is not None
    assert check.bounds[1] - check.bounds[0] >= 0.04


def test_a_change_beyond_the_limit_that_chance_may_explain_never_passes() -> None:
    """It is not known whether it is broken; the size, what leaves it open and what settles it are said."""
    (check,) = changed(LIMIT, [night("old", 85.0)], [night("new", 80.0, seed=1)])
    assert check.outcome is CANNOT
    (line,) = check_summary.render_text((check,)).splitlines()
    assert line.startswith(f"NOT ASSESSED: {LIMIT} (new): fell by 5.")
    assert line.endswith(
        "against the baseline; whether it fell by more than 4 points is not known from one run a side: "
        "make the baseline of three runs: gpureport baseline set NAME A B C."
    )


@pytest.mark.parametrize("limit", ["-5 points", "-42 points", "-44 points"])
def test_widening_a_limit_arms_no_gate_of_short_runs(limit: str) -> None:
    """Two minutes against two minutes: half the utilisation is gone, and no limit makes that green."""
    (check,) = changed(f"change gpu_utilization_ratio >= {limit}", [short("old", 90.0)], [short("new", 45.0, seed=1)])
    assert (check.outcome, check.observed.startswith("fell by 45.")) == (CANNOT, True)
    assert f"whether it fell by more than {limit[1:]} is not known from runs this short: record 10 min" in check.reason
    assert "widen" not in check.reason


def short(name: str, mean: float, seed: int = 0) -> SampledRun:
    """Return two minutes at a utilisation."""
    return night(name, mean, 120, seed)


@pytest.mark.parametrize(
    ("limit", "means", "observed", "bound"),
    [
        (">= -4 points", (85, 70), "fell by 15.0 points (95%: −17.0 to −13.0)", "allowed: a fall of 4 points"),
        ("> -4 points", (85, 70), "fell by 15.0 points (95%: −17.0 to −13.0)", "allowed: a fall of less than 4 points"),
        (">= 5 points", (85, 85), "changed by 0.0 points (95%: −2.0 to +2.0)", "required: a rise of 5 points"),
        ("<= 4 points", (70, 85), "rose by 15.0 points (95%: +13.0 to +17.0)", "allowed: a rise of 4 points"),
    ],
)
def test_a_change_that_fails_says_what_was_allowed(
    limit: str, means: tuple[float, float], observed: str, bound: str
) -> None:
    """As a fall or a rise of a size: a sign is easily overlooked."""
    before, after = (sampled(str(mean), util=np.full(1800, float(mean))) for mean in (means[0], means[1]))
    after = replace(after, analysis=replace(after.analysis, run=replace(after.analysis.run, id="after")))
    (check,) = changed(f"change gpu_utilization_ratio {limit}", [before], [after])
    (line, _) = check_summary.render_text((check,)).splitlines()
    assert line == f"FAILED: GPU utilisation {observed} against the baseline; {bound}."


@pytest.mark.parametrize(
    ("limit", "note"),
    [
        (">= 5 points", "fails without a rise of 5 points; to allow a fall of 5 points: {} >= -5 points"),
        ("<= -3%", "fails without a fall of 3%; to allow a rise of 3%: {} <= 3%"),
        ("<= 3%", ""),
    ],
)
def test_a_rule_that_demands_a_change_is_named(limit: str, note: str) -> None:
    """With what is meant more often: a sign that is forgotten is no error."""
    figure = "change idle_ratio" if "points" in limit else "change gpu_power_watts"
    noted = list(check_wording.list_demanding_rules([parse_limit(f"{figure} {limit}")]))
    assert noted == [f"{figure} {limit} {note.format(figure)}"] * bool(note)


def test_a_size_within_the_noise_cannot_be_judged() -> None:
    """Where chance alone changes more than the limit allows, quiet is no proof."""
    (check,) = changed("change gpu_utilization_ratio >= -1 points", [night("old", 85.0)], [night("new", 85.0, seed=1)])
    assert check.outcome is CANNOT
    assert check.reason.startswith("whether it fell by more than 1 points is not known from one run a side: make the")


def test_measured_noise_takes_the_place_of_common_noise() -> None:
    """A store whose repetitions scatter more makes the gate blunter, one that is quieter makes it sharper."""
    sides = [night("old", 85.0)], [night("new", 79.5, seed=1)]
    outcomes = []
    for deviation in (0.0005, 0.01):
        each = MetricNoise(metric="gpu_utilization_ratio", relative=False, deviation=deviation, degrees=20, groups=5)
        (check,) = changed(LIMIT, *sides, noise=Noise(metrics=(each,)))
        outcomes.append((check.outcome, "repetitions in this store" in check.reason))
    assert outcomes == [(BROKEN, True), (CANNOT, False)]


def test_repetitions_speak_for_themselves() -> None:
    """Three runs a side are judged by their scatter, as one check for the step."""
    before = [replace_step(night(f"old {seed}", 85.0 + 0.1 * seed, seed=seed)) for seed in range(3)]
    after = [replace_step(night(f"new {seed}", 83.0 + 0.1 * seed, seed=9 + seed)) for seed in range(3)]
    (check,) = changed("change gpu_utilization_ratio >= -1 point", before, after)
    assert (check.outcome, check.reason, check.run) == (BROKEN, "3 baseline runs, 3 checked", "nightly")


def test_the_scatter_of_the_repeated_side_stands_for_both() -> None:
    """A rule decides on one run against several, and says by what assumption."""
    several = [replace_step(night(f"old {seed}", 85.0 + 0.1 * seed, seed=seed)) for seed in range(3)]
    one = [replace_step(night("new", 70.0, seed=9))]
    (check,) = changed("change gpu_utilization_ratio >= -1 point", several, one)
    assert check.outcome is BROKEN
    assert check.reason == f"3 baseline runs, 1 checked; {SINGLE_RUN_SCATTER}"
    (check,) = changed("change gpu_utilization_ratio <= 1 point", one, several)
    assert (check.outcome, check.reason) == (BROKEN, f"1 baseline run, 3 checked; {SINGLE_RUN_SCATTER}")


@pytest.mark.parametrize(
    ("words", "ends", "is_known"),
    [
        ("<= 5%", (-0.080, 0.034), True),
        ("<= 5%", (-0.080, 0.052), False),
        (">= -5%", (-0.034, 0.080), True),
        (">= -5%", (-0.052, 0.080), False),
        (">= 5%", (0.051, 0.200), True),
        ("<= 5%", (0.051, 0.200), True),
        ("<= 5%", (0.049, 0.200), False),
        (">= -5%", (-0.900, -0.051), True),
    ],
)
def test_a_limit_that_the_whole_interval_keeps_or_breaks_is_known(
    words: str, ends: tuple[float, float], *, is_known: bool
) -> None:
    """However wide the interval is: no change on the other side of the limit could have been missed."""
    limit = parse_limit(f"change gpu_seconds_per_1000_work {words}")
    value = (ends[0] + ends[1]) / 2
    unknown = check_wording.explain_unknown_change(limit, value, ends, "from runs that differ this much")
    assert (unknown == "") == is_known


def test_no_share_changes_by_more_than_is_left_of_it() -> None:
    """Two minutes have an interval of 42 points to either side, which ends at 0 and at 100%."""
    (fallen,) = changed("change gpu_utilization_ratio >= -4 points", [short("old", 90.0)], [short("new", 28.0, seed=1)])
    (risen,) = changed("change gpu_utilization_ratio <= 9 points", [short("old", 90.0)], [short("new", 91.0, seed=1)])
    assert fallen.bounds is not None
    assert risen.bounds is not None
    assert fallen.bounds[0] == pytest.approx(-0.90, abs=0.01)
    assert fallen.bounds[1] == pytest.approx(-0.20, abs=0.02)
    assert risen.bounds[0] < -0.40
    assert risen.bounds[1] == pytest.approx(0.10, abs=0.01)


def test_one_night_may_end_at_the_most_there_is() -> None:
    """What repeating a run commonly changes ends there too."""
    (check,) = changed("change gpu_utilization_ratio <= 4 points", [night("old", 98.9)], [night("new", 99.2, seed=1)])
    assert check.bounds is not None
    assert check.bounds[1] == pytest.approx(0.011, abs=0.005)


@pytest.mark.parametrize(
    ("every", "limit", "outcome"), [(1.0, "5%", PASSED), (1.0, "3%", CANNOT), (0.1, "3%", BROKEN), (0.1, "5%", PASSED)]
)
def test_work_is_timed_no_finer_than_it_is_sampled(every: float, limit: str, outcome: CheckOutcome) -> None:
    """Runs of as many samples each scatter by nothing, and one sample more may be chance."""

    def made(name: str, seconds: float) -> SampledRun:
        run = sampled(name, util=level(95, round(seconds / every), 1), every=every)
        work = replace(run.analysis.run, work=Work(amount=150, unit="steps"))
        return replace(run, analysis=replace(run.analysis, run=work))

    baseline = [made(f"old {number}", 24.0) for number in range(3)]
    (check,) = changed(f"change gpu_seconds_per_1000_work <= {limit}", baseline, [made("new", 25.0)])
    assert check.outcome is outcome
    assert check.bounds is not None
    assert check.bounds[1] - check.bounds[0] == pytest.approx(2 * every / 24, rel=0.5)
    told = "is not known from runs this short: take runs of about 6\N{NO-BREAK SPACE}min"
    assert (told in check.reason) == (every == 1.0 and outcome is CANNOT)


def worked(name: str, seconds: float, steps: int = 600) -> SampledRun:
    """Return a run that took so long for its steps, sampled ten times a second."""
    run = sampled(name, util=level(95, round(seconds * 10), 1), every=0.1)
    work = replace(run.analysis.run, work=Work(amount=steps, unit="steps"))
    return replace(run, analysis=replace(run.analysis, run=work))


def test_what_would_settle_a_change_is_computed() -> None:
    """More baseline runs, or longer ones; `take` so many."""
    baseline = [worked(f"old {number}", seconds) for number, seconds in enumerate((59.2, 60.0, 60.8))]
    (check,) = changed("change gpu_seconds_per_1000_work <= 5%", baseline, [worked("new", 60.2)])
    assert check.outcome is CANNOT
    assert check.reason.replace("\N{NO-BREAK SPACE}", " ").endswith(
        "from runs that differ this much: take 5 baseline runs or runs of about 3 min"
    )
    more = [*baseline, worked("old 3", 59.4), worked("old 4", 60.6)]
    assert changed("change gpu_seconds_per_1000_work <= 5%", more, [worked("new", 60.2)])[0].outcome is PASSED


@pytest.mark.parametrize(("baseline", "more"), [((58.4, 61.6), (59.4, 60.6)), ((60.0,), (61.0,))])
def test_the_runs_that_are_asked_for_are_those_of_the_baseline(
    baseline: tuple[float, ...], more: tuple[float, ...]
) -> None:
    """It grows where it has fewer than were checked, too, and so many runs will do."""

    def repeat(name: str, seconds: tuple[float, ...]) -> list[SampledRun]:
        return [replace_step(worked(f"{name} {each}", each)) for each in seconds]

    def check(before: tuple[float, ...]) -> Check:
        checked = repeat("new", (59.0, 60.0, 60.4, 61.4))
        return changed("change gpu_seconds_per_1000_work <= 5%", repeat("old", before), checked)[0]

    found = check(baseline)
    assert found.outcome is CANNOT
    assert f": take {len(baseline + more)} baseline runs or runs of about" in found.reason
    assert check(baseline + more).outcome is PASSED


@pytest.mark.parametrize(
    ("limit", "spread", "advice"),
    [
        ("0.18%", 0.1, "from runs this short: take runs of about 27 min"),
        ("0.18%", 1.2, "from runs this short: state a larger size"),
        ("0.3%", 1.2, "from runs that differ this much: state a larger size"),
        ("5%", 0.8, "from runs that differ this much: take 5 baseline runs or runs of about 3 min"),
    ],
)
def test_the_cause_is_what_the_remedy_is_for(limit: str, spread: float, advice: str) -> None:
    """Runs are too short where no number of them would do, by the same width."""
    baseline = [worked(f"old {number}", 60.0 + spread * place) for number, place in enumerate((-1, 0, 1))]
    (check,) = changed(f"change gpu_seconds_per_1000_work <= {limit}", baseline, [worked("new", 60.0)])
    assert check.outcome is CANNOT
    assert check.reason.replace("\N{NO-BREAK SPACE}", " ").endswith(advice)


@pytest.mark.parametrize("seconds", [7300, 8300])
def test_a_larger_size_is_asked_for_where_nothing_else_would_settle_it(seconds: float) -> None:
    """Neither more baseline runs nor longer ones, of jobs that take hours and differ this much, far from the limit."""
    baseline = [worked(f"old {number}", seconds) for number, seconds in enumerate((6000, 7200, 8400))]
    (check,) = changed("change gpu_seconds_per_1000_work <= 5%", baseline, [worked("new", seconds)])
    assert check.outcome is CANNOT
    assert check.reason.endswith("is not known from runs that differ this much: state a larger size")


def test_a_change_about_as_large_as_the_limit_asks_for_another_size() -> None:
    """It breaks the limit by next to nothing, and no reasonable number of runs tells."""
    baseline = [worked(f"old {number}", seconds) for number, seconds in enumerate((59.2, 60.0, 60.8))]
    (check,) = changed("change gpu_seconds_per_1000_work >= -5%", baseline, [worked("new", 56.9)])
    assert check.outcome is CANNOT
    assert check.reason.endswith("is not known so close to the limit: state another size")


def test_one_run_of_the_baseline_that_stands_apart_is_named() -> None:
    """It alone leaves the change open: neither more nor longer runs would help."""
    baseline = [*(worked(f"run-{number}", 60.0 + number / 10) for number in range(5)), worked("run-6", 180.0)]
    (check,) = changed("change gpu_seconds_per_1000_work <= 5%", baseline, [worked("new", 60.2)])
    assert check.outcome is CANNOT
    assert check.reason.endswith(
        "is not known since run-6 is 3 times slower than the others: set the baseline without it"
    )


def replace_step(run: SampledRun) -> SampledRun:
    """Return a run as a repetition of the step `nightly`."""
    return replace(run, analysis=replace(run.analysis, run=replace(run.analysis.run, step="nightly")))


def test_a_figure_of_one_value_a_run_is_held_against_common_noise() -> None:
    """A peak has no interval of its own: it breaks a limit by more than the size and what is common."""
    sides = [sampled("old", util=level(85), memory=40.0)], [sampled("new", util=level(85, seed=1), memory=44.0)]
    outcomes = [changed(f"change gpu_memory_used_bytes <= {limit}%", *sides)[0].outcome for limit in (2, 5, 8, 12)]
    assert outcomes == [BROKEN, BROKEN, CANNOT, PASSED]
    assert (
        changed(
            "change gpu_memory_used_bytes <= 2%", sides[0], [sampled("close", util=level(85, seed=1), memory=40.1)]
        )[0].outcome
        is CANNOT
    )


def test_a_relative_change_is_a_share_of_the_baseline() -> None:
    """Per cent are of the baseline's value, units absolute."""
    sides = [sampled("old", util=90.0 * np.ones(1200), power=200.0)], [sampled("new", util=level(90), power=250.0)]
    relative, absolute = (changed(f"change gpu_power_watts <= {limit}", *sides)[0] for limit in ("10%", "10 W"))
    assert (relative.outcome, absolute.outcome) == (BROKEN, BROKEN)
    assert relative.value == pytest.approx(0.25, abs=1e-6)
    assert absolute.value == pytest.approx(50.0, abs=1e-3)
    assert relative.observed.replace("\N{NO-BREAK SPACE}", " ").startswith(
        "rose by 25% (95%: +22% to +28%) against the"
    )


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (night("old", 85.0), "the baseline is the very recording that is checked"),
        (sampled("short", util=level(85, 15)), "Less than 20 s was recorded"),
        (
            sampled("minute", util=level(85, 40)),
            "whether it fell by more than 4 points is not known from runs this short",
        ),
        (sampled("brief", util=level(85, 100)), ""),
    ],
)
def test_what_cannot_be_compared_cannot_pass(after: SampledRun, reason: str) -> None:
    """The same recording, and one that is too short, keep no limit on a change."""
    (check,) = changed(LIMIT, [night("old", 85.0)], [after])
    assert (check.outcome, check.reason.startswith(reason)) == (CANNOT, True)


def test_a_run_of_the_baseline_is_compared_with_the_others() -> None:
    """A baseline that the checked run pulls down does not excuse it."""
    tonight = night("new", 70.0)
    (check,) = changed(LIMIT, [night("old", 85.0, seed=1), night("older", 85.0, seed=2), tonight], [tonight])
    assert (check.outcome, check.observed.startswith("fell by 15")) == (BROKEN, True)


def test_a_change_is_of_all_gpus(tmp_path: Path) -> None:
    """A change limited for one GPU is refused as not judged, not judged as another."""
    limits = policy(tmp_path, f'[[policy]]\nlimit = "{LIMIT}"\nfor = {{ gpu = 0 }}\n')
    (check,) = changed(limits, [night("old", 85.0)], [night("new", 85.0, seed=1)])
    assert (check.outcome, check.reason) == (CANNOT, "changes are of all GPUs together: leave gpu out of for")


def with_findings(run: SampledRun, *kinds: str) -> SampledRun:
    """Return a run with findings of the causes of waits and no other."""
    found = tuple(finding(kind, (0, 50), lost=50.0) for kind in kinds)
    return replace(run, analysis=replace(run.analysis, findings=found))


def test_only_new_findings_are_new() -> None:
    """What the baseline has as well breaks nothing."""
    before = [with_findings(night("old", 85.0), "idle_gap")]
    same = changed("no new warning", before, [with_findings(night("new", 85.0), "idle_gap")])
    more = changed("no new warning", before, [with_findings(night("new", 85.0), "idle_gap", "log_gap")])
    assert [same[0].outcome, more[0].outcome] == [PASSED, BROKEN]
    assert more[0].observed == "1 finding: log_gap"


def test_whether_it_is_new_may_not_be_known() -> None:
    """A finding of a kind that the baseline could not judge cannot be told to be new, nor passed."""
    after = [with_findings(night("new", 85.0), "cpu_bound")]
    (check,) = changed("no new warning", [with_findings(night("old", 85.0))], after)
    assert (check.outcome, check.reason.startswith("whether cpu_bound is new cannot be told")) == (CANNOT, True)


def test_an_unsure_finding_that_may_be_new_is_said_not_to_count() -> None:
    """Also where it is not known whether the baseline had it."""
    after = with_findings(night("new", 85.0), "cpu_bound")
    unsure = tuple(replace(each, confidence=Confidence.LOW) for each in after.analysis.findings)
    after = replace(after, analysis=replace(after.analysis, findings=unsure))
    (check,) = changed("no new warning", [with_findings(night("old", 85.0))], [after])
    assert check.observed == "0 findings, 1 finding with less than medium confidence not counted"


@pytest.mark.parametrize(
    ("worked", "reason"),
    [
        (
            (False, True),
            f"the work done in the baseline is not known: {AGAIN}",
        ),
        ((True, False), f"the work done in this run is not known: {GIVE}"),
        (
            (False, False),
            f"the work done in the baseline and in this run is not known: {AGAIN}, and {GIVE}",
        ),
    ],
)
def test_a_side_without_work_is_named(worked: tuple[bool, bool], reason: str) -> None:
    """With what to do on that side."""
    sides = []
    for name, known in zip(("old", "new"), worked, strict=True):
        made = night(name, 85.0)
        run = replace(made.analysis.run, work=Work(amount=1000, unit="steps") if known else None)
        sides.append([replace(made, analysis=replace(made.analysis, run=run))])
    (check,) = changed("change gpu_seconds_per_1000_work <= 5%", sides[0], sides[1])
    assert (check.outcome, check.reason) == (CANNOT, reason)


def test_a_side_without_a_metric_is_named() -> None:
    """Also of figures that need no work."""
    (check,) = changed("change gpu_sm_clock_hertz >= -5%", [night("old", 85.0)], [night("new", 85.0)])
    assert check.reason == "gpu_sm_clock_hertz was not recorded in the baseline and in this run"
