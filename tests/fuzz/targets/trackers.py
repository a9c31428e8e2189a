"""Files of trackers: stores of MLflow, folders and exports of Neptune."""

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from gpureport.importers import Labels, ReadOptions, Selection, TrackedReading, join_attached_logs
from gpureport.importers.protocol.tracker import Tracker
from gpureport.importers.trackers.mlflow import Mlflow
from gpureport.importers.trackers.neptune import Neptune
from tests.fuzz.targets.target import Target
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule

_RUN = Made(id=run_id(1), name="run1", series=monitored(range(0, 20_000, 1000)), start=0, end=20_000)
_PLAN = Schedule(utilization=[[50.0] * 5])


def _write_mlflow(place: Path) -> None:
    folder(place / "store", [_RUN])


def _write_database(place: Path) -> None:
    database(place / "store.db", [_RUN])


def _write_neptune(place: Path) -> None:
    folders.write(place / ".neptune", folders.operations(_PLAN))


def _write_export(place: Path) -> None:
    dumps.write(place, dumps.run(_PLAN))


def _write_scale(place: Path) -> None:
    databases.write(place, databases.recipe([0.0, 50.0, 90.0]))


def _find(place: Path, pattern: str) -> Path:
    return next(iter(sorted(place.rglob(pattern))))


@cache
def _make_seed(kind: str) -> bytes:
    _, pattern, write, _ = _KINDS[kind]
    with TemporaryDirectory() as name:
        write(Path(name))
        return _find(Path(name), pattern).read_bytes()


def _read_tracker(kind: str, path: Path) -> None:
    """Put the content in the place of a file, and read every run; a run with a fault is named with its error."""
    tracker, pattern, _, source = _KINDS[kind]
    _find(path.parent, pattern).write_bytes(path.read_bytes())
    for run in tracker.runs(str(path.parent / source), Selection()).runs:
        if run.fault is None:
            reading = TrackedReading("x", run, ReadOptions(), Labels(), strict=False, join=join_attached_logs)
            assert reading.recording().run.quality.accounted


_MLFLOW: Tracker = Mlflow()
_NEPTUNE: Tracker = Neptune()
_KINDS = {
    "meta.yaml of MLflow": (_MLFLOW, f"{_RUN.id}/meta.yaml", _write_mlflow, "store"),
    "metric of MLflow": (_MLFLOW, "gpu_0_utilization_percentage", _write_mlflow, "store"),
    "database of MLflow": (_MLFLOW, "store.db", _write_database, "store.db"),
    "operations of Neptune": (_NEPTUNE, "data-1.log", _write_neptune, ".neptune"),
    "description of Neptune": (_NEPTUNE, "metadata.json", _write_neptune, ".neptune"),
    "database of Neptune Scale": (_NEPTUNE, databases.NAME, _write_scale, "."),
    "export of Neptune": (_NEPTUNE, "*.parquet", _write_export, "."),
}
TARGETS = tuple(
    Target(
        name=kind,
        make_seeds=partial(lambda kind: [_make_seed(kind)], kind),
        read=partial(_read_tracker, kind),
        prepare=_KINDS[kind][2],
    )
    for kind in _KINDS
)
