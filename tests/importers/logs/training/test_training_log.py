"""What training loops write of their metrics becomes one long table beside the series."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.cli import main
from gpureport.errors import GpureportError, SourceError, StoreError
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.importers.reading import folders
from gpureport.series_table import TRAINING_SCHEMA
from gpureport.store import Store
from gpureport.testing import Recording
from tests.importers.written_logs import log
from tests.local_place import local

LIGHTNING = "epoch,step,train_loss,val_loss\n0,10,2.5,\n0,20,,2.1\n1,30,nan,\n"
BOARD = "Wall time,Step,Value\n1773478801.5,1,0.5\n1773478805.5,2,0.25\n"
STATE = {
    "global_step": 20,
    "log_history": [{"epoch": 0.1, "loss": 2.5, "step": 10}, {"epoch": 0.2, "eval_loss": 2.0, "step": 20}],
}


def reading(folder: Path, *trainings: Path, tz: str | None = None, strict: bool = False) -> Reading:
    """Return a log of twenty seconds with training logs, not yet read."""
    (folder / "gpu.csv").write_text(log(20))
    (inputs,) = find_runs(folder / "gpu.csv")
    return Reading(
        inputs, ReadOptions(tz=tz), Labels(), strict=strict, training=folders.identify_training_logs(trainings)
    )


def read(folder: Path, name: str, content: str, tz: str | None = None) -> Recording:
    """Return a log of twenty seconds with a training log of this content."""
    (folder / name).write_text(content)
    recording = reading(folder, folder / name, tz=tz).recording()
    assert recording.run.quality.accounted
    assert recording.training.schema == TRAINING_SCHEMA
    return recording


def points(recording: Recording) -> list[tuple[str, int | None, float]]:
    """Return name, step and value of every point."""
    return [(row["name"], row["step"], row["value"]) for row in recording.training.to_pylist()]


def times(recording: Recording) -> list[str | None]:
    """Return the times of the points."""
    return [
        None if row["timestamp"] is None else row["timestamp"].isoformat()[11:]
        for row in recording.training.to_pylist()
    ]


def test_lightning(tmp_path: Path) -> None:
    """Empty cells are no points, a loss that became NaN is one; without times the steps are what is known."""
    recording = read(tmp_path, "metrics.csv", LIGHTNING)
    found = points(recording)
    assert found[:5] == [
        *(("epoch", 10, 0.0), ("train_loss", 10, 2.5), ("epoch", 20, 0.0), ("val_loss", 20, 2.1), ("epoch", 30, 1.0))
    ]
    assert (found[5][0], math.isnan(found[5][2])) == ("train_loss", True)
    assert times(recording) == [None] * 6
    assert recording.run.quality.notes == (
        "The training log states no times: its points are known by their steps only.",
    )
    assert [source.kind for source in recording.run.sources] == ["nvidia_smi", "training"]


def test_trainer_state(tmp_path: Path) -> None:
    """Pretty or on one line, with a key beside the history."""
    for indent in (None, 2):
        recording = read(tmp_path, "trainer_state.json", json.dumps(STATE, indent=indent))
        assert points(recording) == [
            *(("epoch", 10, 0.1), ("loss", 10, 2.5), ("epoch", 20, 0.2), ("eval_loss", 20, 2.0))
        ]


def test_tensorboard(tmp_path: Path) -> None:
    """Its export names the metric in the file's name and counts seconds since 1970, so the log needs its zone."""
    with pytest.raises(SourceError, match=r"its times are UTC, those of .*gpu\.csv name no zone"):
        read(tmp_path, "run-.-tag-val_loss.csv", BOARD)
    recording = read(tmp_path, "run-.-tag-val_loss.csv", BOARD, "UTC")
    assert points(recording) == [("val_loss", 1, 0.5), ("val_loss", 2, 0.25)]
    assert times(recording) == ["09:00:01.500000", "09:00:05.500000"]


