"""`gpureport nightly`: what it records, what it says, and how it exits."""

import errno
import os
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import pytest

from gpureport.cli.results import night_reports
from gpureport.nightly.history import record_file
from gpureport.nightly.history.night_history import History
from gpureport.store import Store, run_files
from tests.cli.program import Outcome, Program
from tests.importers.written_logs import HEADER, log, row
from tests.nightly.made import night, part

UTILISATION = "gpu_utilization_ratio"


@pytest.fixture
def nightly(gpureport: Program, tmp_path: Path) -> Program:
    """The command in a folder with two logs."""
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text(log(120 + number))

    def run(*arguments: str) -> Outcome:
        return gpureport("nightly", *arguments, "--site", "site")

    return run


def shown(folder: Path) -> list[tuple[str, str, int, str]]:
    """Return date, label, runs and reason of each night."""
    return [
        (each.date, each.label, len(each.measured_runs), " ".join(part.reason for part in each.missing_runs))
        for each in History(folder / ".gpureport").read_latest()
    ]


def files(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.html")}


def test_two_nights(nightly: Program, tmp_path: Path) -> None:
    """Each night is recorded with its label, has its report, and the run is in the store."""
    assert nightly("0.csv", "--date", "2026-03-01", "--label", "abc", "--work", "500:steps").code == 0
    done = nightly("1.csv", "--date", "2026-03-02", "--param", "workers=4")
    unsaid = "GPU time per 1,000 steps; Whole-job throughput; Energy per 1,000 steps"
    headline = "2 Mar: 8 more nights needed before changes show."
    assert (done.code, done.out) == (0, f"{headline}\n  Known before, but not of this night: {unsaid}.\n")
    assert shown(tmp_path) == [("2026-03-01", "abc", 1, ""), ("2026-03-02", "", 1, "")]
    first, second = History(tmp_path / ".gpureport").read_latest()
    (run,) = first.measured_runs
    assert run.value("gpu_seconds_per_1000_work") is not None
    assert run.value("cost_per_1000_work") is None
    assert second.measured_runs[0].params == (("workers", "4"),)
    assert second.measured_runs[0].value("gpu_seconds_per_1000_work") is None
    assert len(list((tmp_path / "site" / "nights").iterdir())) == 2
    assert len(Store(tmp_path / ".gpureport").entries()) == 2


def test_again_in_the_same_night(nightly: Program, tmp_path: Path) -> None:
    """A retry of the same night adds nothing and changes no page."""
    nightly("0.csv", "--date", "2026-03-01")
    before = files(tmp_path / "site")
    assert nightly("0.csv", "--date", "2026-03-01").code == 0
    assert files(tmp_path / "site") == before
    assert len(History(tmp_path / ".gpureport").read_all()) == 1


def test_a_missing_log(nightly: Program, tmp_path: Path) -> None:
    """A missing log exits with 4, is said, and is a night without data; the others of the night are recorded."""
    done = nightly("gone.csv", "1.csv", "--date", "2026-03-01", "--step", "a", "--step", "b")
    assert done.code == 4
    assert done.err.startswith("gpureport: gone.csv: no such file")
    unassessed = "NOT ASSESSED: the run has data (gone.csv): no such file; check the path."
    assert done.out == f"1 Mar: no data from gone.csv.\n{unassessed}\n"
    assert shown(tmp_path) == [("2026-03-01", "", 1, "no such file; check the path")]
    done = nightly("night", "--date", "2026-03-02")
    assert (done.code, done.err.splitlines()[0]) == (
        4,
        "gpureport: night: no recording at this path, nor a stored run of this name; see what gpureport record said",
    )


def test_a_missing_log_is_called_the_same_everywhere(nightly: Program, tmp_path: Path) -> None:
    """By the source as it was typed, with one reason; each rule is an error in JUnit."""
    written = "--junit", "junit.xml", "--summary", "summary.md", "--fail-on", "idle_ratio <= 5%"
    done = nightly("nights/2026-11-25", "--date", "2026-11-25", *written)
    assert (done.code, done.out.splitlines()[0]) == (4, "25 Nov: no data from nights/2026-11-25.")
    index = (tmp_path / "site" / "index.html").read_text()
    summary, junit = ((tmp_path / name).read_text() for name in ("summary.md", "junit.xml"))
    for text in (done.out, summary, junit, index):
        assert "nights/2026-11-25" in text
        assert "no such file; check the path" in text
    suite = ET.fromstring(junit)[0]  # noqa: S314 - our own
    assert [case.get("name") for case in suite] == ["the run has data", "idle_ratio <= 5%"]
    assert (suite.get("errors"), "stated at <" in junit) == ("2", False)


def test_the_headline_is_of_this_call(nightly: Program, tmp_path: Path) -> None:
    """Neither a later night nor another call of the same night speaks in it: summary and verdict agree."""
    assert nightly("0.csv", "--date", "2026-03-09", "--fail-on", "gpu_utilization_ratio >= 100%").code == 1
    for date, headline in (("2026-03-08", "8 Mar: "), ("2026-03-09", "9 Mar: ")):
        done = nightly("1.csv", "--date", date, "--fail-on", "idle_ratio <= 100%", "--summary", "summary.md")
        heading, _, line = (tmp_path / "summary.md").read_text().splitlines()[:3]
        assert (done.code, heading) == (0, "## gpureport nightly PASSED (1 passed)")
        assert line.startswith(headline)
        assert done.out.splitlines()[0].startswith(headline)
        assert "failed" not in done.out
        for path in (tmp_path / ".gpureport" / "history").glob("2026-03-08*"):
            path.unlink()


def test_a_log_that_cannot_be_read(nightly: Program, tmp_path: Path) -> None:
    """A log that holds nothing exits with 4, and is a night without data."""
    (tmp_path / "bad.csv").write_text("nothing,of,this\n1,2,3\n")
    assert nightly("bad.csv", "--date", "2026-03-01").code == 4
    assert nightly("bad.csv", "gone.csv", "--date", "2026-03-02").code == 4
    assert [each[2] for each in shown(tmp_path)] == [0, 0]


def test_the_log_of_an_earlier_night(nightly: Program, tmp_path: Path) -> None:
    """A log that was left over is not counted again: the night has no data, and the exit code is 4."""
    nightly("0.csv", "--date", "2026-03-01")
    done = nightly("0.csv", "--date", "2026-03-02")
    assert done.code == 4
    assert "this is the log of the night 2026-03-01" in done.err
    assert shown(tmp_path)[1] == ("2026-03-02", "", 0, "this is the log of the night 2026-03-01, not a new one")


def test_a_gap_is_filled_by_a_retry(nightly: Program, tmp_path: Path) -> None:
    """Once the log is there, the same command in the same night takes the gap's place."""
    assert nightly("late.csv", "--date", "2026-03-01").code == 4
    (tmp_path / "late.csv").write_text(log(125))
    assert nightly("late.csv", "--date", "2026-03-01").code == 0
    assert shown(tmp_path) == [("2026-03-01", "", 1, "")]


def test_pages_from_the_store_alone(nightly: Program, tmp_path: Path, gpureport: Program) -> None:
    """Without a source all pages are made again, reports included, byte for byte."""
    nightly("0.csv", "1.csv", "--date", "2026-03-01", "--label", "both")
    nightly("gone.csv", "--date", "2026-03-02")
    assert gpureport("nightly", "--site", "again").code == 0
    assert files(tmp_path / "again") == files(tmp_path / "site")
    assert len(shown(tmp_path)) == 2


def test_a_lost_site_gets_the_reports_of_the_newest_dates(
    nightly: Program, tmp_path: Path, gpureport: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it is whole; those of older nights are counted and made on demand, to the byte."""
    monkeypatch.setattr(night_reports, "_NEWEST", 1)
    for number in range(2):
        nightly(f"{number}.csv", "--date", f"2026-03-0{number + 1}")
    done = gpureport("nightly", "--site", "again")
    assert "not written: 1 report of earlier nights; --all-reports does" in done.err
    site, again = files(tmp_path / "site"), files(tmp_path / "again")
    (lost,) = site.keys() - again.keys()
    assert lost.startswith("nights/2026-03-01")
    assert "report not kept" in again["index.html"].decode()
    assert "not written" not in gpureport("nightly", "--site", "again", "--all-reports").err
    assert files(tmp_path / "again") == site


def test_each_night_of_the_history_is_read_once(nightly: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before tonight is added, for its changes, and for the pages."""
    for number in range(3):
        nightly(f"gone-{number}.csv", "--date", f"2026-03-0{number + 1}")
    load = Mock(wraps=record_file.load_record)
    monkeypatch.setattr(record_file, "load_record", load)
    nightly("0.csv", "--date", "2026-03-04", "--fail-on-change")
    assert load.call_count == len({call.args[0] for call in load.call_args_list}) == 4


def test_a_run_of_the_store(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    """A run that was ingested before is recorded by its name."""
    gpureport("ingest", "0.csv", "--name", "bert")
    assert nightly("bert", "--date", "2026-03-01").code == 0
    assert [each[2] for each in shown(tmp_path)] == [1]


def test_rotated_logs_are_one_run(nightly: Program, tmp_path: Path) -> None:
    """Several logs taken together are one run of the night; where one is missing, there are no data."""
    lines = (tmp_path / "0.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:60]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[60:]]))
    assert nightly("a.csv", "b.csv", "--as-one-run", "--date", "2026-03-01").code == 0
    assert nightly("a.csv", "gone.csv", "--as-one-run", "--date", "2026-03-02").code == 4
    assert [each[2] for each in shown(tmp_path)] == [1, 0]


def gate(nightly: Program, folder: Path, before: list[float]) -> list[int]:
    """Return how each of some nights exits as a gate after a history of such utilisations of the same GPU."""
    nightly("0.csv", "--date", "2027-01-01")
    (first,) = History(folder / ".gpureport").read_latest()
    model = first.measured_runs[0].model
    codes = []
    for number, value in enumerate(before):
        History(folder / ".gpureport").append(night(number, part({UTILISATION: value}, number, model=model)))
    for number in range(1, 4):
        (folder / f"n{number}.csv").write_text(log(130 + number))
        codes.append(nightly(f"n{number}.csv", "--date", f"2027-01-0{number + 1}", "--fail-on-change").code)
    return codes


def test_gate(nightly: Program, tmp_path: Path) -> None:
    """Worse than it was for long breaks the gate on the night that shows it, and not on the night after."""
    # the logs of the four nights differ little among each other, and are far below what was before
    codes = gate(nightly, tmp_path, [1.0 - 0.001 * (number % 3) for number in range(20)])
    assert codes == [0, 1, 0]


def test_gate_cannot_judge_few_nights(nightly: Program) -> None:
    """Too few nights cannot be judged, which a gate says with 4."""
    done = nightly("0.csv", "--date", "2026-03-01", "--fail-on-change")
    needed = "9 more nights needed before changes show"
    said = f"1 Mar: {needed}.\nNOT ASSESSED: no change for the worse (NVIDIA L4): {needed}.\n"
    assert (done.code, done.out) == (4, said)


def test_gate_cannot_judge_a_figure_that_is_gone(nightly: Program, tmp_path: Path) -> None:
    """A log without a column that those before had is said and exits with 4, though nothing else changed."""
    (tmp_path / "n.csv").write_text(log(130))
    nightly("n.csv", "--date", "2027-01-30")
    (kept,) = History(tmp_path / ".gpureport").read_latest()
    values = {figure.name: figure.value for figure in kept.measured_runs[0].figures}
    model = kept.measured_runs[0].model
    for number in range(12):
        History(tmp_path / ".gpureport").append(night(number, part(values, number, model=model)))
    assert nightly("n.csv", "--date", "2027-01-30", "--fail-on-change").code == 0
    text = log(131)
    heading, *rows = [line.split(", ") for line in text.splitlines()]
    place = heading.index("power.draw [W]")
    (tmp_path / "less.csv").write_text(
        "".join(", ".join(row[:place] + row[place + 1 :]) + "\n" for row in [heading, *rows])
    )
    done = nightly("less.csv", "--date", "2027-01-31", "--fail-on-change")
    assert done.code == 4
    assert "Known before, but not of this night: Energy a run; Power of a GPU." in done.out
    assert done.out.startswith("31 Jan: no change in the metrics recorded.\n")
    assert nightly("less.csv", "--date", "2027-01-31").code == 0


def test_a_missing_log_beside_one_of_the_same_name(nightly: Program, tmp_path: Path) -> None:
    """The log of one node tells nothing of that of another of the same name: its gap is shown until it is there."""
    for number in range(3):
        (tmp_path / f"node{number}").mkdir()
    (tmp_path / "node0" / "gpu.csv").write_text(log(120))
    names = [f"node{number}/gpu.csv" for number in range(3)]
    done = nightly(*names, "--date", "2026-03-01")
    assert done.code == 4
    assert "the run has data (node1/gpu.csv, node2/gpu.csv): no such file" in done.out
    assert nightly(*names, "--date", "2026-03-01").code == 4
    assert shown(tmp_path) == [("2026-03-01", "", 1, "no such file; check the path no such file; check the path")]
    for number in (1, 2):
        (tmp_path / names[number]).write_text(log(120 + number))
    assert nightly(*names, "--date", "2026-03-01").code == 0
    assert shown(tmp_path) == [("2026-03-01", "", 3, "")]


def test_better_breaks_no_gate(nightly: Program, tmp_path: Path) -> None:
    """A change for the better is told and exits with 0."""
    assert gate(nightly, tmp_path, [0.02 + 0.001 * (number % 3) for number in range(20)]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("0.csv", "--date", "yesterday"), "--date: 'yesterday' is no date"),
        (("0.csv", "--anonymise"), "--anonymise: a history keeps the names of runs"),
        (("0.csv", "--select", "nothing"), "nothing"),
        (("--fail-on", "problem"), "--fail-on: no run is checked without a SOURCE"),
    ],
)
def test_wrong_use(nightly: Program, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """What is wrong is said with 2, and nothing is recorded."""
    done = nightly(*arguments)
    assert done.code == 2
    assert said in done.err
    assert shown(tmp_path) == []


def test_the_date_of_a_reproducible_build(nightly: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SOURCE_DATE_EPOCH gives the date; one that is no number is refused."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1773400000")
    assert nightly("0.csv").code == 0
    assert [each[0] for each in shown(tmp_path)] == ["2026-03-13"]
    for wrong in ("soon", "9" * 14, "9" * 40, "1.5"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        for more in ((), ("--date", "2026-03-14")):
            done = nightly("1.csv", *more)
            assert (done.code, done.err) == (
                2,
                (
                    f"gpureport: SOURCE_DATE_EPOCH: {wrong!r} is not a number of seconds; "
                    "set it to the seconds since 1970, or unset it\n"
                ),
            )


def test_a_damaged_night_stops_it(nightly: Program, tmp_path: Path) -> None:
    """A night that cannot be read is an error with 3, not a night less."""
    nightly("0.csv", "--date", "2026-03-01")
    (path,) = (tmp_path / ".gpureport" / "history").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    done = nightly("1.csv", "--date", "2026-03-02")
    assert done.code == 3
    assert "cannot be read as a night" in done.err


def test_a_baseline_that_cannot_be_read_stops_it(
    nightly: Program, gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails is no missing baseline: the report of the night would say so for good. Nothing is recorded."""
    nightly("0.csv", "--date", "2026-03-01")
    gpureport("baseline", "set", "main", "0")
    before, read = files(tmp_path), run_files.read_stored_file

    def fail(path: Path, most: int) -> bytes:
        if "baselines" in path.parts:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return read(path, most)

    with monkeypatch.context() as broken:
        broken.setattr(run_files, "read_stored_file", fail)
        done = nightly("1.csv", "--date", "2026-03-02", "--baseline", "main")
    assert (done.code, files(tmp_path), len(shown(tmp_path))) == (3, before, 1)
    assert "run.json: cannot be read (Input/output error); check its permissions and the disk" in done.err
    assert nightly("1.csv", "--date", "2026-03-02", "--baseline", "main").code == 0


def test_a_history_that_is_no_folder_stops_it(nightly: Program, tmp_path: Path) -> None:
    """A history that cannot be listed is an error with 3, not one without nights, also where no night is added."""
    (tmp_path / ".gpureport").mkdir()
    (tmp_path / ".gpureport" / "history").write_text("")
    for sources in ((), ("0.csv",)):
        done = nightly(*sources, "--date", "2026-03-02")
        assert (done.code, "cannot be listed" in done.err) == (3, True)


def test_limits_hold_each_night(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    """They are those of the settings and the command line; the night is recorded whatever becomes of them."""
    (tmp_path / "gpureport.toml").write_text('[[policy]]\nlimit = "gpu_utilization_ratio mean >= 10%"\n')
    kept = nightly("0.csv", "--date", "2026-03-01")
    assert (kept.code, "Passed: gpu_utilization_ratio mean >= 10%" in kept.out) == (0, True)
    broken = nightly("1.csv", "--date", "2026-03-02", "--fail-on", "gpu_utilization_ratio mean >= 100%")
    assert broken.code == 1
    assert "FAILED" in broken.out
    assert "1 failed, 1 passed." in (tmp_path / "site" / "index.html").read_text()
    first, second = History(tmp_path / ".gpureport").read_latest()
    assert [check.origin for check in second.checks] == ["gpureport.toml:2", "--fail-on"]
    for each, outcome in ((first, "passed"), (second, "failed")):
        report = (tmp_path / "site" / "nights" / f"{each.page}.html").read_text()
        assert outcome in report.split('id="policy"')[1].split("</details>")[0]
        assert '<a href="../index.html">All nights</a>' in report
    before = files(tmp_path / "site")
    assert gpureport("nightly", "--site", "again").code == 0
    assert files(tmp_path / "again") == before
    assert nightly("1.csv", "--date", "2026-03-02", "--fail-on", "thermal_throttle").code == 4
    assert [entry[0] for entry in shown(tmp_path)] == ["2026-03-01", "2026-03-02"]
    assert nightly("1.csv", "--fail-on", "no such limit at all").code == 2


def test_rules_on_changes_hold_against_a_baseline(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    """They are assessed as `check` does; without a baseline they are not, and that is said everywhere."""
    for number, util in enumerate((90, 90, 70)):
        rows = [row(second, util=util + (second * 7 + number) % 5 - 2) for second in range(600)]
        (tmp_path / f"{number}.csv").write_text("\n".join([HEADER, *rows, ""]))
    gpureport("ingest", "0.csv", "--name", "good")
    gpureport("baseline", "set", "main", "good")
    policy = '[[policy]]\nlimit = "change gpu_utilization_ratio >= -4 points"\n'
    (tmp_path / "gpureport.toml").write_text(policy)
    files_of_gate = ("--junit", "junit.xml", "--summary", "summary.md")
    none = nightly("1.csv", "--date", "2026-03-01", *files_of_gate)
    assert (none.code, "no baseline was named (--baseline)" in none.out) == (4, True)
    for name in ("site/index.html", "junit.xml", "summary.md"):
        assert "no baseline was named" in (tmp_path / name).read_text(), name
    (tmp_path / "gpureport.toml").write_text(f'{policy}[baseline]\nname = "main"\n')
    assert nightly("1.csv", "--date", "2026-03-01", *files_of_gate).code == 0
    assert (tmp_path / "summary.md").read_text().startswith("## gpureport nightly PASSED (1 passed)\n\n1 Mar: ")
    worse = nightly("2.csv", "--date", "2026-03-02", *files_of_gate)
    assert worse.code == gpureport("check", "2.csv").code == 1
    assert '<b class="worse">FAILED</b>: ' in (tmp_path / "site" / "index.html").read_text()
    assert ET.parse(tmp_path / "junit.xml").getroot().get("failures") == "1"  # noqa: S314 - our own
    (path,) = (tmp_path / "site" / "nights").glob("2026-03-02*.html")
    section = path.read_text().split('id="earlier"')[1].split("</details>")[0]
    assert [title for title in ("Baseline main", "Night of 2026-03-01") if title not in section] == []
    assert "unconfirmed (one run each)" in section
    assert nightly("2.csv", "--date", "2026-03-02", "--baseline", "mian").code == 4
    (path,) = {*(tmp_path / "site" / "nights").glob("2026-03-02*.html")} - {path}
    section = path.read_text().split('id="earlier"')[1].split("</details>")[0]
    assert "Not compared: mian: no such baseline" in section
    assert nightly("0.csv", "--date", "2026-04-02", "--step", "new").code == 4
    (path,) = (tmp_path / "site" / "nights").glob("2026-04-02*.html")
    assert "No run of this job in the week before is stored." in path.read_text()
    assert nightly("--baseline", "main").code == 0


def test_runs_of_the_same_name_have_rules_of_their_own(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    """Logs of two nodes are told apart in every row, and the one that fails is the one that is red."""
    for number, util in enumerate((90, 40)):
        (tmp_path / f"node{number}").mkdir()
        lines = [row(second, util=util) for second in range(120)]
        (tmp_path / f"node{number}" / "gpu.csv").write_text("\n".join([HEADER, *lines, ""]))
    done = nightly(
        "node0/gpu.csv", "node1/gpu.csv", "--date", "2026-03-01", "--fail-on", "gpu_utilization_ratio >= 80%"
    )
    assert (done.code, done.out.count("FAILED"), "FAILED: node1: " in done.out) == (1, 1, True)
    rows = (tmp_path / "site" / "index.html").read_text().split("<h2>Nights</h2>")[1].split("<tr")[2:]
    assert [word for each in rows for word in ("FAILED", "PASSED") if f">{word}<" in each] == ["PASSED", "FAILED"]
    assert gpureport("nightly", "--site", "again").code == 0
    assert files(tmp_path / "again") == files(tmp_path / "site")
