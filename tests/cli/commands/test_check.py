"""`gpureport check`, `gpureport baseline` and --fail-on: files, exit codes and what is said."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.program import Program
from tests.importers.written_logs import HEADER, row

EPOCH = "1793145600"
"""A moment in October 2026."""


def write(path: Path, util: int = 90, rows: int = 900, start: int = 0) -> None:
    """Write a log that wavers around a utilisation."""
    lines = [row(second, util=util + (second * 7 + start) % 5 - 2) for second in range(rows)]
    path.write_text("\n".join([HEADER, *lines, ""]))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Three nights: as ever, as ever, and one that lost ten points; and a policy."""
    for name, util, start in (("base", 90, 0), ("same", 90, 3), ("slow", 80, 1)):
        write(tmp_path / f"{name}.csv", util, start=start)
    (tmp_path / "gpureport.toml").write_text(
        '[[policy]]\nlimit = "change gpu_utilization_ratio >= -4 points"\n\n[[policy]]\nlimit = "idle_ratio <= 5%"\n'
    )
    return tmp_path


def test_a_gate_against_a_baseline(gpureport: Program, logs: Path) -> None:
    """The night that is as ever passes, the slow one breaks the limit, and without a baseline nothing passes."""
    gpureport("ingest", "base.csv")
    assert gpureport("baseline", "set", "main", "base").code == 0
    assert [gpureport("check", f"{name}.csv", "--baseline", "main").code for name in ("same", "slow")] == [0, 1]
    assert gpureport("check", "same.csv", "--baseline", str(logs / "base.csv")).code == 0
    assert gpureport("check", "same.csv").code == 4
    listed = gpureport("baseline", "list")
    assert listed.out.startswith("main  base (")
    assert gpureport("baseline", "rm", "main").code == 0
    gone = gpureport("check", "same.csv", "--baseline", "main")
    assert (gone.code, "no such baseline" in gone.out) == (4, True)
    (logs / "gpureport.toml").write_text('[[policy]]\nlimit = "idle_ratio <= 5%"\n')
    unused = gpureport("check", "same.csv", "--baseline", "mian")
    line = "comparison with mian: no rule asks for it; add one, such as --fail-on 'no new warning'."
    assert (unused.code, unused.out.splitlines()[0]) == (0, f"Does not apply: {line}")
    assert "comparison" not in gpureport("check", "same.csv").out
    asked = gpureport("check", "same.csv", "--baseline", "base.csv", "--fail-on", "no new warning")
    assert "comparison with" not in asked.out
    assert gpureport("baseline").out.startswith("No baselines in ")


def test_what_a_baseline_can_hold_is_said_when_it_is_set(gpureport: Program, tmp_path: Path) -> None:
    """By the interval that `check` gives one new run against it; nothing is said on standard error."""
    for number, rows in enumerate((300, 303, 298, 302)):
        write(tmp_path / f"run-{number}.csv", rows=rows, start=number)
    done = gpureport("baseline", "set", "main", "run-0.csv", "run-1.csv", "run-2.csv", "--work", "600:steps")
    assert (done.code, done.err) == (0, "")
    said = done.out.splitlines()[-1].replace("\N{NO-BREAK SPACE}", " ")
    assert said == "3 runs spread by 0.8%: a rule on GPU time per unit of work can hold a size of 5% or more."
    rule = "change gpu_seconds_per_1000_work <= {}%"
    for size, code in ((5, 0), (2, 4)):
        options = ("--work", "600:steps", "--baseline", "main", "--fail-on", rule.format(size))
        assert gpureport("check", "run-3.csv", *options).code == code


@pytest.mark.usefixtures("logs")
def test_a_run_of_the_store_is_a_baseline(gpureport: Program) -> None:
    """A name that no baseline has may be that of a stored run; the checked run itself is no baseline."""
    gpureport("ingest", "base.csv")
    assert gpureport("check", "same.csv", "--baseline", "base").code == 0
    same = gpureport("check", "base.csv", "--baseline", "base")
    assert (same.code, "the very recording that is checked" in same.out) == (4, True)


@pytest.mark.usefixtures("logs")
def test_repetitions_of_the_store_tell_the_noise(gpureport: Program) -> None:
    """Where the store holds repetitions of the step, what they differ by decides."""
    for name in ("base", "same"):
        gpureport("ingest", f"{name}.csv", "--step", "nightly")
    gpureport("baseline", "set", "main", "base")
    done = gpureport("check", "slow.csv", "--step", "nightly", "--baseline", "main")
    assert (done.code, "no narrower than what repetitions in this store differ by" in done.out) == (1, True)


