"""MLflow's server, read through its documented REST API: page by page, eight requests at a time.

Requests have a time limit of their own: MLflow's client waits minutes for an unreachable server.
"""

import atexit
import base64
import configparser
import http.client
import json
import os
import shutil
import socket
import ssl
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias
from urllib.parse import quote, unquote, urlencode, urlsplit

import numpy as np

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.mlflow.stores import Points, RunInfo, RunLabels, find_experiments, order_points, read_info
from gpureport.json_text import parse_json
from gpureport.limits import MOST_ANSWER_BYTES, MOST_PAGES
from gpureport.redaction import redact_start

_CONNECT, _FIRST, _LATER, _LONGEST_PAUSE = 5.0, 10.0, 30.0, 30.0
"""Seconds to connect, until the first answer, until each later one, and that an overloaded server can ask for."""
_OVERLOADED = {429, 502, 503, 504}
_CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
"""Raised where a server closes a connection."""
_CREDENTIALS = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
API = "/api/2.0/mlflow"
_PAGE, _RUNS, _TOGETHER, _THREADS = 25_000, 1_000, 100, 8
"""Points a page (the most that every server allows), runs a page, experiments asked at once, requests at a time."""
Answer: TypeAlias = tuple[int, Any, bytes]
"""Status, headers and body."""


