"""Reads stores that need MLflow's own client: Databricks, and servers with signed requests."""

import atexit
import importlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.trackers.mlflow.run_selection import no_such_experiment
from gpureport.importers.trackers.mlflow.run_store import (
    HARDWARE_PREFIXES,
    MetricSeries,
    RunInfo,
    RunLabels,
    order_points,
)

_THREADS = 8
_PAGE = 1_000
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


def import_mlflow() -> Any:
    """Return MLflow, told before it starts to send nothing about its use.

    Raises:
        ImportError: when it is not installed.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    return importlib.import_module("mlflow")


class ClientStore:
    """A store behind MLflow's client."""

    kind: ClassVar[str] = "server"

    def __init__(self, uri: str, where: str) -> None:
        """Take a store.

        Args:
            uri: its URI.
            where: what a person can call it.
        """
        self._uri = uri
        self.where = where

    @cached_property
    def _client(self) -> Any:
        """MLflow's client, imported here alone: it is an extra, and takes seconds.

        Raises:
            SourceError: when it is not installed.
        """
        try:
            return import_mlflow().MlflowClient(self._uri)
        except ImportError as error:
            raise SourceError(
                self.where, "it needs MLflow's own client", "pip install 'gpureport[mlflow]'", code="not_installed"
            ) from error

    def _call(self, name: str, *arguments: object, **options: object) -> Any:
        """Return what a method of the client returns.

        Raises:
            SourceError: when it fails.
        """
        call = getattr(self._client, name)
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - an extra, installed where there is a client

        try:
            return call(*arguments, **options)
        except MlflowException as error:
            if error.error_code == "INVALID_PARAMETER_VALUE" and options.get("filter_string"):
                raise SettingsError(
                    "--filter", str(error), "see MLflow's page on searching runs", code="bad_filter"
                ) from error
            raise SourceError(
                self.where, str(error), "check the address and the credentials", code="request_failed"
            ) from error

    @property
    def version(self) -> str:
        """Nothing: the client does not say what it talks to."""
        return ""

    @cached_property
    def _experiments(self) -> dict[str, Any]:
        return {each.experiment_id: each for each in self._paged("search_experiments", view_type=3)}

    def _paged(self, name: str, **options: object) -> list[Any]:
        found: list[Any] = []
        token: str | None = None
        while True:
            page = self._call(name, max_results=_PAGE, page_token=token, **options)
            found += page
            token = page.token
            if not token:
                return found

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, unless a filter is given."""
        known = self._experiments
        ids = [key for key, each in known.items() if experiment in {None, key, each.name}]
        if experiment is not None and not ids:
            raise no_such_experiment(self.where, experiment, (each.name for each in known.values()))
        options = {"filter_string": wanted or "", "run_view_type": 1 if wanted else 3}
        found = self._paged("search_runs", experiment_ids=ids, order_by=["attributes.start_time DESC"], **options)
        return [self._info(each) for each in found]

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id."""
        try:
            return self._info(self._call("get_run", run_id))
        except SourceError as error:
            if "RESOURCE_DOES_NOT_EXIST" in error.what or "not found" in error.what:
                return None
            raise

    def _info(self, run: Any) -> RunInfo:
        info, data = run.info, run.data
        experiment = self._experiments.get(info.experiment_id)
        return RunInfo(
            id=info.run_id,
            name=info.run_name or data.tags.get("mlflow.runName", ""),
            status=info.status,
            started=info.start_time,
            ended=info.end_time,
            experiment_id=info.experiment_id,
            experiment="" if experiment is None else experiment.name,
            artifact_uri=info.artifact_uri or "",
            deleted=info.lifecycle_stage == "deleted",
            parent=data.tags.get("mlflow.parentRunId"),
            hardware=tuple(sorted(key for key in data.metrics if key.startswith(HARDWARE_PREFIXES))),
        )

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params, tags and last values of a run."""
        data = self._call("get_run", run.id).data
        return RunLabels(
            params=tuple(sorted(data.params.items())),
            tags=tuple(sorted(data.tags.items())),
            latest=tuple(sorted(data.metrics.items())),
        )

    def series(self, run: RunInfo) -> list[MetricSeries]:
        """Return all metrics of a run, by name."""
        keys = [key for key, _ in self.labels(run).latest]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="mlflow") as pool:
            return list(pool.map(lambda key: self._history(run.id, key), keys))

    def _history(self, run_id: str, key: str) -> MetricSeries:
        points = self._call("get_metric_history", run_id, key)
        return order_points(
            key,
            np.array([each.timestamp for each in points], dtype=np.int64),
            np.array([each.value for each in points], dtype=np.float64),
            np.array([each.step for each in points], dtype=np.int64),
        )

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts."""
        return sorted(each.path for each in self._call("list_artifacts", run.id, folder) if not each.is_dir)

    def fetch_artifact(self, run: RunInfo, name: str) -> Path:
        """Return a local file with the content of an artifact, removed when the program ends."""
        folder = Path(tempfile.mkdtemp(prefix="gpureport-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(self._call("download_artifacts", run.id, name, str(folder)))

    def publish(self, run: RunInfo, file: Path, folder: str) -> None:
        """Put a file into a folder of a run's artifacts."""
        self._call("log_artifact", run.id, str(file), folder)

    def tag(self, run: RunInfo, key: str, value: str) -> None:
        """Set a tag of a run."""
        self._call("set_tag", run.id, key, value)

    def log_figures(self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], time: int) -> None:
        """Log one value of each metric, at a time in milliseconds, and set tags of a run."""
        from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - an extra

        values = [Metric(key, value, time, 0) for key, value in metrics.items()]
        self._call("log_batch", run.id, metrics=values, tags=[RunTag(key, text) for key, text in tags.items()])

    def remove_tag(self, run: RunInfo, key: str) -> None:
        """Remove a tag of a run."""
        self._call("delete_tag", run.id, key)
