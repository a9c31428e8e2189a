"""What a command is told of its sources: maps, labels, logs that join, logs beside them, and jobs within one."""

import json
import re
import shutil
import tomllib
from itertools import permutations
from pathlib import Path

import pytest

from tests.support import logs as other_tools
from tests.support.logs import SAMPLES, log, row, stamp, table
from tests.support.program import Outcome, Program, analysed
from tests.support.tables import read_blocks


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """Return a folder with a table and a map of it, which is the current one."""
    (tmp_path / "power.csv").write_text(other_tools.wrapper_csv(30).replace("when", "time"))
    (tmp_path / "map.toml").write_text(other_tools.MAP.replace("when", "time"))
    return tmp_path


def test_a_draft_of_a_map_holds_what_the_header_proves(tmp_path: Path, gpureport: Program) -> None:
    header = "time,gpu0 power [W],GPU1 power,memory used,card speed,cpu %"
    rows = (f"03/14/2026 09:26:{tick:02d} AM,70,80,1000,5,{tick}" for tick in range(30))
    (tmp_path / "sheet.csv").write_text("\n".join((header, *rows, "")))
    for command in ("ingest", "analyze"):
        done = gpureport(command, "sheet.csv", "--source-kind", "mapped")
        assert (done.code, done.err.count("\n")) == (3, 1)
    # a line with a figure is no header
    (tmp_path / "titled.csv").write_text("\n".join(("gpu power,300,W", header, *rows, "")))
    assert gpureport("ingest", "titled.csv", "--source-kind", "mapped").out == done.out
    told = tomllib.loads(done.out)
    assert told["time"]["column"] == "time"
    assert told["columns"] == {
        "gpu0 power [W]": {"metric": "gpu_power_watts", "unit": "W", "device": "gpu:0"},
        "GPU1 power": {"metric": "gpu_power_watts", "device": "gpu:1"},
        "memory used": {"metric": "gpu_memory_used_bytes", "unit": "?", "device": "gpu:0"},
        "cpu %": {"metric": "cpu_utilization_ratio", "unit": "%"},
        "card speed": {"metric": "?", "unit": "?", "device": "gpu:0"},
    }
    (tmp_path / "map.toml").write_text(done.out)
    assert gpureport("ingest", "sheet.csv", "--map", "map.toml").code == 2
    completed = done.out.replace('metric = "?"\nunit = "?"', 'metric = "gpu_fan_ratio"\nunit = "%"')
    completed = completed.replace('"?"', '"MiB"').replace('"iso"', '"%m/%d/%Y %I:%M:%S %p"')
    (tmp_path / "map.toml").write_text(completed)
    done = gpureport("ingest", "sheet.csv", "--map", "map.toml")
    assert (done.code, "no lines lost" in done.out) == (0, True)


def test_a_draft_needs_no_known_heading(tmp_path: Path, gpureport: Program) -> None:
    rows = "".join(f"14.03.2026 09:26:{tick};0;{tick},0;0\n" for tick in range(10, 40))
    (tmp_path / "karten.csv").write_text(f"when;card;load;watt\n{rows}")
    assert "--map" in gpureport("analyze", "karten.csv").err
    draft = gpureport("ingest", "karten.csv", "--source-kind", "mapped").out
    unknown = {"metric": "?", "unit": "?"}
    assert tomllib.loads(draft) == {
        "time": {"column": "when", "format": "iso"},
        "device": {"column": "card"},
        "columns": {"load": unknown, "watt": unknown},
    }
    load, watt = ('metric = "gpu_utilization_ratio"\nunit = "%"', 'metric = "gpu_power_watts"\nunit = "W"')
    both = 'metric = "?"\nunit = "?"'
    (tmp_path / "map.toml").write_text(draft.replace(both, load, 1).replace(both, watt))
    assert "no lines lost" in gpureport("ingest", "karten.csv", "--map", "map.toml").out


