"""Commands that explain, record, list stored runs and sum up a fleet."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import psutil
import pytest

import gpureport as api
from tests.fleet.fleet_logs import FAULTY, HOT, generate_fleet
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule
from tests.recorder.recorded import read_run_file, run_record
from tests.support.logs import SAMPLES, log
from tests.support.program import Program
from tests.support.tables import read_table


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyse in this process: starting others takes longer than a few runs."""
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0])


def test_stored_runs_are_selected_and_logs_read_once(gpureport: Program, tmp_path: Path) -> None:
    for code, words in ((3, ()), (2, ("--name", "x"))):
        refused = gpureport("--debug", "fleet", *words)
        assert (refused.code, refused.out) == (code, "")
        assert f"code: {'empty_store' if code == 3 else 'only_while_reading'}" in refused.err
    gpureport("ingest", str(SAMPLES / "healthy"), "--tag", "user=ann")
    one = json.loads(gpureport("fleet", str(SAMPLES / "idle_gap"), "--tag", "user=bob", "--format", "json").out)
    assert (one["use"]["runs"], one["schema"]) == (1, "gpureport.fleet/1")
    assert json.loads(gpureport("fleet", "--format", "json").out)["use"]["runs"] == 2
    found = json.loads(gpureport("fleet", "--tag", "user=bob", "--by", "user", "--format", "json").out)
    assert [group["name"] for by in found["groupings"] for group in by["groups"]] == ["bob"]
    assert found["selection"] == "user=bob"
    assert found | {"selection": ""} == one | {"groupings": found["groupings"]}
    nobody = gpureport("--debug", "fleet", "--where", "gpus>=99")
    assert (nobody.code, nobody.out, "code: nothing_selected" in nobody.err) == (3, "", True)
    (tmp_path / ".gpureport" / "fleet" / "summaries.parquet").unlink()
    for series in tmp_path.glob(".gpureport/runs/*/hardware.parquet"):
        series.write_bytes(b"torn")
    assert gpureport("fleet", "--format", "json").code == 3


