"""`gpureport check`, `gpureport baseline` and --fail-on: files, exit codes and outcomes."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.logs import HEADER, row, table, wavering
from tests.support.program import Program
from tests.support.tables import play, words_of

CHANGE = "change gpu_utilization_ratio >= -4 points"
IDLE = "idle_ratio <= 5%"


def policy(*limits: str) -> str:
    return "\n\n".join(f"[[policy]]\nlimit = {json.dumps(limit)}\n" for limit in limits)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Three nights: as ever, as ever, and one that lost ten points; and a policy."""
    for name, util, start in (("base", 90, 0), ("same", 90, 3), ("slow", 80, 1)):
        (tmp_path / f"{name}.csv").write_text(wavering(util, start=start))
    (tmp_path / "gpureport.toml").write_text(policy(CHANGE, IDLE))
    return tmp_path


def outcomes(gpureport: Program, *words: str) -> dict[str, str]:
    checks = json.loads(gpureport("check", *words, "--format", "json").out)["checks"]
    return {each["limit"]: each["outcome"] for each in checks}


def test_a_gate(gpureport: Program, logs: Path) -> None:
    texts = {"idle.toml": policy(IDLE), "both.toml": f'{policy(CHANGE, IDLE)}\n[baseline]\nname = "both"\n'}
    for name, text in (texts | {"nothing.csv": "", "text.csv": "hello\n" * 50}).items():
        (logs / name).write_text(text)
    (logs / "empty").mkdir()
    play(gpureport, Path(__file__).with_name("gate.tsv"))


def test_runs_without_a_step_are_checked_one_by_one(gpureport: Program, logs: Path) -> None:
    base = str(logs / "base.csv")
    alone = [gpureport("check", "same.csv", "slow.csv", "--baseline", base, *step) for step in ((), ("--step", "a"))]
    assert ["2 runs were compared one by one" in each.err for each in alone] == [True, False]
    assert "compare calls the change unconfirmed until" in alone[0].out


@pytest.mark.usefixtures("logs")
def test_hidden_names_change_no_verdict(gpureport: Program, tmp_path: Path) -> None:
    labels = ["--step", "nightly on clara01", "--param", "data=/scratch/anna/x", "--tag", "host=clara01"]
    for name in ("base", "same"):
        gpureport("ingest", f"{name}.csv", *labels)
    for folder, nodes in (("before", ("clara01", "dora9")), ("after", ("dora9", "emil5"))):
        (tmp_path / folder).mkdir()
        for node in nodes:
            idle = range(300, 420) if node == "dora9" else ()
            rows = [row(second, util=0 if second in idle else 90 + second % 5) for second in range(900)]
            (tmp_path / folder / f"{node}.csv").write_text(table(*rows))
    # a node that idled before as it does now is not new, though another node came first before
    nodes_of = ("after", "--as-one-run", "--baseline", "before", "--fail-on", "new warning")
    for words in (("slow.csv", *labels, "--baseline", "base"), nodes_of):
        plain, hidden = (gpureport("check", *words, *option) for option in ([], ["--anonymise"]))
        assert plain.code == hidden.code, words
        assert [name for name in ("clara01", "dora9") if name in hidden.out] == []


def test_a_baseline_that_is_damaged_is_not_green(gpureport: Program, logs: Path) -> None:
    for name in ("base", "same"):
        gpureport("ingest", f"{name}.csv", "--step", "nightly")
    gpureport("baseline", "set", "main", "base")
    words = ("slow.csv", "--step", "nightly", "--baseline", "main", "--fail-on", "no problem")
    (series, *_) = sorted((logs / ".gpureport" / "baselines/main/runs").glob("*/hardware.parquet"))
    whole = series.read_bytes()
    series.write_bytes(whole[:-8])
    assert gpureport("check", *words).code == 4
    assert outcomes(gpureport, *words) == {CHANGE: "cannot judge", IDLE: "passed", "no problem": "passed"}
    series.write_bytes(whole)
    assert gpureport("check", *words).code == 1


