"""What people and machines are told of rules, and one verdict of `nightly` and `check` on the same night."""

import json
import random
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.logs import HEADER, row
from tests.support.program import Program

HOSTILE = "<script>alert(1)</script> | `x` ]]> & \x1b[31mred \u202e $\\frac{x$ https://a.example @ada &lt;b&gt;"
HERE = Path(__file__).parent


@pytest.fixture
def gate(gpureport: Program, tmp_path: Path) -> Program:
    """Return the command line, in a folder with a log of five minutes that pauses for one."""
    write_log(tmp_path / "night.csv", pause=60, rows=300)
    shutil.copy(HERE / "answers.toml", tmp_path / "gpureport.toml")
    return gpureport


def write_log(path: Path, chance: random.Random | None = None, util: int = 90, pause: int = 0, rows: int = 600) -> None:
    """Write the log of a job that holds a utilisation, with a pause in its middle."""
    start, pauses = chance.randint(0, 4) if chance else 0, range(rows // 3, rows // 3 + pause)
    powers = [f"{chance.randint(240, 260) if chance else 250}.00 W" for _ in range(rows)]
    lines = [
        row(second, util=0 if second in pauses else util + (second * 7 + start) % 5 - 2, power=power)
        for second, power in enumerate(powers)
    ]
    path.write_text("\n".join([HEADER, *lines, ""]))


def answer(gate: Program, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gate("check", *arguments, "--format", "json").out)
    return found


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
    write_log(Path("2-other.csv"), pause=70, rows=300)
    for name in ("2026-11-23", "2026-11-24"):
        assert names("night.csv", "--name", name) == [("gpureport", "no idle_gap")]
    alone, other = ("gpureport.night", "no idle_gap"), ("gpureport.2-other", "no idle_gap")
    assert names("night.csv") == [alone]
    assert names("night.csv", "2-other.csv") == [alone, other]
    write_log(Path("night-2.csv"), pause=60, rows=301)
    assert names("night.csv", "night-2.csv") == [alone, ("gpureport.night.2", "no idle_gap")]
    # repetitions have only numbers for names
    for number in (1, 2):
        Path(f"w8/{number}").mkdir(parents=True)
        write_log(Path(f"w8/{number}/gpu.csv"), pause=60, rows=310 + number)
    numbered = [(f"gpureport.w8.{number}", "no idle_gap") for number in (1, 2)]
    assert names("w8") == numbered
    assert names("w8/2") == numbered[1:]
    assert names("gone.csv") == [("gpureport.gone", "the run has data"), ("gpureport.gone", "no idle_gap")]


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
        write_log(Path(f"{number}.csv"), rows=seconds)
    said = gate("baseline", "set", "main", "0.csv", "1.csv", "2.csv", *work).out.replace("\N{NO-BREAK SPACE}", " ")
    (size,) = re.findall(r"detect changes of (\d+%)", said)
    rule = f"change gpu_seconds_per_1000_work <= {size}"
    assert gate("check", "3.csv", *work, "--baseline", "main", "--fail-on", rule).code == 0
    assert gate("check", "4.csv", *work, "--baseline", "main", "--fail-on", rule).code == 1
    assert "detect changes" not in gate("baseline", "set", "one", "0.csv", *work).out


FIRST = 1_772_366_400
"""Noon of 1 March 2026, in seconds."""

_WORDS = {0: "PASSED", 1: "FAILED", 4: "NOT ASSESSED"}
_STYLES = {0: "better", 1: "worse", 4: "unsure"}


def make_night(folder: Path, number: int, chance: random.Random) -> list[str]:
    """Write the logs of a night, some of them worse, too short, unreadable or missing; return what to name."""
    sources = []
    for job in "ab" if number < 6 else "abc":
        path = folder / f"{job}{number}.csv"
        sources.append(path.name)
        fate = 0.15 if number == 2 else chance.random()
        if fate < 0.05:
            continue
        if fate < 0.08:
            path.write_text("no log\n" * 20)
        elif fate < 0.11:
            write_log(path, chance, util=90, rows=chance.randint(8, 30))
        else:
            write_log(path, chance, util=60 if fate < 0.2 else 90, pause=60 if 0.17 < fate < 0.27 else 0)
    return sources


def break_baseline(folder: Path) -> tuple[Path, bytes]:
    """Cut the series of the baseline short; return the file and what it held."""
    (series,) = (folder / ".gpureport" / "baselines" / "main").glob("runs/*/hardware.parquet")
    whole = series.read_bytes()
    series.write_bytes(whole[:-9])
    return series, whole


def cases(path: Path) -> list[tuple[str, str, str]]:
    found = ET.parse(path).iter("testcase")  # noqa: S314 - our own
    return [(str(case.get("name")), str(case.get("classname")), "".join(each.tag for each in case)) for case in found]


def table(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("|")]


def compare_night(run: Program, folder: Path, sources: list[str], *, more: tuple[str, ...]) -> int:
    """Run both commands on a night, and hold whatever each of them says against the other; return the exit code."""
    files = "--junit", "{}.xml", "--summary", "{}.md"
    night, gate = (
        run(command, *sources, *extra, *more, *(word.format(command) for word in files))
        for command, extra in (("nightly", ("--site", "site")), ("check", ()))
    )
    assert night.code == gate.code
    assert night.out.splitlines()[-len(gate.out.splitlines()) :] == gate.out.splitlines()
    assert cases(folder / "nightly.xml") == cases(folder / "check.xml")
    assert table(folder / "nightly.md") == table(folder / "check.md")
    heading = (folder / "check.md").read_text().splitlines()[0].replace("gpureport check", "gpureport nightly")
    assert (folder / "nightly.md").read_text().splitlines()[0] == heading
    assert heading.startswith(f"## gpureport nightly {_WORDS[gate.code]}")
    check_pages(folder, gate.code)
    return gate.code


def check_pages(folder: Path, code: int) -> None:
    """Hold the index, the rows of the night and its report against the exit code and the test cases."""
    index = (folder / "site" / "index.html").read_text()
    assert f'<p class="lead"><b class="{_STYLES[code]}">{_WORDS[code]}</b>' in index
    (newest,) = re.findall(r'<p class="note">(\d{4}-\d\d-\d\d)', index)
    rows = [part for part in index.split("<h2>Nights</h2>")[1].split("<tr") if f'"row">{newest}' in part]
    shown = [re.findall(r'data-name="Rules">\s*(?:<span>)?<b class="\w+">([^<]+)', each)[0] for each in rows]
    assert (_WORDS[1] in shown) == (code == 1)
    assert set(shown) == {_WORDS[0]} or code
    reports = {name for each in rows for name in re.findall(r'href="(nights/[^"#]+)"', each)}
    assert bool(reports) == any("No data." not in each for each in rows)
    for name in reports:
        rules = unescape((folder / "site" / name).read_text().split('id="policy"')[1].split("</details>")[0])
        assert (">failed<" in rules) == (code == 1)
    outcomes = [kind for _, _, kind in cases(folder / "nightly.xml")]
    assert [kind in outcomes for kind in ("failure", "error")] == [code == 1, code == 4 or "error" in outcomes]


def simulate(run: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, nights: int, seed: int) -> set[int]:
    chance = random.Random(seed)
    write_log(folder / "good.csv", chance, 90)
    shutil.copy(HERE / "nights.toml", folder / "gpureport.toml")
    assert run("baseline", "set", "main", "good.csv").code == 0
    codes = set()
    for number in range(nights):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(FIRST + number * 86_400))
        sources = make_night(folder, number, chance)
        more = {7: ("--baseline", "mian"), 9: ("--fail-on", "gpu_sm_clock_hertz >= 1 GHz")}.get(number % 11, ())
        damaged = break_baseline(folder) if number % 9 == 4 else None
        codes.add(compare_night(run, folder, sources, more=more))
        if damaged:
            damaged[0].write_bytes(damaged[1])
        for path in folder.glob("[abc]*.csv"):
            path.unlink()
    return codes


