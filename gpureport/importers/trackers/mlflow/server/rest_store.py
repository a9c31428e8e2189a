"""Reads a server of MLflow through its documented REST API, page by page, with several requests at a time."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import numpy as np

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.trackers.mlflow.run_selection import no_such_experiment
from gpureport.importers.trackers.mlflow.run_store import (
    HARDWARE_PREFIXES,
    MetricSeries,
    RunInfo,
    RunLabels,
    RunStore,
    keep_readable_time,
    order_points,
)
from gpureport.importers.trackers.mlflow.server import server_settings
from gpureport.importers.trackers.mlflow.server.connection_errors import not_mlflow_error
from gpureport.importers.trackers.mlflow.server.server_answers import InvalidRequestError, MissingError
from gpureport.importers.trackers.mlflow.server.transport import Transport
from gpureport.limits import MOST_PAGES

_API = "/api/2.0/mlflow"
_PAGE = 25_000
"""Points per page: the most that every server allows. Without a limit, a server may build the whole history."""
_RUNS, _EXPERIMENTS, _TOGETHER = 1_000, 1_000, 100
_THREADS = 8
_PARENT = "mlflow.parentRunId"
T = TypeVar("T")


def open_server(url: str) -> RunStore:
    """Return the store of a server; it uses MLflow's own client if requests must be signed.

    Raises:
        SourceError: when it is no URL, or the client is needed and not installed.
    """
    if os.environ.get("MLFLOW_TRACKING_AUTH") or os.environ.get("MLFLOW_TRACKING_AWS_SIGV4", "").lower() == "true":
        from gpureport.importers.trackers.mlflow.server.client_store import ClientStore  # noqa: PLC0415 - only here

        return ClientStore(url, Transport(url, server_settings.ServerSettings()).where)
    return RestStore(Transport(url, server_settings.read_server_settings()))


class RestStore:
    """A server."""

    kind: ClassVar[str] = "server"

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.where = transport.where

    @cached_property
    def version(self) -> str:
        """The version it states; empty without one."""
        try:
            text = self.transport.content("/version").decode(errors="replace").strip()
        except SourceError:
            return ""
        return f"MLflow {text}" if text[:1].isdigit() and len(text) < 20 else ""  # noqa: PLR2004 - longer is a page

    @cached_property
    def _experiments(self) -> dict[str, dict[str, Any]]:
        asked = {"max_results": _EXPERIMENTS, "view_type": "ALL"}
        found = self._pages(f"{_API}/experiments/search", asked, "experiments")
        return {str(each["experiment_id"]): each for each in found}

    def _pages(self, path: str, asked: dict[str, Any], what: str) -> Iterator[dict[str, Any]]:
        token = ""
        for _ in range(MOST_PAGES):
            page = self.transport.post(path, asked | ({"page_token": token} if token else {}))
            yield from page.get(what, ())
            token = page.get("next_page_token", "")
            if not token:
                return
        raise self._endless_error(what)

    def _endless_error(self, what: str) -> SourceError:
        return SourceError(
            self.where,
            f"its list of {what} does not end after {MOST_PAGES:,} pages",
            "check the server",
            code="endless_list",
        )

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, unless a filter is given."""
        with self._expect_fields():
            return self._all_runs(experiment, wanted)

    def _all_runs(self, experiment: str | None, wanted: str | None) -> list[RunInfo]:
        known = self._experiments
        ids = [key for key, each in known.items() if experiment in {None, key, each.get("name")}]
        if experiment is not None and not ids:
            raise no_such_experiment(self.where, experiment, (str(each.get("name")) for each in known.values()))
        found: list[RunInfo] = []
        for start in range(0, len(ids), _TOGETHER):
            found += self._search_runs(ids[start : start + _TOGETHER], wanted)
        return sorted(found, key=lambda run: (-(run.started or 0), run.id))

    def _search_runs(self, ids: list[str], wanted: str | None) -> list[RunInfo]:
        asked = {
            "experiment_ids": ids,
            "filter": wanted or "",
            "run_view_type": "ACTIVE_ONLY" if wanted else "ALL",
            "max_results": _RUNS,
        }
        try:
            return [self._info(each) for each in self._pages(f"{_API}/runs/search", asked, "runs")]
        except InvalidRequestError as error:
            if wanted is None:
                raise
            raise SettingsError(
                "--filter", error.what, "see MLflow's page on searching runs", code="bad_filter"
            ) from error

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id."""
        try:
            with self._expect_fields():
                return self._info(self._got(run_id))
        except MissingError:
            return None

    @contextmanager
    def _expect_fields(self) -> Iterator[None]:
        """Say of an answer without the fields of MLflow, or with others in their place, that it is none of MLflow's."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise not_mlflow_error(self.where, f"an answer lacks what it must hold: {error!r}") from error

    def _got(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.transport.get(f"{_API}/runs/get", run_id=run_id)["run"]
        return found

    def _info(self, run: dict[str, Any]) -> RunInfo:
        info, data = run["info"], run.get("data", {})
        tags = {each["key"]: each.get("value", "") for each in data.get("tags", ())}
        experiment = self._experiments.get(str(info["experiment_id"]), {})
        return RunInfo(
            id=info["run_id"],
            name=info.get("run_name") or tags.get("mlflow.runName", ""),
            status=info.get("status", ""),
            started=_parse_time(info.get("start_time")),
            ended=_parse_time(info.get("end_time")),
            experiment_id=str(info["experiment_id"]),
            experiment=experiment.get("name", ""),
            artifact_uri=info.get("artifact_uri", ""),
            deleted="deleted" in {info.get("lifecycle_stage"), experiment.get("lifecycle_stage")},
            parent=tags.get(_PARENT),
            hardware=tuple(
                sorted(each["key"] for each in data.get("metrics", ()) if each["key"].startswith(HARDWARE_PREFIXES))
            ),
        )

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params, tags and last values of a run."""
        with self._expect_fields():
            return self._labels(run)

    def _labels(self, run: RunInfo) -> RunLabels:
        data = self._got(run.id).get("data", {})
        params, tags = (
            tuple(sorted((each["key"], each.get("value", "")) for each in data.get(part, ())))
            for part in ("params", "tags")
        )
        latest = tuple((each["key"], float(each.get("value", 0))) for each in data.get("metrics", ()))
        return RunLabels(params=params, tags=tags, latest=latest)

    def series(self, run: RunInfo) -> list[MetricSeries]:
        """Return all metrics of a run, by name."""
        keys = sorted(key for key, _ in self.labels(run).latest)
        try:
            with self._expect_fields():
                return _read_in_threads(lambda key: self._history(run.id, key), keys)
        finally:
            self.transport.close()

    def _history(self, run_id: str, key: str) -> MetricSeries:
        parts, token = [], ""
        for _ in range(MOST_PAGES):
            asked: dict[str, str | int] = {"run_id": run_id, "metric_key": key, "max_results": _PAGE}
            page = self.transport.get(
                f"{_API}/metrics/get-history", **asked, **({"page_token": token} if token else {})
            )
            points = page.get("metrics", ())
            parts.append(
                (
                    np.array([int(each["timestamp"]) for each in points], dtype=np.int64),
                    # NaN and infinities come as text
                    np.array([float(each.get("value", 0)) for each in points], dtype=np.float64),
                    np.array([int(each.get("step", 0)) for each in points], dtype=np.int64),
                )
            )
            token = page.get("next_page_token", "")
            if not token:
                times, values, steps = (np.concatenate(part) for part in zip(*parts, strict=True))
                return order_points(key, times, values, steps)
        raise self._endless_error("points")

    def _list_artifacts(self, run: RunInfo, folder: str) -> list[dict[str, Any]]:
        found = self.transport.get(f"{_API}/artifacts/list", run_id=run.id, path=folder).get("files", ())
        return [each for each in found if not each.get("is_dir")]

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts."""
        return sorted(each["path"] for each in self._list_artifacts(run, folder))

    def fetch_artifact(self, run: RunInfo, name: str) -> Path:
        """Return a local file with the content of an artifact, removed when the program ends."""
        folder = Path(tempfile.mkdtemp(prefix="gpureport-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = folder / Path(name).name
        path.write_bytes(self.transport.content(f"/get-artifact?run_uuid={quote(run.id)}&path={quote(name)}"))
        return path

    def tag(self, run: RunInfo, key: str, value: str) -> None:
        """Set a tag of a run."""
        self.transport.post(f"{_API}/runs/set-tag", {"run_id": run.id, "key": key, "value": value})

    def log_figures(self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], time: int) -> None:
        """Log one value of each metric, at a time in milliseconds, and set tags of a run."""
        content = {
            "run_id": run.id,
            "metrics": [{"key": key, "value": value, "timestamp": time, "step": 0} for key, value in metrics.items()],
            "tags": [{"key": key, "value": text} for key, text in tags.items()],
        }
        self.transport.post(f"{_API}/runs/log-batch", content)

    def remove_tag(self, run: RunInfo, key: str) -> None:
        """Remove a tag of a run."""
        self.transport.post(f"{_API}/runs/delete-tag", {"run_id": run.id, "key": key})


def _read_in_threads(read: Callable[[str], T], keys: Iterable[str]) -> list[T]:
    """Return what is read for each key, several at a time; the first error ends it."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="mlflow") as pool:
        waiting = [pool.submit(read, key) for key in keys]
        try:
            return [each.result() for each in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _parse_time(said: object) -> int | None:
    """Return a time; MLflow writes 0 for none."""
    return keep_readable_time(int(str(said))) if said else None
