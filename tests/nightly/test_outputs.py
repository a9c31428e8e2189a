"""What people and machines are told of checks."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gpureport.checks.formats import check_json, check_junit, check_summary
from gpureport.checks.gate_verdict import Verdict, build_missing_check
from gpureport.checks.limit import parse_limit
from gpureport.checks.policy import PolicyEntry
from gpureport.nightly.site import figure_exports
from gpureport.report.wording import terms
from gpureport.testing import Check, CheckOutcome
from tests.comparison.runs import level, sampled

HOSTILE = "<script>alert(1)</script> | `x` ]]> & \x1b[31mred\x00 \u202e\nnext $\\frac{x$"
CHECKS = (
    Check(limit="rejected <= 0", run="night 31", outcome=CheckOutcome.PASSED, observed="0 lines", value=0.0),
    Check(limit="no idle_gap", run="night 31", outcome=CheckOutcome.BROKEN, observed="2 findings", value=2.0),
    Check(limit="cost <= 3 EUR", run=HOSTILE, outcome=CheckOutcome.CANNOT_JUDGE, reason=HOSTILE),
    Check(limit="no mem_leak", run="night 31", outcome=CheckOutcome.ACKNOWLEDGED, reason="acknowledged"),
    Check(limit="no ecc_error", run="night 31", outcome=CheckOutcome.NOT_APPLIED, reason="unless"),
)
PASSED, BROKEN, CANNOT = CHECKS[:3]


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ((PASSED,), 0),
        ((PASSED, *CHECKS[3:]), 0),
        ((PASSED, CANNOT), 4),
        ((CANNOT, BROKEN), 1),
        ((), 4),
    ],
)
def test_the_exit_code_is_that_of_the_gravest(checks: tuple[Check, ...], code: int) -> None:
    """Broken is 1, cannot judge 4, and 1 wins; no check at all is no success."""
    assert Verdict(checks=checks).exit_code == code


def test_the_line_says_how_it_ended_and_why() -> None:
    """One line with what is grave, safe to paste, and not too long for a chat."""
    line = Verdict(checks=CHECKS).line
    assert line.startswith("FAILED: Idle gaps (1 run). Allowed: none; cost <= 3 EUR (")
    assert line.isprintable()
    assert len(Verdict(checks=CHECKS * 50).line) <= 280
    assert Verdict(checks=(PASSED,)).line == "PASSED (1 passed)"
    assert Verdict(checks=()).line == "NOT ASSESSED (no rule is set)"


def test_junit_is_xml_with_a_case_a_check() -> None:
    """Broken is a failure, cannot judge an error, acknowledged skipped; counts agree with the cases."""
    root = ET.fromstring(check_junit.render(CHECKS))  # noqa: S314 - our own
    (suite,) = root
    cases = suite.findall("testcase")
    children = [case[0].tag for case in cases]
    assert children == ["system-out", "failure", "error", "skipped", "skipped"]
    assert [case.get("name") for case in cases] == [check.limit for check in CHECKS]
    assert [cases[0].get("classname"), cases[1][0].get("type")] == ["gpureport", "broken"]
    assert [(case[0].text or "").splitlines()[-1] for case in cases[:2]] == ["run: night 31"] * 2
    for each in (root, suite):
        assert [each.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "2"]


def test_junit_follows_a_rule_night_after_night() -> None:
    """A case keeps its name whatever the run is called; only runs that share a rule tell their cases apart."""

    def names(*checks: Check) -> list[tuple[str | None, str | None]]:
        root = ET.fromstring(check_junit.render(checks, rules=(PolicyEntry(limit=parse_limit("no idle_gap")),)))  # noqa: S314 - our own
        return [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]

    nights = [replace(BROKEN, run=f"2026-11-{day}") for day in (23, 24)]
    assert [names(night) for night in nights] == [[("gpureport", "no idle_gap")]] * 2
    assert names(*nights) == [("gpureport.2026-11-23", "no idle_gap"), ("gpureport.2026-11-24", "no idle_gap")]
    assert names(build_missing_check("x", "no such file")) == [
        ("gpureport", "the run has data"),
        ("gpureport", "no idle_gap"),
    ]


def test_the_summary_begins_with_the_line_and_is_one_table() -> None:
    """Markdown: heading, then a row a check, the gravest first, hostile text escaped."""
    lines = check_summary.render_markdown(CHECKS, f"gpureport check {Verdict(checks=CHECKS).line}").splitlines()
    assert lines[0].startswith("## gpureport check FAILED: Idle gaps (1 run). Allowed: none; ")
    rows = lines[4:]
    assert len(rows) == len(CHECKS)
    assert rows[0].startswith("| **failed** | night 31 | no idle\\_gap | 2 findings |")
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    assert not re.search(r"(?<!\\)<", "\n".join(lines))


def test_a_summary_makes_no_link_and_calls_nobody() -> None:
    """As in a report: addresses, entities and names after an at sign are text."""
    check = Check(limit="x", run="https://a.example @ada &lt;b&gt; www.b.example", outcome=CheckOutcome.PASSED)
    row = check_summary.render_markdown((check,), "PASSED").splitlines()[4]
    assert row.split(" | ")[1] == r"https\://a.example @&#8203;ada \&lt;b\&gt; www\.b.example"


def test_a_summary_keeps_the_limit_of_a_job() -> None:
    """Ten thousand checks stay far below the MiB a job may write, and the rest is counted."""
    long = Check(limit="x" * 5000, run="y" * 5000, outcome=CheckOutcome.PASSED, observed="z" * 5000)
    text = check_summary.render_markdown((long,) * 10_000, "PASSED")
    assert len(text.encode()) < 300_000
    assert text.endswith("9800 more checks are not listed.\n")


def test_the_text_steers_no_terminal() -> None:
    """Names from logs carry no escape code into a terminal; what failed comes first, what holds is one line."""
    text = check_summary.render_text(CHECKS)
    assert all(line.isprintable() for line in text.splitlines())
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        *("FAILED", "NOT ASSESSED", "Acknowledged", "Does not apply", "Passed")
    ]
    assert text.endswith("\nPassed: rejected <= 0 (0 lines).\n")


def test_what_failed_is_a_sentence() -> None:
    """With titles of findings, nouns of figures, and what was allowed; runs are named where there are several."""

    def failed(limit: str, observed: str, run: str = "a") -> Check:
        return Check(limit=limit, run=run, outcome=CheckOutcome.BROKEN, observed=observed)

    def said(*checks: Check) -> list[str]:
        return check_summary.render_text(checks).splitlines()

    assert said(failed("idle_ratio <= 5%", "49%")) == ["FAILED: idle share 49%, allowed 5%."]
    assert said(failed("gpu_utilization_ratio p5 >= 80%", "70% on GPU 1")) == [
        "FAILED: GPU utilisation p5 70% on GPU 1, required 80%."
    ]
    title = terms.kind_title("thermal_throttle")
    assert said(failed("no thermal_throttle", "1 finding: thermal_throttle")) == [
        f"FAILED: {title} (1 run). Allowed: none."
    ]
    both = [failed("no problem", "1 finding: thermal_throttle", run) for run in "ab"]
    assert said(*both) == [f"FAILED: {title} (2 runs: a, b). Allowed: no problem."]
    two = [failed("idle_ratio <= 5%", f"{share}%", run) for run, share in (("a", 9), ("b", 8))]
    assert said(*two) == ["FAILED: a: idle share 9%, allowed 5%.", "FAILED: b: idle share 8%, allowed 5%."]


def test_json_holds_every_field() -> None:
    """The document names its schema, the exit code and every check."""
    document = json.loads(check_json.render(Verdict(checks=CHECKS)))
    assert (document["schema"], document["exit_code"]) == ("gpureport.check/1", 1)
    assert [check["outcome"] for check in document["checks"]] == [check.outcome.value for check in CHECKS]
    assert document["checks"][0].keys() == set(Check.__slots__)
    assert sum(document["counts"].values()) == len(CHECKS)


def test_openmetrics_is_well_formed() -> None:
    """Each sample follows the type of its family, and the text ends as the format demands."""
    runs = [sampled(f"{seed}", util=level(85, seed=seed), power=200.0) for seed in (1, 2)]
    *lines, end, empty = figure_exports.render_openmetrics(runs, CHECKS).split("\n")
    assert (end, empty) == ("# EOF", "")
    families: list[str] = []
    for line in lines:
        described = re.fullmatch(r"# (TYPE|HELP) (\w+) .+", line)
        if described:
            families += [described[2]] if described[1] == "TYPE" else []
            continue
        sample = re.fullmatch(r'([a-z_][a-z0-9_]*)\{(run|outcome)="(?:[^"\\]|\\.)*"\} -?[0-9.e+-]+', line)
        assert sample, line
        assert sample[1] == families[-1]
    assert len(set(families)) == len(families)
    assert 'gpureport_check_limits{outcome="broken"} 1' in lines
