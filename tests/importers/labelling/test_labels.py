"""Labels of runs by name, number of the job, machine and time; and training metrics recognised by their names."""

import gzip
import json
import tomllib
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import gpureport
from gpureport.errors import SettingsError
from gpureport.testing import Recording, Run, analyze, findings_of, recording, unjudged, with_training
from tests.importers.trackers.mlflow.stores import START, Made, Point, database, monitored, run_id
from tests.readers.conftest import Hold
from tests.support.logs import HEADER, log, read, write
from tests.support.tables import read_table

HERE = Path(__file__).parent
LABELS = {"name": "base", "step": 0, "params": {"lr": 0.10, "amp": True, "seed": None}, "tags": {"user": "ada"}}
OTHER_JSON = HERE.joinpath("other.jsonl").read_text(encoding="utf-8").splitlines()
SACCT = HERE.joinpath("jobs.txt").read_text(encoding="utf-8")


def beside(folder: Path, files: dict[str, Any], **labels: Any) -> Run:
    write(folder, gpu=log())
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return read(folder / "gpu.csv", labels=labels).run


@pytest.mark.parametrize("name", ["labels.json", "gpu.json", "gpu.csv.json"])
def test_labels_of_a_log(tmp_path: Path, name: str) -> None:
    plain = beside(tmp_path, {})
    run = beside(tmp_path, {name: LABELS}, tags={"user": "bob"}, step="1")
    assert (run.name, run.step, dict(run.params)) == ("base", "1", {"lr": "0.1", "amp": "true"})
    assert dict(run.tags) == {"user": "bob"}
    assert (run.id, run.quality) == (plain.id, plain.quality)


def test_the_nearer_file_wins_and_other_json_is_no_file_of_labels(tmp_path: Path) -> None:
    files = {"labels.json": {"tags": {"user": "ada", "project": "x"}}, "gpu.csv.json": {"tags": {"user": "bob"}}}
    assert dict(beside(tmp_path / "both", files).tags) == {"user": "bob", "project": "x"}
    for place, content in enumerate(OTHER_JSON):
        for name, notes in (("gpu.json", 0), ("labels.json", 1)):
            run = beside(tmp_path / f"{place}-{name}", {name: content})
            assert (run.params, run.tags) == ((), ()), content
            assert len([note for note in run.quality.notes if name in note]) == notes, content


def labelled(  # noqa: PLR0913 - each argument is something a test varies
    folder: Path,
    path: str = "train.csv",
    start: float = 60,
    length: float = 3500,
    *,
    text: str = SACCT,
    zone: str | None = None,
    **labels: Any,
) -> Recording:
    """Return a run that a table labels, which starts some seconds after nine, of a log of a name."""
    (folder / "jobs.csv").write_text(text)
    begun = datetime(2026, 10, 3, 9) + timedelta(seconds=start)
    if zone is not None:
        begun = begun.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone))
    moments = (begun + timedelta(seconds=length / 40 * place) for place in range(41))
    rows = [f"{each:%Y/%m/%d %H:%M:%S}.{each.microsecond // 1000:03d}, 0, L4, 90 %, 9 MiB, 9 W" for each in moments]
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("\n".join([HEADER, *rows, ""]))
    return read(folder / path, tz=zone, labels={**labels, "table": folder / "jobs.csv"})


def test_the_row_of_a_run(tmp_path: Path, hold: Hold) -> None:
    for name, given in tomllib.loads(HERE.joinpath("rows.toml").read_text(encoding="utf-8")).items():
        hold(name, partial(labelled, tmp_path, **given))


def test_another_table(tmp_path: Path, hold: Hold) -> None:
    text = "run;Cost Center;owner;AllocTRES\nbase;cc7;ada;gres/gpu=4\nnight/gpu.csv;cc8;bob;\nnight;cc9;eve\n"
    for path in ("base.csv", "night/gpu.csv"):
        hold(path, partial(labelled, tmp_path, path, text=text))
    # a run's own row precedes that of its folder
    text = "run,user\nforms,eve\ndmon,ada\n"
    for path in ("forms/dmon.csv", "forms/gpu.csv"):
        hold(f"{path} of forms", partial(labelled, tmp_path, path, text=text))
    # a folder is named as it is typed
    for named in ("1", "./runs/w8/1/", "{}/runs/w8/1", "w8/1/gpu.csv"):
        text = f"run,user\n{named.format(tmp_path)},ada\nw8,eve\n.,eve\n"
        hold(f"named {named}", partial(labelled, tmp_path, "runs/w8/1/gpu.csv", text=text))
    text = "job,user,node,start,end\n" + "".join(
        f'81,{user},"n[1-2]",2026-10-03 {start}:00:00,2026-10-03 {start + 1}:00:00\n'
        for user, start in (("ada", 9), ("bob", 12))
    )
    hold("a job twice, by its machine", partial(labelled, tmp_path, text=text, tags={"host": "n1"}))
    hold("a job twice, by its number", partial(labelled, tmp_path, "job81.csv", 3.1 * 3600, text=text))
    for nodes, hosts in (
        ("gpu[01-03,7],login", ("gpu01", "gpu03", "gpu7", "login", "gpu04", "gpu1")),
        ("r[1-2]n[08-09]", ("r1n08", "r2n09", "r1n8", "r3n08")),
    ):
        text = f"JobID|NodeList|Start|End\n7|{nodes}|2026-10-03T09:00:00|2026-10-03T10:00:00\n"
        for host in hosts:
            hold(f"{host} of {nodes}", partial(labelled, tmp_path, text=text, tags={"host": host}))