@pytest.mark.slow
@pytest.mark.parametrize(("nights", "seed"), [(8, 20260301), (20, 0), (20, 1)])
def test_check_and_nightly_agree_night_after_night(
    nights: int, seed: int, gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert simulate(gpureport, tmp_path, monkeypatch, nights, seed) == {0, 1, 4}


@pytest.mark.parametrize("name", ["tonight", "tonight/b.csv"])
def test_a_folder_with_an_unreadable_log(gpureport: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "tonight").mkdir()
    write_log(tmp_path / "tonight" / "a.csv", pause=60)
    (tmp_path / "tonight" / "b.csv").write_text("\n".join([HEADER, *["no row"] * 20, ""]))
    shutil.copy(HERE / "nights.toml", tmp_path / "gpureport.toml")
    rules = "--fail-on", "idle_ratio <= 2%"
    assert compare_night(gpureport, tmp_path, [name], more=rules) == (1 if name == "tonight" else 4)
    outcomes = {(source, rule): kind for rule, source, kind in cases(tmp_path / "check.xml")}
    assert outcomes["gpureport.b", "the run has data"] == "error"
    assert outcomes["gpureport.a" if name == "tonight" else "gpureport.b", "idle_ratio <= 2%"] == (
        "failure" if name == "tonight" else "error"
    )


def test_a_baseline_that_no_rule_asks_for(gpureport: Program, tmp_path: Path) -> None:
    for name, seed in (("good", 3), ("a", 4)):
        write_log(tmp_path / f"{name}.csv", random.Random(seed))
    assert gpureport("baseline", "set", "main", "good.csv").code == 0
    for rule in ("idle_ratio <= 20%", "no new problem"):
        compare_night(gpureport, tmp_path, ["a.csv"], more=("--baseline", "main", "--fail-on", rule))
        is_unused = "new" not in rule
        for path in ("nightly.md", "check.md", "nightly.xml", "check.xml", "site/index.html"):
            assert ("comparison with main" in (tmp_path / path).read_text()) == is_unused
        assert ("comparison with main", "gpureport", "skipped") in cases(tmp_path / "check.xml") or not is_unused