def test_an_unknown_table_needs_a_map_which_every_command_takes(wrapper: Path, gpureport: Program) -> None:
    done = gpureport("analyze", "power.csv")
    assert (done.code, done.out, "--source-kind mapped" in done.err) == (3, "", True)
    stored = gpureport("ingest", "-v", "power.csv", "--map", "map.toml")
    assert (stored.code, "  column GPU0 power: gpu_power_watts\n" in stored.out) == (0, True)
    assert gpureport("analyze", "power.csv", "--map", "map.toml", "--format", "json").code == 0
    assert gpureport("report", "power.csv", "--map", "map.toml", "-o", "r.md").code == 0
    refused = gpureport("analyze", "power", "--map", "map.toml")
    assert (refused.code, "--map: power is a stored run" in refused.err) == (2, True)


def test_a_zone_in_the_map_is_that_of_the_run(wrapper: Path, gpureport: Program) -> None:
    text = other_tools.wrapper_csv(3)
    for second in range(3):
        text = text.replace(f"{other_tools.EPOCH + second},", f"{other_tools.iso_stamp(second)},")
    (wrapper / "power.csv").write_text(text.replace("when", "time"))
    told = (wrapper / "map.toml").read_text().replace('"epoch_s"', '"iso"\nzone = "Europe/Berlin"')
    (wrapper / "map.toml").write_text(told)
    for offset, more in (("+01:00", ()), ("+00:00", ("--tz", "UTC"))):
        (run,) = analysed(gpureport, "power.csv", "--map", "map.toml", *more)
        assert run["run"]["started"] == f"2026-03-14T09:00:00.000{offset}"


@pytest.fixture
def labelled_logs(tmp_path: Path) -> Path:
    """A table of jobs and a folder of logs: of a job by its number, of one of two on a machine, and of nobody."""
    shutil.copy(Path(__file__).with_name("jobs.csv"), tmp_path)
    folder = tmp_path / "logs"
    folder.mkdir()
    for seconds, name in ((58, "job4411"), (45, "gpu02"), (34, "mine")):
        (folder / f"{name}.csv").write_text(log(seconds).replace("1024 MiB", f"{seconds} MiB"))
    return folder


