"""Known findings: acknowledged until a day, and not after it."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.testing import Analysis, CheckOutcome, analyze, finding, recording
from tests.nightly.nights import judged, policy

GAP = finding("idle_gap", (0, 50), lost=50.0)
LEAK = finding("mem_leak", (0, 50), lost=50.0)


def run(*found: object) -> Analysis:
    """Return a run with these findings."""
    return replace(analyze(recording(util=[90.0] * 600)), findings=found)  # type: ignore[arg-type]  # findings


def text(limit: str, known: str, until: str = "2026-12-31") -> str:
    """Return settings with one limit and one acknowledgement."""
    return f'[[policy]]\nlimit = "{limit}"\n[[acknowledge]]\n{known}\nreason = "disk is ordered"\nuntil = {until}\n'


@pytest.mark.parametrize(
    ("limit", "known"),
    [
        ("no idle_gap", 'finding = "idle_gap"'),
        ("no warning", 'finding = "idle_gap"'),
        ("no warning", f'finding = "{GAP.fingerprint}"'),
        ("idle_gap <= 1%", 'finding = "idle_gap"'),
        ("gpu_utilization_ratio >= 99%", 'limit = "gpu_utilization_ratio >= 99%"'),
        ("no warning", 'limit = "no warning"'),
    ],
)
def test_what_is_known_does_not_break_a_limit(tmp_path: Path, limit: str, known: str) -> None:
    """A kind, a fingerprint or a limit is acknowledged with its reason and its day."""
    (check,) = judged(policy(tmp_path, text(limit, known)), run(GAP))
    assert check.outcome is CheckOutcome.ACKNOWLEDGED
    assert check.reason == "acknowledged until 2026-12-31: disk is ordered"
    assert check.observed != ""


def test_what_is_not_known_still_breaks_it(tmp_path: Path) -> None:
    """Another finding breaks the limit, and what is shown is that one."""
    (check,) = judged(policy(tmp_path, text("no warning", 'finding = "idle_gap"')), run(GAP, LEAK))
    assert (check.outcome, check.observed) == (CheckOutcome.BROKEN, "1 finding: mem_leak")


@pytest.mark.parametrize(
    ("until", "outcome"), [("2026-11-21", CheckOutcome.ACKNOWLEDGED), ("2026-11-20", CheckOutcome.BROKEN)]
)
def test_it_holds_through_its_last_day(tmp_path: Path, until: str, outcome: CheckOutcome) -> None:
    """On the day itself it still holds; the day after, the finding counts again."""
    (check,) = judged(policy(tmp_path, text("no idle_gap", 'finding = "idle_gap"', until)), run(GAP))
    assert check.outcome is outcome


def test_an_expired_one_is_said(tmp_path: Path) -> None:
    """A finding that counts again says that it was acknowledged, and where."""
    (check,) = judged(policy(tmp_path, text("no idle_gap", 'finding = "idle_gap"', "2026-01-31")), run(GAP))
    where = f"{tmp_path}/gpureport.toml:4"
    assert check.reason == f"acknowledged until 2026-01-31 (disk is ordered), which is over ({where})"


def test_a_kept_limit_needs_none(tmp_path: Path) -> None:
    """Where nothing is broken nothing is acknowledged."""
    (check,) = judged(policy(tmp_path, text("no warning", 'finding = "idle_gap"')), run())
    assert check.outcome is CheckOutcome.PASSED


def test_what_cannot_be_judged_is_never_acknowledged(tmp_path: Path) -> None:
    """Missing data stays missing, whatever is acknowledged."""
    known = 'limit = "gpu_sm_clock_hertz >= 1 GHz"'
    (check,) = judged(policy(tmp_path, text("gpu_sm_clock_hertz >= 1 GHz", known)), run())
    assert check.outcome is CheckOutcome.CANNOT_JUDGE


def test_the_rest_may_not_be_known_either(tmp_path: Path) -> None:
    """Without the acknowledged findings a limit that cannot be judged is not acknowledged as a whole."""
    found = run(finding("cpu_bound", (0, 50), lost=50.0))
    (check,) = judged(policy(tmp_path, text("no cpu_bound", 'finding = "cpu_bound"')), found)
    assert check.outcome is CheckOutcome.CANNOT_JUDGE
    assert check.reason.endswith("acknowledged until 2026-12-31: disk is ordered")
