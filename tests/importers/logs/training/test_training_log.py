"""Training metrics in the store: kept, seen when damaged, taken later; what is read of them is held by pairs."""

from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.errors import StoreError
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.reading import IMPORTER_VERSION, Reading, find_runs
from gpureport.importers.sources import identify_training_logs
from gpureport.store import Store
from tests.local_place import local
from tests.support.logs import log

LIGHTNING = "epoch,step,train_loss,val_loss\n0,10,2.5,\n0,20,,2.1\n1,30,nan,\n"


def reading(folder: Path, *trainings: Path) -> Reading:
    (folder / "gpu.csv").write_text(log(20))
    (inputs,) = find_runs(folder / "gpu.csv")
    return Reading(inputs, ReadOptions(), Labels(), training=identify_training_logs(trainings))


def test_the_store_keeps_it_and_sees_damage(tmp_path: Path) -> None:
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
        with pytest.raises(StoreError):
            store.read(entry)
    assert store.write(reading(tmp_path), IMPORTER_VERSION).run.id == entry.run.id
    assert not path.exists()


def test_ingest_takes_it_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gpu.csv").write_text(log(20))
    (tmp_path / "metrics.csv").write_text(LIGHTNING)
    given = ["ingest", str(tmp_path / "gpu.csv"), "--store", str(tmp_path / "store")]
    said = []
    for more in ([], ["--training", str(tmp_path / "metrics.csv")], []):
        with pytest.raises(SystemExit, match="0"):
            main([*given, *more])
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 3
    store = Store(tmp_path / "store")
    (stored,) = store.index().runs
    assert len(store.read(store.named(stored.run.id)).training) == 6
