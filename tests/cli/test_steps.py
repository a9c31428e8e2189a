"""Steps: how runs are grouped to them, their training goals, and work that is not done."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import gpureport as api
from gpureport.errors import SettingsError
from gpureport.testing import Work
from tests.support import logs
from tests.support.logs import log, stamp
from tests.support.program import Program, analysed
from tests.support.tables import read_table

INPUTS = Path(__file__).with_name("inputs")
PLACES = ("base", "base/2", "base/3", "8-workers", "8-workers/2", "8-workers/3")


def record(folder: Path, first: int = 0) -> None:
    rows = logs.table(*(logs.row(second) for second in range(first, first + 60)))
    logs.write_recording(folder, rows, started=1, ended=2, zone="UTC")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Record two steps three times; the first run of each lies in the folder of the step itself."""
    for place, name in enumerate(PLACES):
        record(tmp_path / "runs" / name, place * 60)
    return tmp_path


def steps(gpureport: Program, *arguments: str) -> dict[str, int]:
    done = gpureport("compare", *arguments, "--format", "json")
    assert done.out, done.err
    return {step["label"]: len(step["runs"]) for step in json.loads(done.out)["steps"]}


def test_folders_are_steps_whatever_they_hold_and_are_called(gpureport: Program, runs: Path) -> None:
    assert list(steps(gpureport, "runs/base").values()) == [1, 1, 1]
    assert list(steps(gpureport, "runs/base", "runs/8-workers").items()) == [("base", 3), ("8-workers", 3)]
    assert list(steps(gpureport, "runs/8-workers/", "runs/base").items()) == [("8-workers", 3), ("base", 3)]
    gpureport("report", "runs/base", "runs/8-workers", "-o", "out.json")
    assert "2 steps \N{MULTIPLICATION SIGN} 3 runs" in json.loads((runs / "out.json").read_text())["subtitle"]
    record(runs / "runs" / "pinned", 400)
    assert steps(gpureport, "runs/base", "runs/pinned") == {"base": 3, "pinned": 1}
    for place in (1, 2):
        record(runs / "other" / "base" / str(place), place)
    assert steps(gpureport, "runs/base", "other/base") == {"runs/base": 3, "other/base": 2}
    assert steps(gpureport, "runs/base", "other/base", "--anonymise") == {"step_1": 3, "step_2": 2}
    folders = ("runs/base", "runs/8-workers", "--by", "folder", "--anonymise")
    assert steps(gpureport, *folders) == {"step_1": 3, "step_2": 3}
    assert gpureport("compare", "runs", "--by", "folder").err.endswith(": base, 8-workers, pinned\n")
    for given in (folders, folders[:-1], folders[:2]):
        assert steps(gpureport, *given, "--step", "a", "--step", "b") == {"a": 3, "b": 3}
    assert list(steps(gpureport, "runs/pinned", "runs/base", "--by", "folder")) == ["pinned", "base"]
    shutil.copytree(runs / "runs" / "8-workers", runs / "numbered" / "8-workers")
    shutil.copytree(runs / "runs" / "base", runs / "numbered" / "11-workers")
    assert gpureport("compare", "numbered", "--by", "folder").err.endswith("in their names: 8-workers, 11-workers\n")
    (runs / "runs" / "base" / "2" / "labels.json").write_text('{"step": "second"}')
    assert steps(gpureport, "runs/base", "runs/8-workers") == {"base": 2, "second": 1, "8-workers": 3}
    for name in PLACES:
        (runs / "runs" / name / "run.json").unlink()
    assert len(steps(gpureport, "runs/base", "runs/8-workers")) == len(PLACES)
    uneven = gpureport("compare", *(f"runs/{name}" for name in PLACES[2:])).out
    assert "add --by folder" in " ".join(uneven.split())


@pytest.mark.usefixtures("runs")
def test_a_run_below_a_folder_that_is_named_too_counts_once(gpureport: Program) -> None:
    for named in (("runs/base", "runs/base/2"), ("runs/base/2", "runs/base")):
        assert steps(gpureport, *named, "runs/8-workers") == {"base": 2, "base/2": 1, "8-workers": 3}
    done = gpureport("compare", "runs", "runs/base/2", "--by", "folder")
    assert "2 steps \N{MULTIPLICATION SIGN} 3 runs" in done.out
    assert done.err.splitlines()[0] == "gpureport: runs: runs named twice are counted once: runs/base/2"
    assert len(analysed(gpureport, "runs/base", "runs/base/2/gpu.csv")) == PLACES.index("8-workers")
    refused = gpureport("report", "runs/base/2", "runs/base/2/gpu.csv", "-o", "out.json")
    assert (refused.code, refused.err.count("\n")) == (3, 1)


