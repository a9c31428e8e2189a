"""Reads runs of MLflow: its SQLite database, its file store, and its server."""

from pathlib import Path
from typing import ClassVar

from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection
from gpureport.importers.trackers.mlflow import locators
from gpureport.importers.trackers.mlflow.local import experiment_folders
from gpureport.importers.trackers.mlflow.metric_names import parse_names
from gpureport.importers.trackers.mlflow.mlflow_run import MlflowRun
from gpureport.importers.trackers.mlflow.run_selection import list_runs, select_runs
from gpureport.importers.trackers.mlflow.run_store import RunInfo


class Mlflow:
    """The reader of MLflow's stores."""

    kind: ClassVar[str] = "mlflow"
    title: ClassVar[str] = "MLflow"
    recognised_by: ClassVar[str] = "A database or file store of MLflow by its content, or a locator `mlflow:STORE`."
    sample: ClassVar[str] = ""

    def claims(self, source: str) -> bool:
        """Return whether a source is a locator or a store of MLflow."""
        return locators.is_mlflow_source(source)

    def keeps_files(self, folder: Path) -> bool:
        """Return whether a folder is that of the artifacts of one run."""
        return experiment_folders.keeps_artifacts(folder)

    def refuse_folder(self, folder: Path) -> None:
        """Refuse the folder of artifacts that lies beside a database."""
        experiment_folders.refuse_artifacts(folder, "mlflow:STORE")

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs of a store that are meant, and those left out."""
        store, named = locators.open_store(source)
        found, skipped = select_runs(store, named, selection)
        return SelectedRuns(runs=tuple(MlflowRun(store, info, selection) for info in found), skipped=tuple(skipped))

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, without reading series."""
        store, _ = locators.open_store(source)
        return [_listed(info) for info in list_runs(store, selection)]


def _listed(info: RunInfo) -> ListedRun:
    started = None if info.started is None else info.started * 1000
    if info.fault is not None:
        return ListedRun(id=info.id, name=info.id, status=info.status, started=started, fault=info.fault)
    found = parse_names(info.hardware)
    gpus = {(name.node, name.index) for name in found if name.index is not None}
    nodes = {name.node for name in found if name.node is not None}
    parts = [f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'}"] if gpus else []
    parts += [f"{len(nodes)} nodes"] if nodes else []
    parts += ["host"] if any(name.index is None for name in found) else []
    parts += [f"{len(info.hardware)} hardware series"] if info.hardware and not found else []
    parts += [f"nested in {info.parent}"] if info.parent else []
    return ListedRun(
        id=info.id,
        name=info.name,
        status=info.status,
        started=started,
        holds=", ".join(parts) or "no hardware series",
        is_deleted=info.deleted,
    )