def test_other_rows(tmp_path: Path) -> None:
    """Elapsed seconds count from the first sample; JSON lines and local stamps are read; words are no metric."""
    recording = read(tmp_path, "a.csv", "elapsed,step,loss,note\n1.5,1,3,x\n2.5,2,2,y\n")
    assert times(recording) == ["09:00:01.500000", "09:00:02.500000"]
    recording = read(tmp_path, "a.jsonl", '{"time": "2026-03-14 10:00:03", "loss": 1}\n', "Europe/Berlin")
    assert (times(recording), points(recording)) == (["09:00:03"], [("loss", None, 1.0)])


def test_damaged_rows_are_counted(tmp_path: Path) -> None:
    """A line that is no row, a time that is none or of another kind, and a line the log ends in."""
    content = "time,loss\n2026-03-14 09:00:03,1\n2026-03-14 09:00:04\nlater,2\n1773478801,3\n2026-03-14 09:00:05,4"
    quality = read(tmp_path, "a.csv", content).run.quality
    assert [(entry.reason, entry.rows) for entry in quality.rejected] == [
        *(("cut last line", 1), ("malformed time", 1), ("no time stamp", 1), ("wrong number of cells", 1))
    ]
    with pytest.raises(SourceError, match="lines were rejected"):
        reading(tmp_path, tmp_path / "a.csv", strict=True).recording()


@pytest.mark.parametrize(
    "content", ["loss\n1\n", "just words\n", "step,loss\n", '{"a": 1\n', "{}\n", "step,loss\n1,x\n"]
)
def test_what_holds_no_metric_is_refused(tmp_path: Path, content: str) -> None:
    """In one line that names the file."""
    with pytest.raises(SourceError, match=r"a\.csv: (?:not a known training log|it holds no training metric)"):
        read(tmp_path, "a.csv", content)


@given(
    content=st.one_of(st.text(), st.sampled_from([LIGHTNING, BOARD, json.dumps(STATE)]), st.binary()),
    cut=st.floats(0, 1),
)
def test_any_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes, cut: float
) -> None:
    """Nothing but the project's own errors comes out."""
    path = tmp_path_factory.mktemp("training") / "metrics.csv"
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data[: round(cut * len(data))])
    try:
        recording = reading(path.parent, path, tz="UTC").recording()
    except GpureportError:
        return
    assert recording.run.quality.accounted
    assert len(recording.training)


def test_the_store_keeps_it_and_sees_damage(tmp_path: Path) -> None:
    """What was stored is what was read; a flipped bit is an error; a run without it has no such file."""
    (tmp_path / "metrics.csv").write_text(LIGHTNING)
    store = Store(tmp_path / "store")
    entry = store.write(reading(tmp_path, tmp_path / "metrics.csv"), IMPORTER_VERSION)
    whole = reading(tmp_path, tmp_path / "metrics.csv").recording()
    assert store.read(entry).training.drop_columns(["value"]).equals(whole.training.drop_columns(["value"]))
    path = local(entry.folder) / "training.parquet"
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        assert not store.intact(entry)
        with pytest.raises(StoreError, match="damaged"):
            store.read(entry)
    assert store.write(reading(tmp_path), IMPORTER_VERSION).run.id == entry.run.id
    assert not path.exists()


def test_ingest_takes_it_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is stored without it gets it, and keeps it when the log is named alone again."""
    (tmp_path / "gpu.csv").write_text(log(20))
    (tmp_path / "metrics.csv").write_text(LIGHTNING)
    given_ = ["ingest", str(tmp_path / "gpu.csv"), "--store", str(tmp_path / "store")]
    said = []
    for more in ([], ["--training", str(tmp_path / "metrics.csv")], []):
        with pytest.raises(SystemExit, match="0"):
            main([*given_, *more])
        said.append(capsys.readouterr().out.partition(":")[0].replace(tmp_path.name, "gpu"))
    assert said == ["Stored gpu", "Stored gpu again", "gpu is stored already"]
    (entry,) = Store(tmp_path / "store").entries()
    assert len(Store(tmp_path / "store").read(entry).training) == 6