def test_a_folder_that_is_named_twice_counts_once(gpureport: Program, runs: Path) -> None:
    for again in ("runs/base/", str(runs / "runs/base"), "runs/8-workers/../base"):
        named = ("runs/base", again, "runs/8-workers")
        assert steps(gpureport, *named) == {"base": 3, "8-workers": 3}
        assert gpureport("compare", *named).err.splitlines()[0] == f"gpureport: {again}: named twice, counted once"
        assert steps(gpureport, *named, "--anonymise") == {"step_1": 3, "step_2": 3}
        # what is said of each source in their order needs all of them
        assert steps(gpureport, *named, "--step", "a", "--step", "a", "--step", "b") == {"a": 3, "b": 3}
        assert steps(gpureport, *named, "--step", "a", "--step", "b", "--step", "c") == {"a": 3, "b": 3, "c": 3}
        works = [word for place in range(3) for word in ("--work", f"{place + 1}:steps")]
        assert steps(gpureport, *named, *works) == {"base": 3, "8-workers": 3}


def test_runs_named_twice_count_once_or_are_compared(gpureport: Program, runs: Path) -> None:
    shutil.copy(INPUTS / "nested.toml", runs)
    assert steps(gpureport, "--steps", "nested.toml") == {"base": 2, "third": 1}
    notes = gpureport("compare", "--steps", "nested.toml").err.splitlines()
    assert [note.split(": ")[1] for note in notes] == ["runs/base", "runs/base/2/gpu.csv"]
    record(runs / "runs" / "pinned", 400)
    assert len(json.loads(gpureport("compare", "runs/pinned", "runs/pinned/", "--format", "json").out)["steps"]) == 2
    assert len(steps(gpureport, "runs/pinned", "runs/pinned/", "runs/8-workers/2")) == 2


def test_copies_of_a_log_are_one_repetition(gpureport: Program, runs: Path) -> None:
    shutil.copytree(runs / "runs" / "base" / "2", runs / "runs" / "base" / "copy")
    for options in ([], ["--anonymise"]):
        assert list(steps(gpureport, "runs/base", "runs/8-workers", *options).values()) == [3, 3]
        named = ("runs/base/2", "runs/base/copy", "runs/8-workers")
        assert steps(gpureport, *named, "--step", "a", "--step", "a", "--step", "b", *options) == {"a": 1, "b": 3}
    assert len(steps(gpureport, "runs/base/2", "runs/base/copy")) == 2
    noted = gpureport("compare", "runs/base", "runs/8-workers", "--by", "folder").err.splitlines()
    assert [note.split(": ")[1] for note in noted] == ["runs/base/copy/gpu.csv"]
    shutil.copy(INPUTS / "copied.toml", runs)
    for options in ([], ["--anonymise"]):
        assert steps(gpureport, "--steps", "copied.toml", *options) == {"a": 1, "b": 3}


NAMES = ("old-1", "old-2", "new-1", "new-2")


@pytest.fixture
def four(tmp_path: Path) -> Path:
    for place, name in enumerate(NAMES):
        (tmp_path / f"{name}.csv").write_text(log(120 + place))
    return tmp_path


def test_repetitions_given_as_files(gpureport: Program, four: Path) -> None:
    steps = [word for step in ("old", "old", "new", "new") for word in ("--step", step)]
    files = [f"{name}.csv" for name in NAMES]
    assert gpureport("report", *files, *steps, "-o", "report.json").code == 0
    heads = [row["head"] for row in json.loads((four / "report.json").read_text())["steps"]["rows"]]
    assert [(head["text"], head["small"]) for head in heads] == [("old", ""), ("new", "")]
    gpureport("report", *files, "--step", "same", "-o", "report.json")
    assert json.loads((four / "report.json").read_text())["steps"] is None
    assert ["2 repeated steps" in gpureport("compare", *names).out for names in (files, files[:2])] == [True, False]
    document = json.loads(gpureport("compare", *files, *steps, "--format", "json").out)
    assert [len(step["runs"]) for step in document["steps"]] == [2, 2]
    assert (document["remaining"]["step"], document["remaining"]["runs"]) == ("new", 2)
    assert gpureport("ingest", "old-1.csv", "new-1.csv", "--step", "old", "--step", "new").code == 0
    shown = [json.loads(gpureport("runs", "show", name).out)["run"]["step"] for name in ("old-1", "new-1")]
    assert shown == ["old", "new"]