class Server:
    """A server, talked to as the variables that MLflow's own client honours and its file of credentials say.

    `request` and what asks through it raise SourceError when the server cannot be reached, does not answer in time, or
    answers that it will not.
    """

    kind: ClassVar[str] = "server"

    def __init__(self, url: str) -> None:
        """Take `http://host:port/prefix`, with name and password where they are nowhere else; nothing is sent yet."""
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        port, self._host = -1, parts.hostname or ""
        with suppress(ValueError):
            port = parts.port or (443 if parts.scheme == "https" else 80)
        if port < 0 or not self._host:
            raise SourceError(self.where, "not a URL", "such as http://localhost:5000", code="not_a_url")
        self._port, self._prefix, self._secure = port, parts.path.rstrip("/"), parts.scheme == "https"
        limit, retries = _read_number("MLFLOW_HTTP_REQUEST_TIMEOUT"), _read_number("MLFLOW_HTTP_REQUEST_MAX_RETRIES")
        self._limits, self._answered = (limit or _FIRST, limit or _LATER), False
        self._retries = 1 if retries is None else int(retries)
        own = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        self._headers, self._given = _read_credentials(own)
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or None)
        if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in {"true", "1"}:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate := os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
            context.load_cert_chain(certificate)
        return context

    def request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        """Return what a server answers; it is asked again where it is overloaded."""
        for left in range(self._retries, -1, -1):
            status, headers, body = self._send(method, path, content)
            if status not in _OVERLOADED or not left:
                break
            pause = 1.0
            with suppress(ValueError):
                pause = min(max(float(headers.get("Retry-After", "1")), 0.0), _LONGEST_PAUSE)
            time.sleep(pause)
        if status != 200:  # noqa: PLR2004 - HTTP's own
            raise self._refusal(status, headers, body, path.partition("?")[0])
        return body

    def ask(self, path: str, content: Mapping[str, Any], *, post: bool = False) -> dict[str, Any]:
        """Return the JSON of a path of the API, asked for with a query, or with JSON."""
        if post:
            body = self.request("POST", f"{API}/{path}", json.dumps(content).encode())
        else:
            body = self.request("GET", f"{API}/{path}?{urlencode(content)}")
        with suppress(ValueError, RecursionError):
            if isinstance(found := parse_json(body), dict):
                self._answered = True
                return found
        raise self._not_mlflow(f"no JSON on {API}/{path}")

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        try:
            with suppress(IndexError, *_CLOSED):
                # the server may close a connection that is kept open at any time
                return self._exchange(self._idle.pop(), method, path, content)
            connection = http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT)
            if self._secure:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=_CONNECT, context=self._context
                )
            connection.connect()
            connection.sock.settimeout(max(self._limits))
            return self._exchange(connection, method, path, content)
        except (OSError, http.client.HTTPException) as error:
            raise self._explain(error) from error

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, content: bytes | None
    ) -> Answer:
        """Return an answer; the time limit covers all of it, however slowly its bytes come."""
        limit, late = self._limits[self._answered], threading.Event()
        watch = threading.Timer(limit, _hang_up, [connection, late])
        watch.start()
        try:
            connection.request(method, self._prefix + path, content, self._headers)
            answer = connection.getresponse()
            body = answer.read(MOST_ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException):
            connection.close()
            if not late.is_set():
                raise
        finally:
            watch.cancel()
        if late.is_set():
            connection.close()
            raise TimeoutError(f"no answer in {limit:g} s")
        if len(body) > MOST_ANSWER_BYTES:
            connection.close()
            what = f"its answer is larger than {MOST_ANSWER_BYTES:,} bytes"
            raise SourceError(self.where, what, "read fewer runs, by --run or --filter", code="answer_too_large")
        if connection.sock is not None:
            self._idle.append(connection)
        return answer.status, answer.headers, body

    def _explain(self, error: Exception) -> SourceError:
        """Return an error of a connection in words that a person can act on."""
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"its certificate is not trusted ({error.verify_message})"
            hint = "name a file of certificates with MLFLOW_TRACKING_SERVER_CERT_PATH"
            return SourceError(self.where, what, hint, code="untrusted_certificate")
        if isinstance(error, ssl.SSLError):
            what = f"it does not speak TLS ({error.reason or error})"
            plain = self.where.replace("https:", "http:", 1)
            return SourceError(self.where, what, f"try {plain}", code="no_tls")
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, _CLOSED):
            why = "it closes the connection without an answer"
        elif isinstance(error, http.client.HTTPException):
            return self._not_mlflow(f"no HTTP: {error}")
        elif isinstance(error, TimeoutError) and not why.startswith("no answer"):
            why = f"no connection in {_CONNECT:g} s"
        elif isinstance(error, ConnectionRefusedError):
            why = "connection refused"
        elif isinstance(error, socket.gaierror):
            why = f"no such host ({why})"
        hint = "check the address, and that the server runs"
        return SourceError(self.where, f"cannot be reached: {why}", hint, code="no_connection")

    def _not_mlflow(self, why: str) -> SourceError:
        """Return an error: something answers that is not MLflow."""
        what = f"it answers but is not an MLflow server ({redact_start(' '.join(why.split()))})"
        hint = "check the address, and the prefix it is served under"
        return SourceError(self.where, what, hint, code="not_an_mlflow_server")

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes, path: str) -> SourceError:
        """Return an error that says what an answer means that is not a success."""
        message = None
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(body), dict) and "error_code" in found:
                message = redact_start(" ".join(f"{found['error_code']}: {found.get('message', '')}".split()))
        if status in {401, 403}:
            given = (
                f"set are {self._given}" if self._given else "none of MLFLOW_TRACKING_USERNAME/_PASSWORD/_TOKEN is set"
            )
            what = f"access refused ({status}; {given})"
            hint = "set MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN"
            return SourceError(self.where, what, hint, code="access_denied")
        if status >= 500 and status != 501:  # noqa: PLR2004 - that there is no such method is no failure
            what = f"the server fails ({status}{f', {message}' if message else ''})"
            return SourceError(self.where, what, "try again later", code="server_failed")
        if message is not None:
            code = "unknown_run" if status == 404 else "bad_request"  # noqa: PLR2004 - HTTP's own
            return SourceError(self.where, message, "--list shows the runs", code=code)
        if 300 <= status < 400 and (target := headers.get("Location")):  # noqa: PLR2004 - as above
            what = f"it sends to another address ({status})"
            return SourceError(self.where, what, f"give {target.partition('/api/')[0]}", code="redirected")
        return self._not_mlflow(f"{status} on {path}")

    @contextmanager
    def _expect_fields(self) -> Iterator[None]:
        """Say of an answer without the fields of MLflow, or with others in their place, that it is none of MLflow's."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._not_mlflow(f"an answer lacks what it must hold: {error!r}") from error

    def _pages(self, what: str, path: str, asked: dict[str, Any], *, post: bool = True) -> Iterator[list[Any]]:
        """Yield what is on each page of a list."""
        for _ in range(MOST_PAGES):
            page = self.ask(path, asked, post=post)
            yield page.get("metrics" if what == "points" else what, [])
            if not page.get("next_page_token"):
                return
            asked = asked | {"page_token": page["next_page_token"]}
        what = f"its list of {what} does not end after {MOST_PAGES:,} pages"
        raise SourceError(self.where, what, "check the server", code="endless_list")

    @cached_property
    def version(self) -> str:
        """The version it states; empty without one."""
        text = ""
        with suppress(SourceError):
            text = self.request("GET", "/version").decode(errors="replace").strip()
        return f"MLflow {text}" if text[:1].isdigit() and len(text) < 20 else ""  # noqa: PLR2004 - longer is a page

    @cached_property
    def _experiments(self) -> dict[str, dict[str, Any]]:
        pages = self._pages("experiments", "experiments/search", {"max_results": 1_000, "view_type": "ALL"})
        return {str(each["experiment_id"]): each for page in pages for each in page}

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, unless a filter in MLflow's language is given."""
        found: list[RunInfo] = []
        with self._expect_fields():
            names = {key: str(each.get("name")) for key, each in self._experiments.items()}
            ids = find_experiments(self.where, names, experiment)
            asked = {"filter": wanted or "", "run_view_type": "ACTIVE_ONLY" if wanted else "ALL", "max_results": _RUNS}
            try:
                for start in range(0, len(ids), _TOGETHER):
                    some = {"experiment_ids": ids[start : start + _TOGETHER]}
                    for page in self._pages("runs", "runs/search", asked | some):
                        found += [self._info(each) for each in page]
            except SourceError as error:
                if wanted is None or error.code != "bad_request":
                    raise
                hint = "see MLflow's page on searching runs"
                raise SettingsError("--filter", error.what, hint, code="bad_filter") from error
        return sorted(found, key=lambda run: (-(run.started or 0), run.id))

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none."""
        try:
            with self._expect_fields():
                return self._info(self.ask("runs/get", {"run_id": run_id})["run"])
        except SourceError as error:
            if error.code != "unknown_run":
                raise
            return None

    def _info(self, run: dict[str, Any]) -> RunInfo:
        info, data = run["info"], run.get("data", {})
        experiment = self._experiments.get(str(info["experiment_id"]), {})
        deleted = experiment.get("lifecycle_stage") == "deleted"
        return read_info(info, _read_pairs(data, "tags"), _read_pairs(data, "metrics"), deleted=deleted)

    def _data(self, run: RunInfo) -> dict[str, Any]:
        data: dict[str, Any] = self.ask("runs/get", {"run_id": run.id})["run"].get("data", {})
        return data

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params and tags of a run."""
        with self._expect_fields():
            data = self._data(run)
            return RunLabels(_read_pairs(data, "params"), _read_pairs(data, "tags"))

    def series(self, run: RunInfo, beginning: str = "") -> dict[str, Points]:
        """Return the metrics of a run whose names begin so."""
        with self._expect_fields(), ThreadPoolExecutor(_THREADS, thread_name_prefix="mlflow") as pool:
            keys = [key for key in _read_pairs(self._data(run), "metrics") if key.startswith(beginning)]
            return dict(zip(keys, pool.map(partial(self._history, run.id), keys), strict=True))

    def _history(self, run_id: str, key: str) -> Points:
        asked = {"run_id": run_id, "metric_key": key, "max_results": _PAGE}
        parts = [
            (
                np.array([int(each["timestamp"]) for each in page], dtype=np.int64),
                # NaN and infinities come as text
                np.array([float(each.get("value", 0)) for each in page], dtype=np.float64),
                np.array([int(each.get("step", 0)) for each in page], dtype=np.int64),
            )
            for page in self._pages("points", "metrics/get-history", asked, post=False)
        ]
        times, values, steps = (np.concatenate(part) for part in zip(*parts, strict=True))
        return order_points(times, values, steps)

    def artifacts(self, run: RunInfo, folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
        """Return copies of the files in a folder of a run's artifacts whose names end so, by their paths there."""
        with self._expect_fields():
            found = self.ask("artifacts/list", {"run_id": run.id, "path": folder}).get("files", ())
            files = (each["path"] for each in found if not each.get("is_dir"))
            names = sorted(name for name in files if name.lower().endswith(endings))
        return {name: self._copy(run, name, _make_temporary_folder()) for name in names}

    def _copy(self, run: RunInfo, name: str, folder: Path) -> Path:
        path = folder / Path(name).name
        path.write_bytes(self.request("GET", f"/get-artifact?run_uuid={quote(run.id)}&path={quote(name)}"))
        return path

    def log_figures(self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], now: int) -> None:
        """Log one value of each metric, at a time in milliseconds, and set tags of a run."""
        values = [{"key": key, "value": value, "timestamp": now, "step": 0} for key, value in metrics.items()]
        labels = [{"key": key, "value": text} for key, text in tags.items()]
        self.ask("runs/log-batch", {"run_id": run.id, "metrics": values, "tags": labels}, post=True)

    def remove_tag(self, run: RunInfo, key: str) -> None:
        """Remove a tag of a run."""
        self.ask("runs/delete-tag", {"run_id": run.id, "key": key}, post=True)


