"""Servers reached through MLflow's own client: Databricks, and those whose requests must be signed."""

import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from gpureport.errors import SourceError
from gpureport.importers.mlflow.server import Answer, Server
from gpureport.importers.mlflow.stores import RunInfo

_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


def load_mlflow(where: str, module: str = "") -> Any:
    """Return a module of MLflow, which is an extra and takes seconds to load, told to send nothing about its use."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        importlib.import_module("mlflow")
        return importlib.import_module(f"mlflow{module}")
    except ImportError as error:
        hint = "pip install 'gpureport[mlflow]'"
        raise SourceError(where, "it needs MLflow's own client", hint, code="not_installed") from error


@contextmanager
def _explain(where: str) -> Iterator[None]:
    exceptions = load_mlflow(where, ".exceptions")
    try:
        yield
    except exceptions.MlflowException as error:
        hint = "check the address and the credentials"
        raise SourceError(where, " ".join(str(error).split()), hint, code="request_failed") from error


def call_client(uri: str, where: str, method: str, *arguments: object, **options: object) -> Any:
    """Return what a method of MLflow's client returns for a store."""
    with _explain(where):
        return getattr(load_mlflow(where).MlflowClient(uri), method)(*arguments, **options)


class SignedServer(Server):
    """A server to which requests go as MLflow's client sends them."""

    def __init__(self, uri: str) -> None:
        """Take the URI of a store."""
        super().__init__(uri if uri.startswith("http") else "https://databricks")
        self.uri, self.where = uri, self.where if uri.startswith("http") else uri

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        send = load_mlflow(self.where, ".utils.rest_utils").http_request
        service = load_mlflow(self.where, ".tracking._tracking_service.utils")
        path, _, query = path.partition("?")
        said = {"json": json.loads(content)} if content else {"params": dict(parse_qsl(query))}
        with _explain(self.where):
            answer = send(service._get_store(self.uri).get_host_creds(), path, method, **said)
        return answer.status_code, answer.headers, answer.content

    def _copy(self, run: RunInfo, name: str, folder: Path) -> Path:
        return Path(call_client(self.uri, self.where, "download_artifacts", run.id, name, str(folder)))
