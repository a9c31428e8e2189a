"""Reads from an MLflow server through its REST API, page by page, with up to eight concurrent requests.

MLflow's client waits minutes for an unreachable server, so it is used only for Databricks and servers that require
signed requests.
"""

import base64
import configparser
import http.client
import json
import os
import re
import ssl
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import numpy as np

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.mlflow import stores
from gpureport.importers.protocol import RunInfo, Store
from gpureport.parsing import MOST_ANSWER_BYTES, MOST_PAGES, parse_json
from gpureport.redaction import redact_start
from gpureport.regular_files import make_temporary_folder

_FIRST, _LATER, _PAUSE = 10.0, 30.0, 1.0
"""Seconds to wait for the first response, for later responses, and before retrying an overloaded server."""
_OVERLOADED, _REFUSED = {429, 502, 503, 504}, {401, 403}
API = "/api/2.0/mlflow"
_PAGE, _RUNS, _TOGETHER, _THREADS = 25_000, 1_000, 100, 8
"""Points and runs per page, experiments per request, and concurrent requests."""
Answer: TypeAlias = tuple[int, Any, bytes]  # status, headers and body


class Server(Store):
    kind, filters = "server", True

    def __init__(self, url: str) -> None:
        self.where = re.sub(r"(?<=://)[^/]*@", "", re.split("[?#]", url)[0]).rstrip("/")
        self._address: tuple[str, int | None] = "", None
        with suppress(ValueError):
            parts = urlsplit(url)
            self._address = parts.hostname or "", parts.port
        if not self._address[0]:
            raise SourceError(self.where, "not a URL", "give one like http://localhost:5000", code="not_a_url")
        self._prefix, self._secure = parts.path.rstrip("/"), parts.scheme == "https"
        limit = _read_number("MLFLOW_HTTP_REQUEST_TIMEOUT", 0.0)
        self._limit, self._later = limit or _FIRST, limit or _LATER
        self._retries = int(_read_number("MLFLOW_HTTP_REQUEST_MAX_RETRIES", 1.0))
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "gpureport"}
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not user:
            filed = configparser.ConfigParser(interpolation=None)
            with suppress(configparser.Error, UnicodeDecodeError, OSError):
                filed.read(Path.home() / ".mlflow" / "credentials", encoding="utf-8")
            names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
            user, password = (os.environ.get(name) or str(filed.get("mlflow", name, fallback="")) for name in names)
        # as in MLflow, a user name and password take precedence over a token
        if user and password:
            encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        elif token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
            self._headers["Authorization"] = f"Bearer {token}"
        if workspace := os.environ.get("MLFLOW_WORKSPACE"):
            self._headers["X-MLFLOW-WORKSPACE"] = workspace
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, list, map(http.client.HTTPConnection.close, self._idle))

    def request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        for left in range(self._retries, -1, -1):
            status, headers, body = self._send(method, path, content)
            if status not in _OVERLOADED or not left:
                break
            time.sleep(_PAUSE)
        if status == http.client.OK:
            return body
        if status in _REFUSED:
            hint = "set MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN"
            raise SourceError(self.where, f"access refused ({status})", hint, code="access_denied")
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            found = json.loads(body)
            said = redact_start(" ".join(f"{found['error_code']}: {found.get('message', '')}".split()))
            code = {404: "unknown_run", 400: "bad_request"}.get(status, "server_failed")
            raise SourceError(self.where, said, "--list shows the runs", code=code)
        raise self._not_mlflow(f"{status} for {path.partition('?')[0]} {headers.get('Location') or ''}")

    def ask(self, path: str, content: Mapping[str, Any], *, post: bool = False) -> dict[str, Any]:
        if post:
            body = self.request("POST", f"{API}/{path}", json.dumps(content).encode())
        else:
            body = self.request("GET", f"{API}/{path}?{urlencode(content)}")
        with suppress(ValueError, RecursionError):
            if isinstance(found := parse_json(body), dict):
                self._limit = self._later
                return found
        raise self._not_mlflow(f"no JSON from {API}/{path}")

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        try:
            with suppress(IndexError, ConnectionError):
                # the server may close an idle connection at any time
                return self._exchange(self._idle.pop(), method, path, content)
            return self._exchange(self._connect(), method, path, content)
        except (OSError, http.client.HTTPException) as error:
            why = f"no answer in {self._limit:g} s" if isinstance(error, TimeoutError) else " ".join(str(error).split())
            hint = "check the address, the scheme (https or http), the certificate, and that the server is running"
            raise SourceError(
                self.where, f"cannot be reached: {redact_start(why)}", hint, code="no_connection"
            ) from error

    def _connect(self) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(*self._address, timeout=self._limit)
        context = ssl.create_default_context(cafile=os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or None)
        if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in {"true", "1"}:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate := os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
            context.load_cert_chain(certificate)
        return http.client.HTTPSConnection(*self._address, timeout=self._limit, context=context)

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, content: bytes | None
    ) -> Answer:
        try:
            connection.request(method, self._prefix + path, content, self._headers)
            connection.sock.settimeout(self._limit)
            answer = connection.getresponse()
            body = answer.read(MOST_ANSWER_BYTES + 1)
            if len(body) > MOST_ANSWER_BYTES:
                raise OSError(f"its response is larger than {MOST_ANSWER_BYTES:,} bytes")
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        # a connection that the server closed is reopened automatically
        self._idle.append(connection)
        return answer.status, answer.headers, body

    def _not_mlflow(self, why: str) -> SourceError:
        what = f"it responds, but is not an MLflow server ({redact_start(' '.join(why.split()))})"
        return SourceError(self.where, what, "check the address and its path prefix", code="not_an_mlflow_server")

    @contextmanager
    def _expect_fields(self) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._not_mlflow(f"a response lacks required fields: {error!r}") from error

    def _list(self, part: str, path: str, asked: dict[str, Any], *, post: bool = True) -> Iterator[Any]:
        for _ in range(MOST_PAGES):
            page = self.ask(path, asked, post=post)
            yield from page.get(part, ())
            if not page.get("next_page_token"):
                return
            asked = asked | {"page_token": page["next_page_token"]}
        raise self._not_mlflow(f"its list of {part} has more than {MOST_PAGES:,} pages")

    @cached_property
    def _experiments(self) -> dict[str, dict[str, Any]]:
        found = self._list("experiments", "experiments/search", {"max_results": 1_000, "view_type": "ALL"})
        return {str(each["experiment_id"]): each for each in found}

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        found: list[RunInfo] = []
        asked = {"filter": wanted or "", "run_view_type": "ACTIVE_ONLY" if wanted else "ALL", "max_results": _RUNS}
        with self._expect_fields():
            names = {key: str(each.get("name")) for key, each in self._experiments.items()}
            ids = stores.find_experiments(self.where, names, experiment)
            try:
                for start in range(0, len(ids), _TOGETHER):
                    some = {"experiment_ids": ids[start : start + _TOGETHER]}
                    found += map(self._info, self._list("runs", "runs/search", asked | some))
            except SourceError as error:
                if wanted is None or error.code != "bad_request":
                    raise
                raise SettingsError(
                    "--filter", error.what, "see MLflow's documentation on searching runs", code="bad_filter"
                ) from error
        return sorted(found, key=lambda run: (-(run.started or 0), run.id))

    def _info(self, run: dict[str, Any]) -> RunInfo:
        info, data = run["info"], run.get("data", {})
        tags = _pairs(data, "tags")
        experiment = self._experiments.get(str(info["experiment_id"]), {})
        said = {
            "run_name": info.get("run_name") or tags.get("mlflow.runName"),
            "parent": tags.get("mlflow.parentRunId"),
            "deleted": experiment.get("lifecycle_stage") == "deleted",
        }
        return stores.read_info(info | said, _pairs(data, "metrics"))

    def run(self, run_id: str) -> RunInfo | None:
        try:
            with self._expect_fields():
                return self._info(self.ask("runs/get", {"run_id": run_id})["run"])
        except SourceError as error:
            if error.code != "unknown_run":
                raise
            return None

    def read(self, run: RunInfo, beginning: str = "") -> stores.Contents:
        with self._expect_fields(), ThreadPoolExecutor(_THREADS, thread_name_prefix="mlflow") as pool:
            data = self.ask("runs/get", {"run_id": run.id})["run"].get("data", {})
            keys = [key for key in _pairs(data, "metrics") if key.startswith(beginning)]
            points = dict(zip(keys, pool.map(partial(self._history, run.id), keys), strict=True))
            return stores.order_points(points, _pairs(data, "params"), _pairs(data, "tags"))

    def _history(self, run_id: str, key: str) -> stores.Points:
        asked = {"run_id": run_id, "metric_key": key, "max_results": _PAGE}
        found = self._list("metrics", "metrics/get-history", asked, post=False)
        # NaN and infinities are sent as text
        rows = ((int(each["timestamp"]), float(each.get("value", 0)), int(each.get("step", 0))) for each in found)
        return np.fromiter(rows, dtype=stores.POINT)

    def artifacts(self, run: RunInfo) -> dict[str, Path]:
        with self._expect_fields():
            found = self.ask("artifacts/list", {"run_id": run.id, "path": stores.ARTIFACT_FOLDER}).get("files", ())
            names = sorted(each["path"] for each in found if not each.get("is_dir"))
            logs = [name for name in names if name.lower().endswith(stores.LOG_SUFFIXES)]
        return {name: self._copy(run, name, make_temporary_folder()) for name in logs}

    def _copy(self, run: RunInfo, name: str, folder: Path) -> Path:
        path = folder / Path(name).name
        path.write_bytes(self.request("GET", f"/get-artifact?run_uuid={quote(run.id)}&path={quote(name)}"))
        return path

    def write_figures(
        self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], outdated: Iterable[str]
    ) -> None:
        now = time.time_ns() // 1_000_000
        values = [{"key": key, "value": value, "timestamp": now, "step": 0} for key, value in metrics.items()]
        labels = [{"key": key, "value": text} for key, text in tags.items()]
        if values or labels:
            self.ask("runs/log-batch", {"run_id": run.id, "metrics": values, "tags": labels}, post=True)
        for key in outdated:
            self.ask("runs/delete-tag", {"run_id": run.id, "key": key}, post=True)


