"""The whole analysis: order, sorting, what could not be judged, and what sampling cannot show."""

from collections.abc import Iterable

import numpy as np
import pytest

from gpureport.analysis import RULES, analyze
from gpureport.analysis.engine.ordering import order_rules
from gpureport.analysis.rules.kind_description import KindDescription
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.findings import Finding, NotJudged, Severity
from gpureport.testing import recording, steps, unjudged


def _rule(*made: str, needs: tuple[str, ...] = ()) -> Rule:
    class Silent(Rule):
        """A rule that finds nothing."""

        name = made[0]
        descriptions = tuple(
            KindDescription(name=kind, title=kind, meaning="", recommendations=(), advice_paths=()) for kind in made
        )
        after = needs

        def find(self, context: Context) -> Iterable[Finding | NotJudged]:
            """Find nothing new."""
            return iter(context.earlier_findings)

    return Silent()


def test_rules_run_behind_those_they_need() -> None:
    """The order given stays where needs allow it."""
    first, second, third = _rule("a", needs=("c",)), _rule("b"), _rule("c")
    assert [rule.kinds[0] for rule in order_rules((first, second, third))].index("c") < 2
    assert set(order_rules((first, second, third))) == {first, second, third}


def test_a_circle_of_needs_is_refused() -> None:
    """The message names the circle."""
    with pytest.raises(ValueError, match="rules wait for each other: "):
        order_rules((_rule("a", needs=("b",)), _rule("b", needs=("a",))))


def test_a_need_of_a_rule_left_out_is_no_error() -> None:
    """Selecting one kind works."""
    chosen = tuple(rule for rule in RULES if "idle_gap" in rule.kinds)
    assert {
        finding.kind for finding in analyze(recording(util=steps((97, 60), (0, 20), (97, 60))), chosen).findings
    } == {"idle_gap"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kinds[0])
def test_every_rule_says_its_condition(rule: Rule) -> None:
    """Docstring, kinds and thresholds are there for the reference pages."""
    assert type(rule).__doc__
    assert rule.kinds


def test_no_kind_is_made_twice() -> None:
    """A kind belongs to one rule."""
    kinds = [kind for rule in RULES for kind in rule.kinds]
    assert len(kinds) == len(set(kinds))


def test_findings_are_sorted_by_weight() -> None:
    """Worst first, then by lost time."""
    util = steps((0, 30), (97, 100), (0, 60), (97, 50), (0, 30), (97, 100))
    findings = analyze(recording(util=util, memory=np.linspace(1, 30, 370))).findings
    ranks = [list(Severity).index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks, reverse=True)


def test_every_finding_holds_evidence_samples_and_advice() -> None:
    """Nothing is said without figures."""
    util, cpu = steps((0, 60), (97, 300), (20, 300), (0, 30), (97, 100)), steps((20, 360), (95, 300), (20, 130))
    run = recording(
        util=util, cpu=cpu, memory=steps((20, 200), (30, 590)), power=399, power_limit=400, temperature=60, clock=1400
    )
    findings = analyze(run).findings
    assert {finding.kind for finding in findings} >= {
        "startup_idle",
        "cpu_bound",
        "mem_headroom",
        "power_cap",
        "idle_gap",
    }
    for finding in findings:
        assert finding.evidence
        assert finding.samples > 0
        assert finding.recommendation.endswith(".")
        assert finding.summary.endswith(".")


def test_kinds_that_lack_their_metrics_are_not_judged() -> None:
    """One entry a kind, with the command that would answer it, the same for all GPUs."""
    analysis = analyze(recording(temperature=[steps((60, 60)), steps((61, 60))]))
    kinds = [entry.kind for entry in analysis.not_judged]
    assert len(kinds) == len(set(kinds))
    assert {"idle_gap", "cpu_bound", "mem_pressure", "thermal_throttle", "power_limited"} <= set(kinds)
    assert analysis.findings == ()
    assert analysis.phases == ()


def test_a_change_of_pace_is_said() -> None:
    """Where idle gaps are not looked for, and what all is taken for where most of the time is sampled seldom."""
    first = [*range(600), *range(600, 900, 10), *range(900, 1200)]
    most = [*range(600), *range(600, 1800, 10)]
    part, seldom = (analyze(recording(util=steps((97, len(times))), times=times)) for times in (first, most))
    assert any(said.startswith("For 5 min samples are 10 s apart instead of 1 s") for said in part.limits)
    assert any(said.startswith("Most samples are 10 s apart, some only 1 s.") for said in seldom.limits)
    for analysis in (part, seldom):
        assert analysis.coverage_ratio == 1.0
        assert not any(finding.kind == "log_gap" for finding in analysis.findings)
    steady = analyze(recording(util=steps((97, 600))))
    assert not any(" apart " in said for said in steady.limits)


def test_what_sampling_cannot_show_is_said() -> None:
    """The shortest visible gap grows with the interval."""
    fine = analyze(recording(util=steps((97, 60))))
    coarse = analyze(recording(util=steps((97, 60)), every=30.0))
    assert fine.limits[0] == "Idle gaps shorter than 5 s are not looked for."
    assert "shorter than 1 min 1 s" in coarse.limits[0]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_log_of_a_few_rows_is_analysed(length: int) -> None:
    """Nothing fails for want of samples."""
    run = recording(util=steps((50, length)), memory=10, power=100, temperature=60, clock=1400, sw_power_cap=1)
    analysis = analyze(run)
    assert analysis.statistics[0].metric("gpu_utilization_ratio") is not None


def test_a_single_sample_has_no_length() -> None:
    """Neither energy nor time is made up, nor an interval that nobody knows."""
    analysis = analyze(recording(util=[50.0], power=100.0, memory=10.0))
    (figures,) = analysis.statistics
    assert (figures.energy_joules, figures.observed_seconds, figures.idle_seconds) == (None, 0.0, 0.0)
    assert analysis.limits == ()


@pytest.mark.parametrize(
    "kind",
    ["idle_gap", "startup_idle", "tail_idle", "cpu_bound", "low_util_cause_unknown", "mem_prealloc", "power_cap"],
)
def test_a_recording_below_the_shortest_length_of_a_kind_is_not_judged(kind: str) -> None:
    """Silence would read as a good result."""
    analysis = analyze(recording(util=steps((97, 4)), cpu=steps((20, 4)), memory=10, power=100, power_limit=400))
    (entry,) = unjudged(analysis, kind)
    assert entry.reason == "the recording covers only 3 s"
    assert entry.recording.startswith("a log of at least ")


@pytest.mark.parametrize("kind", ["mem_headroom", "mem_pressure", "thermal_throttle"])
def test_one_moment_is_not_judged(kind: str) -> None:
    """A single sample is no peak and no episode."""
    (entry,) = unjudged(analyze(recording(util=[97.0], memory=10.0, sw_thermal_slowdown=1.0)), kind)
    assert entry.reason == "the recording holds only one moment"