def test_runs_that_lie_in_two_folders_are_named_on_one_line(gpureport: Program, tmp_path: Path) -> None:
    for run in ("OPT-1", "OPT-2"):
        for place in ("a", "b"):
            dumps.write(tmp_path / "export" / place, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id=run))
    dumps.write(tmp_path / "export" / "b", dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-3"))
    outcome = gpureport("fleet", "neptune:export")
    assert (outcome.code, outcome.err.count("gpureport: left out: ")) == (0, 1)
    assert "neptune:export#OPT-1, neptune:export#OPT-2: export/b" in outcome.err
    assert gpureport("ingest", "--list", "neptune:export").code == 3
    for command, code in (("analyze", 0), ("ingest", 3)):
        done = gpureport(command, "export")
        assert (done.code, done.err.count("\n"), "export/a" in done.err) == (code, 1, True), command


@pytest.mark.slow
def test_a_folder_of_many_runs_is_pointed_to_fleet(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for place in range(41):
        text = log(22 + place).replace("2026/03/14", f"2026/{place // 28 + 1:02}/{place % 28 + 1:02}")
        (tmp_path / "jobs" / f"{place}.csv").write_text(text)
    for command in (("report", "jobs", "-o", "x.html"), ("compare", "jobs")):
        outcome = gpureport("--debug", *command)
        assert (outcome.code, "code: too_many_steps" in outcome.err) == (2, True)
        assert outcome.err.endswith("gpureport fleet jobs -o fleet.html\n")
    assert gpureport("report", "jobs", "--step", "a", "-o", "x.html").code == 0
    gpureport("ingest", "jobs")
    selected = gpureport("compare", "--where", "gpus>=1")
    assert (selected.code, "gpureport fleet --where 'gpus>=1' -o fleet.html" in selected.err) == (2, True)
    (tmp_path / "jobs" / "0.csv").unlink()
    assert gpureport("compare", "jobs", "--format", "json").code == 0


@pytest.mark.slow
def test_the_truth_of_a_fleet_is_recovered(gpureport: Program, tmp_path: Path) -> None:
    truth = generate_fleet(tmp_path / "logs", 96)
    report = json.loads(gpureport("fleet", "logs", "--format", "json").out)
    classes = {each["name"]: each["gpu_seconds"] for each in report["classes"]}
    assert report["use"]["gpu_seconds"] == pytest.approx(truth.gpu_seconds)
    assert classes["unused"] == pytest.approx(truth.unused_seconds)
    assert classes["idle"] == pytest.approx(truth.idle_seconds, rel=0.01)
    by_user = {group["name"]: group["use"]["gpu_seconds"] for group in report["groupings"][0]["groups"]}
    assert by_user == pytest.approx(dict(truth.seconds_by_user))
    pulled = {card["uuid"]: card["symptoms"][0] for card in report["health"]["cards"] if card["verdict"] == "pull"}
    assert {uuid: [run["name"] for run in each["runs"]] for uuid, each in pulled.items()} == truth.sick_runs
    assert {uuid: each["symptom"] for uuid, each in pulled.items()} == {HOT: "heat_slowed", FAULTY: "ecc_uncorrected"}


@pytest.mark.usefixtures("stand_in_driver")
def test_job_keeps_its_exit_code_and_its_streams(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "rec"
    job = "import sys; print('out'); print('err', file=sys.stderr); sys.stdin.read(); sys.exit(3)"
    done = run_record("-o", folder, "--interval", "0.1", "--", sys.executable, "-c", job, input="")
    assert (done.returncode, done.stdout) == (3, "out\n")
    first, *_, last = done.stderr.splitlines()
    assert (first, last) == ("err", f"Read it: gpureport report {folder} -o report.html")
    run = read_run_file(folder)
    assert (run["exit_code"], run["notes"], run["interval"]) == (3, [], 0.1)
    assert run["ended"] > run["started"]
    assert sorted(path.name for path in folder.iterdir()) == ["dmon.log", "gpu.csv", "host.csv", "run.json"]
    assert all(path.read_bytes().endswith(b"\n") for path in folder.iterdir())


def test_links_of_a_foreign_folder_are_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for name, target in (("run.part", "mine"), ("gpu.csv", "nothing"), ("run.json", "nothing")):
        folder = tmp_path / f"folder of {name}"
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / target)
        done = run_record("--host-only", "-o", folder, "--", "true")
        assert (done.returncode, name in done.stderr) == (2, True)
    assert ((tmp_path / "mine").read_text(), (tmp_path / "nothing").exists()) == ("mine", False)


def test_without_nvidia_smi_the_job_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    started = tmp_path / "started"
    done = run_record("-o", tmp_path / "rec", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    assert (done.returncode, done.stderr.count("\n"), "nvidia-smi" in done.stderr) == (3, 1, True)
    assert "--host-only" in done.stderr
    assert ((tmp_path / "rec").exists(), started.exists()) == (False, False)


@pytest.fixture
def filled(gpureport: Program, tmp_path: Path) -> Program:
    """The program, in a folder with a store of three runs of two users, and a fourth without time stamps."""
    runs = (("old", "ann", "a"), ("new", "ann", "b"), ("other", "bob", "c"))
    for place, (name, user, step) in enumerate(runs):
        text = log(40 + place).replace("2026/03/14", f"2026/03/{14 + place}")
        (tmp_path / f"{name}.csv").write_text(text)
        labels = ("--name", name, "--step", step, "--tag", f"user={user}", "--param", f"batch={8 * 2**place}")
        assert gpureport("ingest", f"{name}.csv", *labels).code == 0
    (tmp_path / "bare.csv").write_text("index, utilization.gpu [%]\n" + "0, 50 %\n" * 40)
    assert gpureport("ingest", "bare.csv", "--interval", "1", "--tag", "user=cid").code == 0
    return gpureport


def test_formats_say_the_same(filled: Program) -> None:
    entries = json.loads(filled("runs", "list", "--format", "json").out)
    assert entries["schema"] == "gpureport.runs/1"
    rows = list(csv.DictReader(io.StringIO(filled("runs", "list", "--format", "csv").out)))
    lines = filled("runs").out.splitlines()
    assert len(lines) == len(rows) == len(entries["runs"]) == 4
    bare, old = entries["runs"][:2]
    assert (bare["started"], bare["tags"], bare["params"]) == (None, {"user": "cid"}, {})
    assert (old["started"], old["duration_seconds"], old["gpus"]) == ("2026-03-14T09:00:00.000", 39.0, 1)
    assert (rows[0]["started"], rows[0]["param:batch"], rows[0]["tag:user"]) == ("", "", "cid")
    assert (rows[1]["started"], rows[1]["param:batch"], rows[1]["step"]) == ("2026-03-14T09:00:00.000", "8", "a")
    for line, entry, row in zip(lines, entries["runs"], rows, strict=True):
        assert line.startswith(entry["id"])
        assert {name: row[name] for name in ("id", "name")} == {name: entry[name] for name in ("id", "name")}


def test_commands_take_what_is_selected(filled: Program, tmp_path: Path) -> None:
    analysed = filled("analyze", "--where", "tag:user=ann", "--tag", "seen=yes", "--format", "json")
    assert analysed.err == "gpureport: 2 stored runs selected\n"
    runs = [each["run"] for each in json.loads(analysed.out)["runs"]]
    assert [(run["name"], run["tags"]["seen"]) for run in runs] == [("old", "yes"), ("new", "yes")]
    compared = json.loads(filled("compare", "--since", "2026-03-15", "--format", "json").out)
    assert [step["label"] for step in compared["steps"]] == ["b", "c"]
    assert filled("report", "--where", "param:batch<32", "-o", "page.md").code == 0
    assert "a → b" in (tmp_path / "page.md").read_text()


def test_stored_runs_that_are_damaged_or_not_selected_are_named(filled: Program, tmp_path: Path) -> None:
    assert filled("runs", "list", "--where", "gpus>1").out.endswith(".gpureport matches.\n")
    # a run without time stamps is said to be left out
    assert filled("runs", "list", "--since", "2026-03-15").err.count("\n") == 1
    missing = filled("runs", "list", "--tag", "usr=ann")
    assert (missing.code, missing.out) == (2, "")
    assert "user" in missing.err
    nothing = filled("analyze", "--where", "gpus>1")
    assert (nothing.code, nothing.out) == (3, "")
    path = next((tmp_path / ".gpureport" / "runs").glob("*/run.json"))
    path.write_text("{")
    for arguments in (("runs",), ("analyze", "--where", "gpus=1")):
        assert f"{path.parent.name}: damaged" in filled(*arguments).err


def listed(gpureport: Program) -> dict[str, list[str]]:
    """Return the names that can be explained, by the first word of the heading they stand under."""
    found: dict[str, list[str]] = {}
    for line in gpureport("explain").out.splitlines()[1:]:
        if line and not line.startswith(" "):
            own = found.setdefault(line.partition(" ")[0], [])
        elif line.startswith("  ") and "  " in line.strip():
            own.append(line.split()[0])
        elif line:
            own += line.replace(",", " ").split()
    return found


def explained(gpureport: Program, *words: str) -> str:
    done = gpureport("explain", *words)
    assert (done.code, done.err) == (0, ""), words
    return done.out


def test_every_name_is_explained(gpureport: Program) -> None:
    names = listed(gpureport)
    assert [len(own) > 1 for own in names.values()] == [False, *[True] * (len(names) - 1)]
    kinds = [*names["Kinds"], *names["Families"]]
    assert {"thermal_throttle", "io_bound", "no_progress"} <= set(kinds)
    for name in {each for own in names.values() for each in own} - {"recording"}:
        text = explained(gpureport, name)
        assert text.startswith(name), name
        assert "\x1b" not in text
        assert name not in kinds or len(text.splitlines()) <= 40, name
        assert name not in kinds or f"gpureport explain {name} --detail full" in " ".join(text.split()), name


@pytest.mark.slow
def test_findings_recommend_what_explain_tells(gpureport: Program) -> None:
    texts: dict[str, str] = {}
    for folder in sorted(SAMPLES.iterdir()):
        words = ["--map", f"{folder}/map.toml", f"{folder}/wrapper.csv"] if folder.name == "mapped" else [str(folder)]
        document = json.loads(gpureport("analyze", *words, "--format", "json").out)
        for found in (finding for run in document["runs"] for finding in run["findings"]):
            kind, titles = found["kind"], found["recommendation"].rpartition(": ")[2].rstrip(".").split("; ")
            texts.setdefault(kind, " ".join(explained(gpureport, kind, "--detail", "full").split()))
            assert not found["steps"] or all(title in texts[kind] for title in titles), (folder.name, kind)


def test_what_to_record_is_understood_and_not_asked_for_again(gpureport: Program, tmp_path: Path) -> None:
    text = explained(gpureport, "recording")
    fields = re.findall(r"--query-gpu=(\S+)", text)[0].split(",")
    assert len(fields) == len(set(fields))
    assert {"timestamp", "index", "uuid", "driver_version", "utilization.gpu"} <= set(fields)
    assert len(text.splitlines()) < 60

    def read(other: str, **known: str) -> api.Recording:
        own = {"timestamp": "2026/03/14 09:{:02}:{:02}.000", "index": "0", "name": "Tesla T4", "uuid": "GPU-1"} | known
        lines = [", ".join(own.get(field, other) for field in fields).format(*divmod(at, 60)) for at in range(120)]
        (tmp_path / "gpu.csv").write_text("\n".join([", ".join(fields), *lines, ""]))
        (recording,) = api.read(tmp_path / "gpu.csv")
        return recording

    flags = {field: "No" for field in fields if field.endswith((".pending", ".failure"))}
    whole = read("1", **flags, **{"mig.mode.current": "[N/A]", "clocks_event_reasons.active": "0x1"})
    assert [name for name in whole.series.column_names if name.startswith("extra_")] == []
    assert len(whole.series.column_names) > 20
    bare = read("[N/A]", **{"memory.total": "15360 MiB", "memory.used": "9000 MiB", "utilization.gpu": "90 %"})
    absent = {entry.kind: entry for entry in api.analyze(bare).not_judged}
    held = set(bare.series.column_names)
    assert [one for one in absent.values() if one.recording and one.metrics and held >= {*one.metrics}] == []
    assert (absent["ecc_error"].recording, bool(absent["cpu_bound"].recording)) == ("", True)


def test_other_names_lead_to_what_there_is(gpureport: Program) -> None:
    for code, name, meant in read_table(Path(__file__).with_name("explained.tsv")):
        done = gpureport("explain", name)
        assert (str(done.code), code == "0" or (done.out, done.err.count("\n")) == ("", 1)) == (code, True), name
        assert meant in (done.out or done.err.partition(name)[2]), (name, done)
    assert len({explained(gpureport, name) for name in ("Slow start", "SLOW START", "startup_idle")}) == 1


def test_rules_can_be_copied_and_limits_are_those_in_force(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(60))
    for name in listed(gpureport)["Figures"]:
        (rule,) = re.findall("--fail-on '(.+)'", explained(gpureport, name))
        assert gpureport("analyze", "gpu.csv", "--fail-on", rule).code in {0, 1}, rule
    (tmp_path / "gpureport.toml").write_text("[rules.throttling]\nmerge = 45\n")
    text = " ".join(explained(gpureport, "throttling", "--detail", "full").split())
    assert re.search(r"merge 45 s; settings: gpureport\.toml", text)