@pytest.mark.usefixtures("logs")
def test_hidden_names_change_no_verdict(gpureport: Program) -> None:
    """Repetitions are told by their steps and params, whatever is shown of these; the baseline stays hidden too."""
    labels = ["--step", "nightly on clara01", "--param", "data=/scratch/anna/x", "--tag", "host=clara01"]
    for name in ("base", "same"):
        gpureport("ingest", f"{name}.csv", *labels)
    shown, hidden = (
        gpureport("check", "slow.csv", *labels, "--baseline", "base", *option) for option in ([], ["--anonymise"])
    )
    assert "no narrower than what repetitions in this store differ by" in hidden.out
    assert (hidden.code, "clara01" in shown.out, "clara01" in hidden.out) == (shown.code, True, False)


def test_a_machine_has_one_hidden_name_on_both_sides(gpureport: Program, tmp_path: Path) -> None:
    """A node that idled before as it does now is not new, though another node came first before."""
    for folder, nodes in (("before", ("clara01", "dora9")), ("after", ("dora9", "emil5"))):
        (tmp_path / folder).mkdir()
        for node in nodes:
            idle = range(300, 420) if node == "dora9" else ()
            lines = [row(second, util=0 if second in idle else 90 + second % 5) for second in range(900)]
            (tmp_path / folder / f"{node}.csv").write_text("\n".join([HEADER, *lines, ""]))
    command = ("check", "after", "--as-one-run", "--baseline", "before", "--fail-on", "new warning")
    shown, hidden = (gpureport(*command, *option) for option in ([], ["--anonymise"]))
    assert (shown.code, hidden.code, "dora9" in hidden.out) == (0, 0, False)


def test_damage_in_the_store_is_not_green(gpureport: Program, logs: Path) -> None:
    """A baseline, or a repetition that noise is told from, that cannot be read lets no change be judged."""
    for name in ("base", "same"):
        gpureport("ingest", f"{name}.csv", "--step", "nightly")
    gpureport("baseline", "set", "main", "base")
    command = ("check", "slow.csv", "--step", "nightly", "--baseline", "main", "--fail-on", "no problem")
    for folder in ("runs", "baselines/main/runs"):
        (series, *_) = sorted((logs / ".gpureport" / folder).glob("*/hardware.parquet"))
        whole = series.read_bytes()
        series.write_bytes(whole[:-8])
        done = gpureport(*command)
        assert (done.code, "damaged" in done.out, "Passed" in done.out) == (4, True, True)
        series.write_bytes(whole)
    assert gpureport(*command).code == 1


@pytest.mark.usefixtures("logs")
def test_a_missing_source_is_not_green(gpureport: Program) -> None:
    """What cannot be read is a check of its own, beside those of what could; a broken limit still wins."""
    done = gpureport("check", "same.csv", "gone.csv", "--fail-on", "idle_ratio <= 5%")
    assert done.code == 4
    assert "NOT ASSESSED: the run has data (gone.csv): " in done.out
    assert gpureport("check", "gone.csv").code == 4
    assert gpureport("check", "nobody").code == 4
    assert gpureport("check", "gone.csv", "same.csv", "--fail-on", "idle_ratio >= 5%").code == 1


def test_an_unreadable_source_is_not_green(gpureport: Program, logs: Path) -> None:
    """A file that is no log, an empty folder and an empty file cannot be judged."""
    (logs / "empty").mkdir()
    (logs / "nothing.csv").write_text("")
    (logs / "text.csv").write_text("hello\n" * 50)
    assert [gpureport("check", name).code for name in ("empty", "nothing.csv", "text.csv")] == [4, 4, 4]


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("same.csv", "--policy", "none.toml"), "none.toml: No such file"),
        (("same.csv", "--fail-on", "idel <= 5%"), "--fail-on: nothing is called 'idel'; did you mean 'idle'?"),
        (("same.csv", "--fail-on", "problem", "--export", "asv=x"), "is not FORMAT=FILE with one of openmetrics"),
        (("same.csv", "--fail-on", "problem", "--export", "bencher=x"), "bencher is gone; take the figures"),
        ((), "Missing argument 'SOURCE...'"),
    ],
)
def test_a_wrong_policy_is_wrong_usage(gpureport: Program, arguments: tuple[str, ...], said: str) -> None:
    """A policy or option that is none ends with 2 before anything is read."""
    done = gpureport("check", *arguments)
    assert (done.code, said in done.err) == (2, True)


