"""MLflow's server, read through its documented REST API: page by page, eight requests at a time.

Requests have a time limit of their own: MLflow's client waits minutes for an unreachable server.
"""

import base64
import configparser
import http.client
import json
import os
import ssl
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote, urlencode, urlsplit

from gpureport.errors import SettingsError, SourceError
from gpureport.fetched_copies import make_temporary_folder
from gpureport.importers.mlflow.stores import Contents, Points, RunInfo, find_experiments, make_points, read_info
from gpureport.limits import MOST_ANSWER_BYTES, MOST_PAGES
from gpureport.parsing import parse_json
from gpureport.redaction import redact_start

_FIRST, _LATER, _LONGEST_PAUSE = 10.0, 30.0, 30.0
"""Seconds until the first answer, until each later one, and that an overloaded server can ask for."""
_OVERLOADED = {429, 502, 503, 504}
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

    kind, version = "server", ""

    def __init__(self, url: str) -> None:
        """Take `http://host:port/prefix`, with name and password where they are nowhere else; nothing is sent yet."""
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._prefix, self._secure = parts.path.rstrip("/"), parts.scheme == "https"
        with suppress(ValueError):
            self._address = parts.hostname or "", parts.port
        if not getattr(self, "_address", ("",))[0]:
            raise SourceError(self.where, "not a URL", "such as http://localhost:5000", code="not_a_url")
        limit = _read_number("MLFLOW_HTTP_REQUEST_TIMEOUT", 0.0)
        self._limit, self._later = limit or _FIRST, limit or _LATER
        self._retries = int(_read_number("MLFLOW_HTTP_REQUEST_MAX_RETRIES", 1.0))
        own = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        self._headers = _build_headers(own)
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)

    def request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        """Return what a server answers; it is asked again where it is overloaded."""
        for left in range(self._retries, -1, -1):
            status, headers, body = self._send(method, path, content)
            if status not in _OVERLOADED or not left:
                break
            pause = 1.0
            with suppress(ValueError):
                pause = min(max(0.0, float(headers.get("Retry-After", pause))), _LONGEST_PAUSE)
            time.sleep(pause)
        if status != http.client.OK:
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
                self._limit = self._later
                return found
        raise self._not_mlflow(f"no JSON on {API}/{path}")

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        try:
            with suppress(IndexError, ConnectionError):
                # the server may close a connection that is kept open at any time
                return self._exchange(self._idle.pop(), method, path, content)
            return self._exchange(self._connect(), method, path, content)
        except (OSError, http.client.HTTPException) as error:
            raise self._explain(error) from error

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
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if len(body) > MOST_ANSWER_BYTES:
            connection.close()
            what = f"its answer is larger than {MOST_ANSWER_BYTES:,} bytes"
            raise SourceError(self.where, what, "read fewer runs, by --run or --filter", code="answer_too_large")
        # one that the server closed opens itself again
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
        if not isinstance(error, OSError):
            return self._not_mlflow(f"no HTTP: {error}")
        why = f"no answer in {self._limit:g} s" if isinstance(error, TimeoutError) else error.strerror or str(error)
        hint = "check the address, and that the server runs"
        return SourceError(self.where, f"cannot be reached: {why}", hint, code="no_connection")

    def _not_mlflow(self, why: str) -> SourceError:
        what = f"it answers but is not an MLflow server ({redact_start(' '.join(why.split()))})"
        hint = "check the address, and the prefix it is served under"
        return SourceError(self.where, what, hint, code="not_an_mlflow_server")

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes, path: str) -> SourceError:
        """Return an error that says what an answer means that is not a success."""
        said = ""
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            found = json.loads(body)
            said = redact_start(" ".join(f"{found['error_code']}: {found.get('message', '')}".split()))
        if status in {401, 403}:
            hint = "set MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN"
            return SourceError(self.where, f"access refused ({status})", hint, code="access_denied")
        # that there is no such method is no failure
        if status >= 500 and status != 501:  # noqa: PLR2004 - HTTP's own
            what = f"the server fails ({status}{said and f', {said}'})"
            return SourceError(self.where, what, "try again later", code="server_failed")
        if said:
            code = "unknown_run" if status == 404 else "bad_request"  # noqa: PLR2004 - as above
            return SourceError(self.where, said, "--list shows the runs", code=code)
        if target := headers.get("Location"):
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

    def _list(self, part: str, path: str, asked: dict[str, Any], *, post: bool = True) -> Iterator[Any]:
        """Yield what is on the pages of a list."""
        for _ in range(MOST_PAGES):
            page = self.ask(path, asked, post=post)
            yield from page.get(part, ())
            if not page.get("next_page_token"):
                return
            asked = asked | {"page_token": page["next_page_token"]}
        what = f"its list of {part} does not end after {MOST_PAGES:,} pages"
        raise SourceError(self.where, what, "check the server", code="endless_list")

    @cached_property
    def _experiments(self) -> dict[str, dict[str, Any]]:
        found = self._list("experiments", "experiments/search", {"max_results": 1_000, "view_type": "ALL"})
        return {str(each["experiment_id"]): each for each in found}

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
                    found += map(self._info, self._list("runs", "runs/search", asked | some))
            except SourceError as error:
                if wanted is None or error.code != "bad_request":
                    raise
                hint = "see MLflow's page on searching runs"
                raise SettingsError("--filter", error.what, hint, code="bad_filter") from error
        return sorted(found, key=lambda run: (-(run.started or 0), run.id))

    def _info(self, run: dict[str, Any]) -> RunInfo:
        info, data = run["info"], run.get("data", {})
        experiment = self._experiments.get(str(info["experiment_id"]), {})
        deleted = experiment.get("lifecycle_stage") == "deleted"
        return read_info(info, _pairs(data, "tags"), _pairs(data, "metrics"), deleted=deleted)

    def _get(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("runs/get", {"run_id": run_id})["run"]
        return found

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none."""
        try:
            with self._expect_fields():
                return self._info(self._get(run_id))
        except SourceError as error:
            if error.code != "unknown_run":
                raise
            return None

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        """Return params and tags of a run, and the metrics whose names begin so."""
        with self._expect_fields(), ThreadPoolExecutor(_THREADS, thread_name_prefix="mlflow") as pool:
            data = self._get(run.id).get("data", {})
            keys = [key for key in _pairs(data, "metrics") if key.startswith(beginning)]
            points = dict(zip(keys, pool.map(partial(self._history, run.id), keys), strict=True))
            return Contents(points, _pairs(data, "params"), _pairs(data, "tags"))

    def _history(self, run_id: str, key: str) -> Points:
        asked = {"run_id": run_id, "metric_key": key, "max_results": _PAGE}
        # NaN and infinities come as text
        return make_points(
            (int(each["timestamp"]), float(each.get("value", 0)), int(each.get("step", 0)))
            for each in self._list("metrics", "metrics/get-history", asked, post=False)
        )

    def artifacts(self, run: RunInfo, folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
        """Return copies of the files in a folder of a run's artifacts whose names end so, by their paths there."""
        with self._expect_fields():
            found = self.ask("artifacts/list", {"run_id": run.id, "path": folder}).get("files", ())
            files = (each["path"] for each in found if not each.get("is_dir"))
            names = sorted(name for name in files if name.lower().endswith(endings))
        return {name: self._copy(run, name, make_temporary_folder()) for name in names}

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


def _read_number(name: str, otherwise: float) -> float:
    text = os.environ.get(name) or str(otherwise)
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise SettingsError(name, f"{text!r} is not a number", "give a number, or unset it", code="not_a_number")


def _build_headers(own: tuple[str, str] | None) -> dict[str, str]:
    """Return the headers of requests; a name and a password win over a token, as in MLflow."""
    parser = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error, UnicodeDecodeError, OSError):
        parser.read(Path.home() / ".mlflow" / "credentials", encoding="utf-8")
    filed = parser["mlflow"] if parser.has_section("mlflow") else {}
    names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
    user, password = own or [os.environ.get(name) or filed.get(name.lower()) for name in names]
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "gpureport"}
    if user and password:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    elif token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    if workspace := os.environ.get("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = workspace
    return headers


def _pairs(data: Mapping[str, Any], part: str) -> dict[str, str]:
    found = sorted(data.get(part, ()), key=lambda each: each["key"])
    return {each["key"]: str(each.get("value", "")) for each in found}


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
