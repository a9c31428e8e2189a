"""What people and machines are told of rules: exit code, one line, text, JSON, JUnit, Markdown and OpenMetrics."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.logs import HEADER, row
from tests.support.program import Program, program

HOSTILE = "<script>alert(1)</script> | `x` ]]> & \x1b[31mred \u202e $\\frac{x$ https://a.example @ada &lt;b&gt;"
RULES = """
[[policy]]
limit = "rejected <= 0"
[[policy]]
limit = "idle_ratio <= 5%"
[[policy]]
limit = "cost <= 3 EUR"
[[policy]]
limit = "no idle_gap"
[[policy]]
limit = "no ecc_error"
unless = "duration < 1 h"
[[acknowledge]]
finding = "idle_gap"
reason = "the loader is being mended"
until = 2099-12-31
"""


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Return the command line, in a folder with a log of five minutes that pauses for one."""
    write(tmp_path / "night.csv", pause=60)
    (tmp_path / "gpureport.toml").write_text(RULES)
    return program(capsys, monkeypatch, tmp_path)


def write(path: Path, pause: int = 0, rows: int = 300) -> None:
    lines = [row(second, util=0 if 120 <= second < 120 + pause else 90) for second in range(rows)]
    path.write_text("\n".join([HEADER, *lines, ""]))


def answer(gate: Program, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gate("check", *arguments, "--format", "json").out)
    return found


def test_json_holds_every_field(gate: Program) -> None:
    found = answer(gate, "night.csv")
    assert (found["schema"], found["exit_code"]) == ("gpureport.check/1", 1)
    assert [(each["outcome"], each["reason_code"]) for each in found["checks"]] == [
        ("passed", ""),
        ("broken", ""),
        ("cannot judge", "no_price"),
        ("acknowledged", "acknowledged"),
        ("does not apply", "exempt"),
    ]
    metric = {"metric", "value", "unit", "bounds"}
    fields = {"limit", "run", "outcome", "observed", "reason", "reason_code", "origin"} | metric
    assert all(set(each) == fields for each in found["checks"])
    assert sum(found["counts"].values()) == len(found["checks"])


def test_the_exit_code_is_that_of_the_gravest(gate: Program) -> None:
    """Broken is 1, not assessed 4, and 1 wins; no check at all is no success."""
    kept, broken, unknown = ("duration >= 1 min", "idle_ratio <= 5%", "gpu_sm_clock_hertz >= 1 GHz")
    Path("gpureport.toml").unlink()
    for limits, code in (((kept,), 0), ((kept, unknown), 4), ((unknown, broken), 1)):
        rules = [word for limit in limits for word in ("--fail-on", limit)]
        assert gate("check", "night.csv", *rules).code == code, limits
    for source in ("gone.csv", "gpureport.toml"):
        found = answer(gate, source, "--fail-on", kept)
        assert found["exit_code"] == 4
        assert [bool(each["reason_code"]) for each in found["checks"]] == [True]
    assert gate("check", "night.csv").code == 2


def test_text_and_line_say_how_it_ended_and_steer_no_terminal(gate: Program) -> None:
    done = gate("check", "night.csv", "--name", HOSTILE)
    assert [line.partition(":")[0] for line in done.out.splitlines()] == [
        *("FAILED", "NOT ASSESSED", "Acknowledged", "Does not apply", "Passed")
    ]
    assert all(line.isprintable() for line in done.out.splitlines())
    line = gate("check", "night.csv", "--name", HOSTILE, "--format", "line").out
    assert line == f"{answer(gate, 'night.csv', '--name', HOSTILE)['line']}\n"
    assert line.rstrip("\n").isprintable()
    assert len(line) <= 281


def junit(gate: Program, *arguments: str) -> ET.Element:
    gate("check", *arguments, "--junit", "j.xml")
    (suite,) = ET.fromstring(Path("j.xml").read_text())  # noqa: S314 - our own
    return suite


def test_junit_is_xml_with_a_case_a_check(gate: Program) -> None:
    suite = junit(gate, "night.csv", "--name", HOSTILE)
    assert [case[0].tag for case in suite] == ["system-out", "failure", "error", "skipped", "skipped"]
    assert [case.get("name") for case in suite][:2] == ["rejected <= 0", "idle_ratio <= 5%"]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "2"]


def test_junit_follows_a_rule_night_after_night(gate: Program) -> None:
    def names(*arguments: str) -> list[tuple[str | None, str | None]]:
        suite = junit(gate, *arguments, "--policy", "rule.toml")
        return [(case.get("classname"), case.get("name")) for case in suite]

    Path("rule.toml").write_text('[[policy]]\nlimit = "no idle_gap"\n')
    write(Path("other.csv"), pause=70)
    for name in ("2026-11-23", "2026-11-24"):
        assert names("night.csv", "--name", name) == [("gpureport", "no idle_gap")]
    both = [("gpureport.night", "no idle_gap"), ("gpureport.other", "no idle_gap")]
    assert names("night.csv", "other.csv") == both
    assert names("gone.csv") == [("gpureport", "the run has data"), ("gpureport", "no idle_gap")]


def test_summaries_link_nowhere_and_keep_the_limit_of_a_job(gate: Program) -> None:
    gate("check", "night.csv", "--name", HOSTILE, "--summary", "s.md")
    lines = Path("s.md").read_text().splitlines()
    assert lines[0].startswith("## gpureport check FAILED")
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert [row.partition(" | ")[0] for row in rows[:2]] == ["| **failed**", "| **not assessed**"]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    assert not re.search(r"(?<!\\)(<|&lt;)|https:|@ada", "\n".join(lines))
    rules = "".join(f'[[policy]]\nlimit = "idle_ratio <= {number / 4}%"\n' for number in range(1, 301))
    Path("many.toml").write_text(rules)
    gate("check", "night.csv", "--policy", "many.toml", "--summary", "s.md")
    text = Path("s.md").read_text()
    assert len(text) < 60_000
    assert re.search(r"^100 \w+", text.splitlines()[-1])


def test_openmetrics_is_well_formed(gate: Program) -> None:
    gate("check", "night.csv", "--export", "openmetrics=m.prom")
    *lines, end = Path("m.prom").read_text().splitlines()
    assert end == "# EOF"
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


def test_a_baseline_holds_a_rule_of_the_size_that_it_names(gate: Program) -> None:
    Path("gpureport.toml").unlink()
    work = ("--work", "600:steps")
    for number, seconds in enumerate((592, 600, 608, 596, 1800)):
        write(Path(f"{number}.csv"), rows=seconds)
    said = gate("baseline", "set", "main", "0.csv", "1.csv", "2.csv", *work).out.replace("\N{NO-BREAK SPACE}", " ")
    (size,) = re.findall(r"hold a size of (\d+%)", said)
    rule = f"change gpu_seconds_per_1000_work <= {size}"
    assert gate("check", "3.csv", *work, "--baseline", "main", "--fail-on", rule).code == 0
    assert gate("check", "4.csv", *work, "--baseline", "main", "--fail-on", rule).code == 1
    assert "hold a size" not in gate("baseline", "set", "one", "0.csv", *work).out