def test_groups_by_kind_of_gpu_and_param(gpureport: Program, four: Path) -> None:
    for place, name in enumerate(NAMES):
        content = (four / f"{name}.csv").read_text()
        model = "NVIDIA H100 80GB HBM3" if place < 2 else "NVIDIA A10"
        (four / f"{name}-gpu.csv").write_text(re.sub(r"NVIDIA [^,]*", model, content))
        given = ("--name", name, "--param", f"precision={('fp32', 'bf16')[place % 2]}", "--work", "1000:steps")
        gpureport("ingest", f"{name}-gpu.csv", *given)
    assert gpureport("report", *NAMES, "--by", "gpu,param:precision", "-o", "report.json").code == 0
    part: Any = json.loads((four / "report.json").read_text())["comparison"]
    assert (part["grouped"], "[prices]" in str(part["study"])) == ("gpu and precision", True)
    titles = [chart["title"].partition(": ")[2] for chart in part["charts"]]
    assert titles == ["gpu=NVIDIA H100 80GB HBM3", "gpu=NVIDIA A10"]
    rows = [[row["label"] for row in chart["rows"]] for chart in part["charts"]]
    assert rows == [["precision=fp32", "precision=bf16"]] * 2
    tables = [section["table"] for section in part["study"] if "table" in section]
    heads = {row["head"]["text"] for table in tables for row in table["rows"]}
    assert heads == {"gpu=NVIDIA A10 versus NVIDIA H100 80GB HBM3", "precision=bf16 versus fp32"}


ENDS = {"before": 0.79, "after": 0.61}


@pytest.fixture
def two_steps(tmp_path: Path) -> Path:
    """Lay out two steps, each a log and what its training loop wrote; the second is faster and trains worse."""
    for name, seconds in (("before", 600), ("after", 300)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "gpu.csv").write_text(log(seconds))
        values = [ENDS[name] * share for share in (0.4, 0.8, 0.96, 1, 1, 1)]
        rows = [f"{(k + 1) * seconds / 6 - 1},{k + 1},{value},{1 - value}" for k, value in enumerate(values)]
        (folder / "training.csv").write_text("\n".join(["elapsed,step,val_accuracy,regret", *rows, ""]))
    return tmp_path


def test_training_logs_that_are_named_go_to_their_sources(gpureport: Program, two_steps: Path) -> None:
    for name in ENDS:
        (two_steps / name / "training.csv").rename(two_steps / f"{name}.csv")
    sources = ("compare", "before", "after", "--work", "1000:samples")
    done = gpureport(*sources, "--training", "before.csv", "--training", "after.csv", "--format", "json")
    (found,) = json.loads(done.out)["quality"]
    assert [found[side]["final"] for side in ENDS] == [pytest.approx(end) for end in ENDS.values()]
    assert gpureport(*sources, "--training", "before.csv").code == 2


@pytest.mark.usefixtures("two_steps")
def test_goals_reach_the_json(gpureport: Program) -> None:
    goals = ("--target", "val_accuracy=.75", "--better", "regret=lower")
    found = json.loads(gpureport("compare", "before", "after", "--format", "json", *goals).out)
    named = {each["name"]: each for each in found["quality"]}
    assert (named["regret"]["higher_is_better"], named["regret"]["leading"]) == (False, True)
    assert named["val_accuracy"]["before"]["final"] == pytest.approx(0.79)
    before, after = found["time_to_target"]["steps"]
    assert before["seconds"] == pytest.approx(299, abs=2)
    assert (after["seconds"], after["reached"], bool(after["runs"][0]["reason"])) == (None, 0, True)
    assert [step["measures"]["seconds_to_target"] for step in found["steps"]] == [before["seconds"], None]
    assert "4 min 59 s → not reached" in gpureport("compare", "before", "after", *goals).out
    assert "Time to val_accuracy=0.75" in gpureport("analyze", "before", *goals).out
    plain = json.loads(gpureport("compare", "before", "after", "--format", "json").out)
    assert plain["time_to_target"] is None
    assert "regret" not in {each["name"] for each in plain["quality"]}


def test_limits_on_training_metrics_hold_a_gate(gpureport: Program, two_steps: Path) -> None:
    (two_steps / "gpureport.toml").write_text(
        '[training]\ntarget = "val_accuracy=0.6"\n\n[[policy]]\nlimit = "seconds_to_target <= 6 min"\n'
    )
    limit = ("--fail-on", "val_accuracy >= 0.78")
    assert [gpureport("check", name, *limit).code for name in ("before", "after")] == [0, 1]
    assert gpureport("check", "after", "--target", "val_accuracy=.7").code == 4
    assert gpureport("report", "after", *limit, "-o", "after.md").code == 1
    assert gpureport("check", "before", "--fail-on", "training gain >= 1").code == 4