def _read_number(name: str) -> float | None:
    text = os.environ.get(name)
    if not text:
        return None
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise SettingsError(name, f"{text!r} is not a number", "give a number, or unset it", code="not_a_number")


def _read_credentials(own: tuple[str, str] | None) -> tuple[dict[str, str], str]:
    """Return the headers of requests, and the names of what holds credentials, without their values."""
    parser = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error, UnicodeDecodeError, OSError):
        parser.read(Path.home() / ".mlflow" / "credentials", encoding="utf-8")
    filed = dict(parser["mlflow"]) if parser.has_section("mlflow") else {}
    said = {name: os.environ.get(name) for name in _CREDENTIALS}
    user, password = own or [said[name] or filed.get(name.lower()) for name in _CREDENTIALS[:2]]
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "gpureport"}
    if user and password:
        # a name and a password win over a token, as in MLflow
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    elif token := said[_CREDENTIALS[2]]:
        headers["Authorization"] = f"Bearer {token}"
    if workspace := os.environ.get("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = workspace
    given = [name for name, each in said.items() if each]
    given += ["~/.mlflow/credentials"] * any(not said[name] and filed.get(name.lower()) for name in _CREDENTIALS[:2])
    return headers, ", ".join(given)


def _read_pairs(data: Mapping[str, Any], part: str) -> dict[str, str]:
    return {each["key"]: each.get("value", "") for each in sorted(data.get(part, ()), key=lambda each: each["key"])}


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _hang_up(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    """End a request that takes too long, from another thread."""
    late.set()
    # the other side may have hung up first
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _make_temporary_folder() -> Path:
    """Return a new folder that is removed when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="gpureport-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
