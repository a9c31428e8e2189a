"""Labels of runs by name, number of the job, machine and time; and training metrics recognised by their names."""

import gzip
import json
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

LABELS = {"name": "base", "step": 0, "params": {"lr": 0.10, "amp": True, "seed": None}, "tags": {"user": "ada"}}
OTHER_JSON: tuple[Any, ...] = (
    "{",
    "[1]",
    {},
    {"name": "x", "value": 1},
    {"schema": "gpureport.record/1", "params": {}, "tags": {}},
    {"epoch": 1.0, "global_step": 5, "log_history": []},
    {"hostname": "a", "query_time": "b", "gpus": []},
    {"sysstat": {"hosts": []}},
    {"params": {"optimizer": {"lr": 1}}},
    {"tags": ["a"]},
)
SACCT = Path(__file__).with_name("jobs.txt").read_text(encoding="utf-8")
HOUR = 3600


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
    cases: dict[str, dict[str, Any]] = {
        # the number of a job, in the name, the folder, a tag or a param
        "in the name": {"path": "slurm-4411.csv"},
        "of an array, in the name": {"path": "gpu_4413_7.csv", "start": 3 * HOUR},
        "in the folder": {"path": "jobs/4412/gpu.csv"},
        "in a tag": {"tags": {"job": "4414"}},
        "in a param": {"params": {"SLURM_JOB_ID": "4415"}},
        # a number that is not the job's: of another time, of another machine, a part of a longer one
        "of another time": {"path": "step-4411.csv", "start": 20 * HOUR},
        "of another machine": {"path": "seed-4411.csv", "tags": {"host": "gpu03"}},
        "a part of a longer one": {"path": "14411.csv"},
        "in no row": {"tags": {"job": "9999", "host": "gpu03"}},
        # machine and time
        "machine and time": {"tags": {"host": "GPU01.cluster.example"}},
        "the node in a tag": {"tags": {"node": "gpu01"}},
        "a job that goes on": {"tags": {"host": "gpu03"}, "start": 3 * HOUR, "length": 9 * HOUR},
        "a machine at another time": {"tags": {"host": "gpu01"}, "start": 2 * HOUR},
        "a machine in a name": {"path": "gpu02.csv"},
        "on a shared machine": {"tags": {"host": "gpu04"}, "start": 300, "length": 600},
        "no number and no machine": {"path": "other.csv"},
    }
    for name, given in cases.items():
        hold(name, partial(labelled, tmp_path, **given))


def test_another_table(tmp_path: Path, hold: Hold) -> None:
    text = "run;Cost Center;owner;AllocTRES\nbase;cc7;ada;gres/gpu=4\nnight/gpu.csv;cc8;bob;\nnight;cc9;eve\n"
    for path in ("base.csv", "night/gpu.csv"):
        hold(path, partial(labelled, tmp_path, path, text=text))
    # a folder is named as it is typed
    for named in ("1", "./runs/w8/1/", "{}/runs/w8/1", "w8/1/gpu.csv"):
        text = f"run,user\n{named.format(tmp_path)},ada\nw8,eve\n.,eve\n"
        hold(f"named {named}", partial(labelled, tmp_path, "runs/w8/1/gpu.csv", text=text))
    text = "job,user,node,start,end\n" + "".join(
        f'81,{user},"n[1-2]",2026-10-03 {start}:00:00,2026-10-03 {start + 1}:00:00\n'
        for user, start in (("ada", 9), ("bob", 12))
    )
    hold("a job twice, by its machine", partial(labelled, tmp_path, text=text, tags={"host": "n1"}))
    hold("a job twice, by its number", partial(labelled, tmp_path, "job81.csv", 3.1 * HOUR, text=text))
    for nodes, hosts in (
        ("gpu[01-03,7],login", ("gpu01", "gpu03", "gpu7", "login", "gpu04", "gpu1")),
        ("r[1-2]n[08-09]", ("r1n08", "r2n09", "r1n8", "r3n08")),
    ):
        text = f"JobID|NodeList|Start|End\n7|{nodes}|2026-10-03T09:00:00|2026-10-03T10:00:00\n"
        for host in hosts:
            hold(f"{host} of {nodes}", partial(labelled, tmp_path, text=text, tags={"host": host}))


def test_times_are_compared_in_one_base(tmp_path: Path, hold: Hold) -> None:
    for zone, start, end in (
        (None, "2026-10-03T09:00:00", "2026-10-03T10:00:00"),
        (None, "2026-10-03T09:00:00+0200", "2026-10-03T10:00:00+0200"),
        ("UTC", "2026-10-03T09:00:00", "2026-10-03T10:00:00"),
        ("UTC", "2026-10-03T11:00:00+0200", "2026-10-03T12:00:00+0200"),
        ("UTC", "1791018000", "1791021600"),
        ("Europe/Berlin", "2026-10-03T11:00:00", "2026-10-03T12:00:00"),
    ):
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


FALLS = (
    *("val_loss", "valLoss", "eval/perplexity", "validation/error", "eval_perplexity", "test.rmse", "dev_wer"),
    *("val/nll", "eval_fid"),
)
RISES = ("test.acc", "val/mAP", "eval_rougeL", "val_precision", "valid_acc", "dev/f1", "eval_bleu", "valAUC")
NO_EVALUATION = (
    *("loss", "train/acc", "top1", "metrics/mAP50(B)", "val/step_time", "eval_samples_per_second", "eval_runtime"),
    *("val_loss_step", "interval_loss", "latest_acc", "lossless", "epoch", "lr", "val_loss_scale", "eval_error_count"),
    *("eval_loss_time", "val_aux_loss_weight", "val", ""),
)
"""Training, speed, single batches, and parts that only look alike."""
WORK = {
    "samples_per_second": "samples",
    "train_samples_per_second": "samples",
    "train/images_per_sec": "samples",
    "tokens/sec": "tokens",
    "perf/tokens_per_sec": "tokens",
    "it/s": "steps",
    "throughput": None,
    "throughput/samples": "samples",
    "steps": None,
    "samples": None,
    "accumulate": None,
    "time": None,
    "s": None,
    "per": None,
    "gpu/s": None,
    "loss": None,
    "step_time": None,
}
"""What a metric of each name counts a second; None where its name does not say."""
MACHINE = monitored(range(10_000, 1_040_000, 10_000), {"gpu_0_utilization_percentage": 90.0})


@pytest.mark.parametrize("rises", [False, True])
def test_which_way_an_evaluation_gets_better(rises: bool) -> None:
    job = recording(util=[95] * 3000)
    better = [float(point if rises else -point) for point in range(1, 12)]
    for names, values, expected in (
        (RISES if rises else FALLS, better, 0),
        (RISES if rises else FALLS, better[::-1], 1),
    ):
        for name in names:
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
    for name in NO_EVALUATION:
        analysis = analyze(with_training(job, [(250.0 * place + 20, name, 1.0 + place) for place in range(12)]))
        assert unjudged(analysis, "no_progress"), name
    found_runs = runs(tmp_path, [{name: points(2.0, 2.0, 2.0)} for name in WORK])
    assert {name: run.work and run.work.unit for name, run in zip(WORK, found_runs, strict=True)} == WORK


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