def test_no_limit_is_no_gate(gpureport: Program, tmp_path: Path) -> None:
    """Without any limit nothing would ever fail, so that is refused."""
    write(tmp_path / "gpu.csv")
    done = gpureport("check", "gpu.csv")
    assert (done.code, "gpureport.toml: no rule is set" in done.err) == (2, True)


@pytest.mark.usefixtures("logs")
def test_a_policy_of_its_own(gpureport: Program, tmp_path: Path) -> None:
    """--policy names the file with the limits, instead of the settings."""
    (tmp_path / "gate.toml").write_text('[[policy]]\nlimit = "duration >= 1 min"\n')
    done = json.loads(gpureport("check", "same.csv", "--policy", "gate.toml", "--format", "json").out)
    assert [check["limit"] for check in done["checks"]] == ["duration >= 1 min"]


@pytest.mark.usefixtures("logs")
def test_files_for_machines(gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JUnit, summary and exports are written, whole also when the gate is red; a job's summary is added to."""
    job = tmp_path / "job.md"
    job.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    wanted = ("--junit", "out/junit.xml", "--summary", str(job), "--export", "openmetrics=out/m.prom")
    assert gpureport("check", "slow.csv", "--baseline", "base.csv", *wanted).code == 1
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().get("failures") == "1"  # noqa: S314 - our own
    assert 'idle_ratio{run="slow"}' in (tmp_path / "out" / "m.prom").read_text()
    assert job.read_text().startswith("before\n## gpureport check FAILED: ")
    gpureport("check", "gone.csv", *wanted)
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().get("errors") == "3"  # noqa: S314 - our own
    assert 'limits{outcome="cannot judge"} 1' in (tmp_path / "out" / "m.prom").read_text()


@pytest.mark.usefixtures("logs")
def test_one_line_for_a_chat(gpureport: Program) -> None:
    assert gpureport("check", "same.csv", "--notify").code == 2
    line = gpureport("check", "same.csv", "--baseline", "base.csv", "--format", "line").out
    assert line == "gpureport check PASSED (2 passed)\n"


def test_acknowledged_by_the_date_that_is_stated(
    gpureport: Program, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOURCE_DATE_EPOCH says which day it is."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    text = '[[policy]]\nlimit = "gpu_utilization_ratio >= 95%"\n[[acknowledge]]\n'
    text += 'limit = "gpu_utilization_ratio >= 95%"\nreason = "new model"\nuntil = {until}\n'
    codes = []
    for until in ("2026-10-31", "2026-09-30"):
        (logs / "gpureport.toml").write_text(text.format(until=until))
        codes.append(gpureport("check", "same.csv").code)
    assert codes == [0, 1]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "9" * 30)
    assert gpureport("check", "same.csv").code == 2


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("idle_ratio <= 5%", 0, ""),
        ("gpu_utilization_ratio >= 95%", 1, "gpureport: FAILED: GPU utilisation 90%"),
        ("gpu_sm_clock_hertz >= 1 GHz", 0, "gpureport: NOT ASSESSED: gpu_sm_clock_hertz mean >= 1 GHz (same): "),
        ("change idle_ratio <= 2 points", 2, "gpureport: --fail-on: a change needs a baseline"),
        ("idel <= 5%", 2, "gpureport: --fail-on: nothing is called 'idel'"),
    ],
)
def test_other_commands_fail_on_a_limit(gpureport: Program, limit: str, code: int, said: str) -> None:
    """Analyze and report end with 1 on a broken limit; what they cannot judge they say."""
    for command in (("analyze",), ("analyze", "--format", "json"), ("report", "-o", "r.html")):
        done = gpureport(*command, "same.csv", "--fail-on", limit)
        assert (done.code, said in done.err.replace("\N{NO-BREAK SPACE}", " ")) == (code, True)


def test_reports_print_the_policy(gpureport: Program, logs: Path) -> None:
    """Every format shows each limit of the settings with what became of it, and a broken one fails nothing there."""
    (logs / "gpureport.toml").write_text('[[policy]]\nlimit = "gpu_utilization_ratio >= 95%"\n')
    formats = ("html", "md", "json", "txt")
    outputs = [word for form in formats for word in ("-o", f"r.{form}")]
    assert gpureport("report", "same.csv", *outputs).code == 0
    for form in formats:
        text = (logs / f"r.{form}").read_text().replace("\\", "").replace("&gt;", ">")
        assert "gpu_utilization_ratio mean >= 95%" in text, form
        assert "failed" in text, form
        assert "A rule that is not assessed" not in text, form
    (logs / "gpureport.toml").write_text('[[policy]]\nlimit = "change gpu_utilization_ratio >= -5 points"\n')
    gpureport("report", "same.csv", "-o", "r.md")
    text = (logs / "r.md").read_text()
    assert "A rule that is not assessed is neither kept nor broken: the reason stands with it." in text
    assert "gpureport check and nightly compare with a baseline" in text
    (logs / "gpureport.toml").unlink()
    gpureport("report", "same.csv", "-o", "bare.html")
    assert 'id="policy"' not in (logs / "bare.html").read_text()