def _read_number(name: str, otherwise: float) -> float:
    text = os.environ.get(name) or str(otherwise)
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise SettingsError(name, f"{text!r} is not a number", "give a number, or unset it", code="not_a_number")


def _pairs(data: Mapping[str, Any], part: str) -> dict[str, str]:
    return dict(sorted((each["key"], str(each.get("value", ""))) for each in data.get(part, ())))


# MLflow's own client


def load_mlflow(where: str) -> Any:
    """Import the optional module mlflow with telemetry off. This takes seconds."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    try:
        return import_module("mlflow")
    except ImportError as error:
        raise SourceError(
            where, "this requires MLflow's own client", "pip install 'gpureport[mlflow]'", code="not_installed"
        ) from error


def call_mlflow(uri: str, where: str, call: Callable[[Any, Any], Any]) -> Any:
    mlflow = load_mlflow(where)
    try:
        return call(mlflow, mlflow.MlflowClient(uri))
    except mlflow.exceptions.MlflowException as error:
        raise SourceError(
            where, " ".join(str(error).split()), "check the address and the credentials", code="request_failed"
        ) from error


class SignedServer(Server):
    def __init__(self, uri: str) -> None:
        super().__init__(uri if uri.startswith("http") else "https://databricks")
        self.uri, self.where = uri, self.where if uri.startswith("http") else uri

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        def send(mlflow: Any, client: Any) -> Any:
            credentials = client._tracking_client.store.get_host_creds()
            return mlflow.utils.rest_utils.http_request(credentials, place, method, **said)

        place, _, query = path.partition("?")
        said = {"json": json.loads(content)} if content else {"params": dict(parse_qsl(query))}
        answer = call_mlflow(self.uri, self.where, send)
        return answer.status_code, answer.headers, answer.content

    def _copy(self, run: RunInfo, name: str, folder: Path) -> Path:
        asked = (run.id, name, str(folder))
        return Path(call_mlflow(self.uri, self.where, lambda _, client: client.download_artifacts(*asked)))