@pytest.mark.usefixtures("two_steps")
def test_limits_on_rates_count_the_work_that_was_logged(gpureport: Program) -> None:
    Path("pace.csv").write_text("elapsed,step,pace\n" + "".join(f"{k * 10},{k},50\n" for k in range(1, 60)))
    for limit in ("training_rate_hertz >= 40 /s", "work_rate_hertz >= 40 /s"):
        checked = ("check", "before", "--training", "pace.csv", "--fail-on", limit)
        assert [gpureport(*checked, *key).code for key in ((), ("--throughput", "pace"))] == [1, 0]
    assert gpureport("compare", "before", "after", "--throughput", "pace", "--debug").error == "no_such_throughput"


def test_the_python_api_takes_the_same(two_steps: Path) -> None:
    runs = [*api.read(two_steps / "before"), *api.read(two_steps / "after")]
    found = api.compare(runs, better={"regret": "lower"}, target="val_accuracy=0.75")
    assert "seconds_to_target" in found.deltas_frame()["metric"].tolist()
    (quality,) = found.quality_frame().query("metric == 'val_accuracy'").to_dict("records")
    assert (quality["after"], quality["verdict"]) == (pytest.approx(0.61), "unconfirmed (one run each)")
    page = api.report(found, format="md").replace("\\", "")
    assert "regret from 0.21 to 0.39 and val_accuracy from 0.79 to 0.61" in page
    with pytest.raises(SettingsError):
        api.compare(runs, target="regret=1")


@pytest.mark.parametrize(("line", "said"), read_table(Path(__file__).with_name("loops.tsv")))
def test_work_is_what_the_text_of_a_loop_counts(gpureport: Program, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "gpu.csv").write_text(log(600))
    (tmp_path / "train.log").write_text("".join(f"{stamp(50 * at)} {line.format(at)}\n" for at in range(1, 11)))
    assert f" {said} " in " ".join(gpureport("analyze", "gpu.csv", "--training", "train.log").out.split())


ALL = {"amount": 10_000.0, "unit": "images"}
STATED = ("--work", "10000:images")


@pytest.fixture
def unfinished_runs(tmp_path: Path) -> Path:
    """Lay out a recording and one whose recorder was killed after two thirds of it."""
    logs.write_recording(tmp_path / "runs" / "base", log(300), ended=300_000_000)
    logs.write_recording(tmp_path / "runs" / "cut", log(200), ended=None)
    for name in ("cut.toml", "repeated.toml"):
        shutil.copy(INPUTS / name, tmp_path)
    return tmp_path


def work_of(gpureport: Program, *words: str) -> list[object]:
    return [each["run"]["work"] for each in analysed(gpureport, *words)]


@pytest.mark.usefixtures("unfinished_runs")
def test_a_run_that_was_cut_did_what_is_said_of_it_alone(gpureport: Program) -> None:
    both, own = ("runs/base", "runs/cut"), {"amount": 6_000.0, "unit": "images"}
    for words, works in (
        ((*both, *STATED), [ALL, None]),
        (("runs", *STATED), [ALL, None]),
        ((*both, *STATED, "--work", "6000:images"), [ALL, own]),
        (("runs/cut", *STATED), [ALL]),
    ):
        assert work_of(gpureport, *words) == works, words
    assert gpureport("ingest", "runs", *STATED).code == 0
    assert work_of(gpureport, "base", "cut") == [ALL, None]
    assert work_of(gpureport, "base", "cut", "--work", "7:images")[1] is None


@pytest.mark.usefixtures("unfinished_runs")
def test_a_comparison_has_no_figure_per_work_of_a_run_that_was_cut(gpureport: Program) -> None:
    for words in (("--steps", "cut.toml", *STATED), ("--steps", "repeated.toml"), ("runs/base", "runs/cut", *STATED)):
        document = json.loads(gpureport("compare", *words, "--format", "json").out)
        rates = {run["name"]: run["measures"]["work_rate_hertz"] for step in document["steps"] for run in step["runs"]}
        assert [rates[name] is None for name in sorted(rates)] == [False, True], words
    figures = [each for each in document["deltas"] if each["metric"] in {"work_rate_hertz", "training_rate_hertz"}]
    assert [(each["verdict"], each["reason"].partition(" ")[0]) for each in figures] == [("not enough data", "cut")] * 2
    warning, _ = document["warnings"]
    assert warning in " ".join(gpureport("compare", "runs/base", "runs/cut", *STATED).out.split())


def test_unfinished_work_in_the_api_and_of_one_epoch(gpureport: Program, tmp_path: Path, unfinished_runs: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(600))
    assert " 1 epoch " in " ".join(gpureport("analyze", "gpu.csv", "--work", "1:epochs").out.split())
    found = api.read(unfinished_runs / "runs", labels={"work": "10000:images"})
    works = {one.run.name.rpartition("/")[2]: one.run.work for one in found}
    assert works == {"cut": None, "base": Work(amount=10_000, unit="images")}