def test_the_policy_of_the_docs_is_green_on_one_gpu(gpureport: Program, tmp_path: Path) -> None:
    """The example of docs/how-to/gates.md as written, on a job of 15 minutes and on one of 89 s, both with one GPU."""
    page = (Path(__file__).parents[3] / "docs/how-to/gates.md").read_text()
    (tmp_path / "gpureport.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    header = f"{HEADER}, clocks_event_reasons.active"
    for name, rows, start in (("base", 900, 0), ("night", 900, 3), ("short", 90, 3)):
        lines = [f"{row(second, util=88 + (second * 7 + start) % 5)}, 0x0000000000000000" for second in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines, ""]))
    step = ("--step", "nightly", "--work", "1000:steps")
    gpureport("ingest", "base.csv", *step)
    gpureport("baseline", "set", "main", "base")
    night = gpureport("check", "night.csv", "--baseline", "main", *step)
    assert night.code == 0, night.out
    assert "the run has no GPU 1\n" in night.out
    short = gpureport("check", "short.csv", *step)
    assert "no thermal_throttle for GPU 0, 1 unless duration < 10 min (short): " in short.out
    assert "duration < 10 min: 1 min 29 s" in short.out


@pytest.mark.usefixtures("logs")
def test_compare_and_report_know_baselines_by_name(gpureport: Program, tmp_path: Path) -> None:
    """A file is ingested as a baseline; its name is its step; a stored run of the same name wins and is named."""
    assert gpureport("baseline", "set", "main", "base.csv", "--work", "100:steps").code == 0
    found = gpureport("compare", "main", "slow.csv")
    assert (found.code, "main" in found.out, "slow" in found.out) == (0, True, True)
    assert gpureport("report", "main", "slow.csv", "-o", "r.html").code == 0
    assert "main" in (tmp_path / "r.html").read_text()
    wrong = gpureport("compare", "mian", "slow.csv")
    assert (wrong.code, "did you mean the baseline 'main'?" in wrong.err) == (3, True)
    gpureport("ingest", "same.csv", "--name", "main")
    assert "main: the stored run, not the baseline; that is baseline:main" in gpureport("analyze", "main").err
    assert gpureport("compare", "baseline:main", "slow.csv").code == 0
    assert gpureport("check", "slow.csv", "--baseline", "baseline:main").code == 1
    assert gpureport("baseline", "set", "both", "base.csv", "main").code == 0
    assert gpureport("baseline", "set", "gone", "gone.csv").code == 3


@pytest.mark.usefixtures("logs")
def test_the_settings_name_the_baseline(gpureport: Program, tmp_path: Path) -> None:
    """`[baseline]` needs no option; a mistake in it is named with its line."""
    gpureport("baseline", "set", "main", "base.csv")
    policy = (tmp_path / "gpureport.toml").read_text()
    (tmp_path / "gpureport.toml").write_text(f'{policy}\n[baseline]\nname = "main"\n')
    assert [gpureport("check", f"{name}.csv").code for name in ("same", "slow")] == [0, 1]
    assert gpureport("check", "slow.csv", "--baseline", "slow.csv").code == 4
    for wrong, said in (
        ('[baseline]\nnmae = "main"\n', "unknown key 'nmae' in [baseline]"),
        ("[baseline]\nname = 3\n", "must be a text"),
    ):
        (tmp_path / "gpureport.toml").write_text(f"{policy}\n{wrong}")
        done = gpureport("check", "same.csv")
        assert (done.code, said in done.err, "gpureport.toml:8" in done.err) == (2, True, True)


def test_a_baseline_that_git_ignores_is_said(gpureport: Program, logs: Path) -> None:
    """A line for recordings, `runs/`, takes half of a baseline with it; outside a work tree nothing is said."""
    git = ("git", "-C", str(logs))
    assert "git ignores" not in gpureport("baseline", "set", "main", "base.csv").err
    subprocess.run([*git, "init", "-q"], check=True)
    for ignored, noted in (("/runs/", False), ("runs/", True)):
        (logs / ".gitignore").write_text(f"{ignored}\n")
        done = gpureport("baseline", "set", "main", "base.csv")
        assert (done.code, "git add --force .gpureport/baselines" in done.err.replace(f"{logs}/", "")) == (0, noted)