@pytest.mark.usefixtures("logs")
def test_files_for_machines(gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = tmp_path / "job.md"
    job.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    wanted = ("--junit", "out/junit.xml", "--summary", str(job), "--export", "openmetrics=out/m.prom")
    assert gpureport("check", "slow.csv", "--baseline", "base.csv", *wanted).code == 1
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().get("failures") == "1"  # noqa: S314 - our own
    assert '{run="slow"}' in (tmp_path / "out" / "m.prom").read_text()
    assert job.read_text().startswith("before\n## gpureport check FAILED: ")
    assert gpureport("check", "gone.csv", *wanted).code == 4
    assert ET.parse(tmp_path / "out" / "junit.xml").getroot().get("errors") == "3"  # noqa: S314 - our own
    assert '{run="slow"}' not in (tmp_path / "out" / "m.prom").read_text()
    (tmp_path / "gate.toml").write_text(policy("duration >= 1 min"))
    assert outcomes(gpureport, "same.csv", "--policy", "gate.toml") == {"duration >= 1 min": "passed"}


def test_acknowledged_by_the_date_that_is_stated(
    gpureport: Program, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1793145600")  # in October 2026
    limit = "gpu_utilization_ratio >= 95%"
    for until, code in (("2026-10-31", 0), ("2026-09-30", 1)):
        text = f'{policy(limit)}[[acknowledge]]\nlimit = "{limit}"\nreason = "new model"\nuntil = {until}\n'
        (logs / "gpureport.toml").write_text(text)
        assert gpureport("check", "same.csv").code == code
    assert gpureport("nightly", "same.csv", "--date", "2026-09-30", "--site", "s").code == 0
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "9" * 30)
    assert gpureport("check", "same.csv").code == 2


def test_reports_print_the_policy(gpureport: Program, logs: Path) -> None:
    (logs / "gpureport.toml").write_text(policy("gpu_utilization_ratio >= 95%"))
    assert gpureport(*words_of("report same.csv -o r.html -o r.md -o r.json -o r.txt")).code == 0
    for form in ("html", "md", "json", "txt"):
        text = (logs / f"r.{form}").read_text().replace("\\", "").replace("&gt;", ">")
        assert ("gpu_utilization_ratio mean >= 95%" in text, "failed" in text) == (True, True), form
    (logs / "gpureport.toml").unlink()
    gpureport("report", "same.csv", "-o", "bare.html")
    assert 'id="policy"' not in (logs / "bare.html").read_text()


def test_the_policy_of_the_docs_is_green_on_one_gpu(gpureport: Program, tmp_path: Path) -> None:
    """The example of docs/how-to/gates.md as written, on a job of 15 minutes and on one of 89 s, both with one GPU."""
    page = (Path(__file__).parents[3] / "docs/how-to/gates.md").read_text()
    (tmp_path / "gpureport.toml").write_text(page.split("```toml\n")[2].split("```")[0])
    header = f"{HEADER}, clocks_event_reasons.active"
    for name, rows, start in (("base", 900, 0), ("night", 900, 3), ("short", 90, 3)):
        lines = [f"{row(second, util=88 + (second * 7 + start) % 5)}, 0x0000000000000000" for second in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines, ""]))
    step = ("--step", "nightly", "--work", "1000:steps")
    gpureport("ingest", "base.csv", *step)
    gpureport("baseline", "set", "main", "base")
    night = gpureport("check", "night.csv", "--baseline", "main", *step)
    assert night.code == 0, night.out
    assert "broken" not in outcomes(gpureport, "short.csv", *step).values()


def test_a_baseline_that_git_ignores_is_said(gpureport: Program, logs: Path) -> None:
    git = ("git", "-C", str(logs))
    assert "git" not in gpureport("baseline", "set", "main", "base.csv").err.replace(str(logs), "")
    subprocess.run([*git, "init", "-q"], check=True)
    for ignored, noted in (("/runs/", False), ("runs/", True)):
        (logs / ".gitignore").write_text(f"{ignored}\n")
        done = gpureport("baseline", "set", "main", "base.csv")
        assert (done.code, "git add --force .gpureport/baselines" in done.err.replace(f"{logs}/", "")) == (0, noted)