def test_times_are_compared_in_one_base(tmp_path: Path, hold: Hold) -> None:
    for named_zone, start, end in read_table(HERE / "times.tsv"):
        zone = None if named_zone == "-" else named_zone
        text = f"JobID|NodeList|Start|End\n7|gpu01|{start}|{end}\n"
        hold(f"{start} in {zone}", partial(labelled, tmp_path, text=text, zone=zone, tags={"host": "gpu01"}))


def test_a_table_of_nothing_is_refused(tmp_path: Path) -> None:
    many = "JobID|NodeList\n" + "".join(f"{job}|m{job}[0-99998]\n" for job in range(30))
    write(tmp_path, gpu=log())
    for text in ("", "a,b\n1,2\n", "4411|resnet|ada\n", many, gzip.compress(SACCT.encode())[:-20]):
        (path,) = write(tmp_path, ".csv.gz" if isinstance(text, bytes) else ".csv", jobs=text)
        with pytest.raises(SettingsError) as refused:
            read(tmp_path / "gpu.csv", labels={"table": path})
        assert refused.value.where.startswith(str(path)), text
    with pytest.raises(SettingsError):
        read(tmp_path / "gpu.csv", labels={"table": tmp_path / "none.csv"})


METRICS = read_table(HERE / "metrics.tsv")
MACHINE = monitored(range(10_000, 1_040_000, 10_000), {"gpu_0_utilization_percentage": 90.0})


def named(sort: str) -> list[str]:
    return [name for each, name, *_ in METRICS if each == sort]


@pytest.mark.parametrize("way", ["falls", "rises"])
def test_which_way_an_evaluation_gets_better(way: str) -> None:
    job = recording(util=[95] * 3000)
    better = [float(point if way == "rises" else -point) for point in range(1, 12)]
    for values, expected in ((better, 0), (better[::-1], 1)):
        for name in named(way):
            points = [(250.0 * place + 20, name, value) for place, value in enumerate(values)]
            analysis = analyze(with_training(job, points))
            assert len(findings_of(analysis, "no_progress")) == expected, name
            assert not unjudged(analysis, "no_progress"), name


def runs(folder: Path, metrics: list[dict[str, list[Point]]]) -> list[Run]:
    """Return runs of an MLflow store that logged such metrics beside the machine."""
    made = [
        Made(id=run_id(number), name=f"{number:02}", series=MACHINE | own, end=START + 1_030_000)
        for number, own in enumerate(metrics, 1)
    ]
    database(folder / "mlflow.db", made)
    found = gpureport.read(f"mlflow:{folder / 'mlflow.db'}")
    for each in found:
        times: list[Any] = each.training.column("timestamp").to_pylist()
        assert times == sorted(times)
    return sorted((each.run for each in found), key=lambda run: run.name)


def points(*values: float, every: float = 10) -> list[Point]:
    return [(START + round(1000 * every * place), value, place) for place, value in enumerate(values)]


def test_what_is_no_evaluation_and_what_a_metric_counts(tmp_path: Path) -> None:
    job = recording(util=[95] * 3000)
    for name in named("none"):
        analysis = analyze(with_training(job, [(250.0 * place + 20, name, 1.0 + place) for place in range(12)]))
        assert unjudged(analysis, "no_progress"), name
    work = {name: unit for sort, name, *units in METRICS if sort == "counts" for unit in units}
    found_runs = runs(tmp_path, [{name: points(2.0, 2.0, 2.0)} for name in work])
    assert {name: run.work.unit if run.work else "-" for name, run in zip(work, found_runs, strict=True)} == work


def test_work_is_the_throughput_over_the_time_it_was_logged_for(tmp_path: Path) -> None:
    paused = [*points(2.0, 2.0, float("nan"), 2.0), (START + 1_030_000, 2.0, 4)]
    both = {"eval_samples_per_second": points(9.0, 9.0), "train_steps_per_second": points(9.0, 9.0)}
    both["train_samples_per_second"] = points(1.0, 1.0, 1.0)
    none = [points(), points(1.0), points(0.0, 0.0), points(*[float("nan")] * 3)]
    first, second, *rest = runs(tmp_path, [{"it/s": paused}, both, *({"it/s": each} for each in none)])
    assert first.work is not None
    # the first point speaks for time before the recording
    assert first.work.amount == pytest.approx(20 + 40 + 20, abs=0.5)
    assert first.work.unit == "steps"
    # samples count before steps, and training before validation
    assert second.work is not None
    assert second.work.amount == pytest.approx(20, abs=0.5)
    assert second.work.unit == "samples"
    assert [run.work for run in rest] == [None] * 4