def tags(gpureport: Program, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(gpureport("runs", "show", name).out)["run"]["tags"]
    return found


def notes(outcome: Outcome) -> str:
    return next(line for line in outcome.err.splitlines() if "jobs.csv" in line).partition("jobs.csv: ")[2]


def test_runs_are_labelled_as_they_are_stored_and_afterwards(gpureport: Program, labelled_logs: Path) -> None:
    (labelled_logs / "gpu02.csv.json").write_text('{"tags": {"node": "gpu02"}}')
    plain = gpureport("ingest", str(labelled_logs))
    assert tags(gpureport, "job4411") == {}
    labelled = gpureport("ingest", str(labelled_logs), "--labels", "jobs.csv", "--tag", "account=art")
    assert notes(labelled) == (
        "1 of 3 runs labelled; 1 not, because several rows fit equally well (gpu02); 1 without a row (mine); "
        "2 of 3 rows match no run"
    )
    again = gpureport("-v", "ingest", str(labelled_logs), "--labels", "jobs.csv", "--tag", "account=art")
    assert "gpu02: several rows fit equally well: lines 3, 4" in again.err
    expected = {"user": "ada", "account": "art", "job": "4411", "node": "gpu01", "job_state": "COMPLETED"}
    assert tags(gpureport, "job4411") == expected
    assert tags(gpureport, "gpu02") == {"account": "art", "node": "gpu02"}
    ids = [sorted(re.findall(r"Id (\w+)", each.out)) for each in (plain, labelled)]
    assert ids[0] == ids[1] != []


def test_runs_that_are_not_stored(gpureport: Program, labelled_logs: Path) -> None:
    log_file = str(labelled_logs / "job4411.csv")
    for source in (log_file, "job4411"):
        for part in ((), ("--to", "30s")):
            found = gpureport("analyze", source, "--labels", "jobs.csv", "--format", "json", *part)
            assert json.loads(found.out)["runs"][0]["run"]["tags"]["user"] == "ada"
            assert notes(found) == "1 of 1 run labelled; 2 of 3 rows match no run"
        gpureport("ingest", log_file)
    assert gpureport("-q", "analyze", log_file, "--labels", "jobs.csv").err == ""
    refused = gpureport("analyze", log_file, "--labels", log_file)
    assert (refused.code, "no column names a run, job" in refused.err) == (2, True)


def test_a_file_of_labels_adds_to_a_stored_run(gpureport: Program, labelled_logs: Path) -> None:
    gpureport("ingest", str(labelled_logs), "--tag", "user=me")
    (labelled_logs / "labels.json").write_text('{"name": "night", "tags": {"user": "ada", "project": "x"}}')
    gpureport("ingest", str(labelled_logs))
    assert tags(gpureport, "mine") == {"user": "me", "project": "x"}
    gpureport("ingest", str(labelled_logs / "mine.csv"), "--force")
    assert tags(gpureport, "night") == {"user": "ada", "project": "x"}
    for path, name in ((labelled_logs / "mine.csv", "night"), (labelled_logs, "gpu02")):
        assert f"Stored {name}:" in gpureport("ingest", str(path), "--store", "other").out


HOST = "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in range(60))
TRAINING = "timestamp,loss\n" + "".join(f"{stamp(at).replace('/', '-')},{9 - at / 60}\n" for at in range(60))
COPIES = "#Date       Time        gpu rxpci txpci\n#YYYYMMDD   HH:MM:SS    Idx  MB/s  MB/s\n" + "".join(
    f" 20260314   09:00:{at:02}     0   {500 + at}    20\n" for at in range(60)
)


@pytest.fixture
def logs(tmp_path: Path) -> None:
    texts = {"host": HOST, "loss": TRAINING, "copies": COPIES}
    texts |= {name: table(*map(row, seconds)) for name, seconds in (("a", range(60)), ("b", range(100, 160)))}
    for name, text in texts.items():
        (tmp_path / f"{name}.log").write_text(text)


def runs(gpureport: Program, *words: str) -> list[tuple[str, str, list[str]]]:
    found = [each["run"] for each in analysed(gpureport, *words)]
    return [(run["id"], run["name"], sorted(source["locator"] for source in run["sources"])) for run in found]


@pytest.mark.usefixtures("logs")
def test_sources_of_one_job_join_in_any_order(gpureport: Program) -> None:
    everything = ("a.log", "copies.log", "host.log", "loss.log")
    found = {str(runs(gpureport, *order)) for order in list(permutations(everything))[::4]}
    options = ("--host", "host.log", "--training", "loss.log")
    found.add(str(runs(gpureport, "copies.log", "a.log", *options)))
    found.add(str(runs(gpureport, "a.log", "--host", "copies.log", *options)))
    assert len(found) == 1
    assert "'a', ['a.log', 'copies.log', 'host.log', 'loss.log']" in found.pop()
    outcome = gpureport("compare", "copies.log", "a.log", "b.log", "host.log", "--format", "json")
    assert [step["label"] for step in json.loads(outcome.out)["steps"]] == ["a", "b"]
    assert "a.log, copies.log" in outcome.err
    alone = gpureport("compare", "a.log", "copies.log", "--format", "json")
    assert len(json.loads(alone.out)["steps"]) == 2


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return the current folder, in which `job` holds a log and what the training loop wrote."""
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("nvidia-smi.csv.gz", "training.csv"):
        shutil.copy(SAMPLES / "no_progress" / name, folder / name)
    return tmp_path


def kinds(text: str) -> list[str]:
    return [finding["kind"] for finding in json.loads(text)["runs"][0]["findings"]]


def test_a_training_log_beside_the_log_is_joined(job: Path, gpureport: Program) -> None:
    done = gpureport("analyze", "job", "--format", "json")
    assert ("no_progress" in kinds(done.out), done.err) == (True, "")
    assert "no_progress" not in kinds(gpureport("analyze", "job/nvidia-smi.csv.gz", "--format", "json").out)
    gpureport("report", "job", "-o", "report.json")
    assert "no_progress" in (job / "report.json").read_text()
    assert gpureport("check", "job", "--fail-on", "no_progress").code == 1
    assert gpureport("ingest", "job", "--name", "stored").code == 0
    assert "no_progress" in kinds(gpureport("analyze", "stored", "--format", "json").out)
    assert "no_progress" in gpureport("compare", "job", "stored", "--format", "json").out


def test_a_training_log_that_is_named_wins(job: Path, gpureport: Program) -> None:
    (job / "other.csv").write_text("timestamp,step,val_loss\n2026-07-01T09:00:33,1,2.0\n2026-07-01T09:00:43,2,1.0\n")
    done = gpureport("analyze", "job", "--training", "other.csv", "--format", "json")
    assert "no_progress" not in kinds(done.out)
    sources = [source["locator"] for source in json.loads(done.out)["runs"][0]["run"]["sources"]]
    assert sources == ["job/nvidia-smi.csv.gz", "other.csv"]


def test_training_logs_are_told_by_content(tmp_path: Path, gpureport: Program) -> None:
    for head, text in read_blocks(Path(__file__).with_name("beside.txt")):
        name, _, told = head.partition(" ")
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / "gpu.csv").write_text(log(60))
        (folder / name).write_text(text)
        (run,) = analysed(gpureport, folder.name)
        sources = [Path(source["locator"]).name for source in run["run"]["sources"]]
        assert sources == ["gpu.csv", *[name] * (told == "is joined")]


def test_a_training_log_that_cannot_be_placed_is_left_out(tmp_path: Path, gpureport: Program) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "gpu.csv").write_text(log(60))
    (folder / "training.csv").write_text("timestamp,step,loss\n1773478800,1,2.0\n1773478830,2,1.0\n")
    (run,) = analysed(gpureport, "job")
    assert [source["locator"] for source in run["run"]["sources"]] == ["job/gpu.csv"]
    assert len([note for note in run["quality"]["notes"] if "job/training.csv" in note]) == 1
    assert gpureport("analyze", "job", "--training", "job/training.csv").code == 3


def test_a_path_with_the_name_of_a_stored_run(job: Path, gpureport: Program) -> None:
    gpureport("ingest", "job", "--name", "elsewhere")
    assert gpureport("analyze", "job").err == ""
    (job / "elsewhere").mkdir()
    (job / "elsewhere" / "gpu.csv").write_text(log(60))
    done = gpureport("analyze", "elsewhere", "--format", "json")
    assert (done.err.startswith("gpureport: elsewhere: "), done.err.count("\n")) == (True, 1)
    assert "no_progress" not in kinds(done.out)
    run = done.err.split()[-1]
    stored = gpureport("analyze", run, "--format", "json")
    assert ("no_progress" in kinds(stored.out), stored.err) == (True, "")
    assert gpureport("analyze", "./elsewhere").err == ""
    assert gpureport("-q", "analyze", "elsewhere").err == ""


def test_one_job_is_read_alone_or_each_is_a_run(gpureport: Program, tmp_path: Path) -> None:
    work = ["95 %, 9000" if second < 300 or second >= 900 else "0 %, 3" for second in range(1500)]
    rows = (f"{stamp(second)}, 0, NVIDIA L4, {each} MiB, 70.00 W" for second, each in enumerate(work))
    (tmp_path / "night.csv").write_text(table(*rows))
    gpureport("ingest", "night.csv")
    for source in ("night.csv", "night"):
        (run,) = analysed(gpureport, source, "--job", "2")
        assert (run["run"]["name"], run["run"]["started"]) == ("night #2", "2026-03-14T09:15:00.000")
        assert [each["rows"] for each in run["quality"]["rejected"]] == [900]
        assert run["no_job"] == {}
    assert [run["run"]["name"] for run in analysed(gpureport, "night.csv", "--job", "each")] == ["night #1", "night #2"]
    gpureport("ingest", "night.csv", "--job", "each")
    assert [run["run"]["name"] for run in analysed(gpureport, "night #1", "night #2")] == ["night #1", "night #2"]
    assert "night #1 → night #2" in " ".join(gpureport("compare", "night.csv", "--job", "each").out.split())
    (run,) = analysed(gpureport, "night.csv", "--from", "600s", "--job", "1")
    assert (run["run"]["name"], run["run"]["started"]) == ("night #1", "2026-03-14T09:10:00.000")
