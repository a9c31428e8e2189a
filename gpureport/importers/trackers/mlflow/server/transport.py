"""Requests to a server of MLflow with a time limit: MLflow's own client waits minutes for an unreachable server.

Each thread keeps one connection open. The limit covers the whole answer, however slowly its bytes come.
"""

import base64
import http.client
import json
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.server.connection_errors import (
    CLOSED,
    explain_connection_errors,
    not_mlflow_error,
    unreachable_error,
)
from gpureport.importers.trackers.mlflow.server.server_answers import OVERLOADED, Answer, check_answer
from gpureport.importers.trackers.mlflow.server.server_settings import CONNECT, ServerSettings
from gpureport.json_text import parse_json
from gpureport.limits import MOST_ANSWER_BYTES

_HTTPS, _HTTP = 443, 80


def open_connection(host: str, port: int, settings: ServerSettings, *, secure: bool) -> http.client.HTTPConnection:
    """Return a connection to a server.

    Raises:
        OSError: when it cannot be reached, or not in time.
    """
    if secure:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=CONNECT, context=_tls_context(settings)
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=CONNECT)
    connection.connect()
    if connection.sock is not None:
        connection.sock.settimeout(max(settings.first, settings.later))
    return connection


def _tls_context(settings: ServerSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.authority)
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate:
        context.load_cert_chain(settings.certificate)
    return context


class Transport:
    """Talks to one server from several threads."""

    def __init__(self, url: str, settings: ServerSettings) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            url: `http://host:port/prefix`, with name and password where they are not in the environment.
            settings: what the environment says.

        Raises:
            SourceError: when it is no URL.
        """
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        try:
            self._port = parts.port or (_HTTPS if parts.scheme == "https" else _HTTP)
        except ValueError as error:
            raise SourceError(self.where, "not a URL", "such as http://localhost:5000", code="not_a_url") from error
        if not parts.hostname:
            raise SourceError(self.where, "not a URL", "such as http://localhost:5000", code="not_a_url")
        self._host = parts.hostname
        self._prefix = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._settings = settings
        self._headers = _headers(parts, settings)
        self._own = threading.local()
        self._open: list[http.client.HTTPConnection] = []
        self._answered = False
        weakref.finalize(self, _close, self._open)

    def get(self, path: str, /, **query: str | int) -> dict[str, Any]:
        """Return the JSON of a path.

        Raises:
            SourceError: when the server cannot be reached, does not answer in time, or answers that it will not.
        """
        return self._json("GET", f"{path}?{urlencode(query)}" if query else path, None)

    def post(self, path: str, content: Mapping[str, object]) -> dict[str, Any]:
        """Return the JSON of a path that takes JSON; errors as for `get`."""
        return self._json("POST", path, json.dumps(content).encode())

    def content(self, path: str) -> bytes:
        """Return the content of a path; errors as for `get`."""
        return self._request("GET", path, None).body

    def put(self, path: str, content: bytes) -> None:
        """Send content to a path; errors as for `get`."""
        self._request("PUT", path, content)

    def _json(self, method: str, path: str, content: bytes | None) -> dict[str, Any]:
        answer = self._request(method, path, content)
        try:
            found = parse_json(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise not_mlflow_error(self.where, f"no JSON on {path.partition('?')[0]}")
        self._answered = True
        return found

    def _request(self, method: str, path: str, content: bytes | None) -> Answer:
        return check_answer(self._send_until_ready(method, path, content), self.where, path, self._settings)

    def _send_until_ready(self, method: str, path: str, content: bytes | None) -> Answer:
        for again in range(self._settings.retries, -1, -1):
            answer = self._send_or_reconnect(method, path, content)
            if answer.status not in OVERLOADED or not again:
                return answer
            time.sleep(answer.pause)
        raise AssertionError

    def _send_or_reconnect(self, method: str, path: str, content: bytes | None) -> Answer:
        # the server may close a connection that is kept open at any time
        kept = getattr(self._own, "connection", None) is not None
        for attempt in (1, 2) if kept else (2,):
            try:
                return self._send(method, path, content)
            except CLOSED:
                if attempt > 1:
                    raise unreachable_error(self.where, "it closes the connection without an answer") from None
        raise AssertionError

    def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        with explain_connection_errors(self.where):
            connection = self._connection()
            limit = self._settings.later if self._answered else self._settings.first
            late = threading.Event()
            watch = threading.Timer(limit, _hang_up, [connection, late])
            watch.start()
            try:
                connection.request(method, self._prefix + path, content, self._headers)
                answer = connection.getresponse()
                body = answer.read(MOST_ANSWER_BYTES + 1)
                if late.is_set():
                    raise TimeoutError
            except (OSError, http.client.HTTPException):
                self._own.connection = None
                connection.close()
                if late.is_set():
                    raise TimeoutError(f"no answer in {limit:g} s") from None
                raise
            finally:
                watch.cancel()
            if len(body) > MOST_ANSWER_BYTES:
                self._own.connection = None
                connection.close()
                what = f"its answer is larger than {MOST_ANSWER_BYTES:,} bytes"
                raise SourceError(self.where, what, "read fewer runs, by --run or --filter", code="answer_too_large")
            return Answer(status=answer.status, headers=dict(answer.headers.items()), body=body)

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None or connection.sock is None:
            connection = open_connection(self._host, self._port, self._settings, secure=self._secure)
            self._own.connection = connection
            self._open.append(connection)
        return connection

    def close(self) -> None:
        """Close the connections of all threads; the next request opens one."""
        self._own = threading.local()
        _close(self._open)


def _headers(parts: SplitResult, settings: ServerSettings) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "gpureport"}
    name, password = settings.username, settings.password
    if parts.username is not None:
        name, password = unquote(parts.username), unquote(parts.password or "")
    if name and password:
        # a name and a password win over a token, as in MLflow
        headers["Authorization"] = f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
    elif settings.token:
        headers["Authorization"] = f"Bearer {settings.token}"
    if settings.workspace:
        headers["X-MLFLOW-WORKSPACE"] = settings.workspace
    return headers


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _hang_up(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    """End a request that takes too long, from another thread."""
    late.set()
    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            # the other side hung up first
            return
