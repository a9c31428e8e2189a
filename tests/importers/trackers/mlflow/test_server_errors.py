"""A server that is not there, or is none, is said so in one line."""

import http.server
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.trackers.mlflow import Mlflow
from gpureport.importers.trackers.mlflow.locators import open_store
from gpureport.importers.trackers.mlflow.server import server_settings
from gpureport.importers.trackers.mlflow.server.transport import Transport
from tests.importers.trackers.mlflow.servers import Answering, Reply, answering, free_port, listening

_VARIABLES = ("URI", "USERNAME", "PASSWORD", "TOKEN", "AUTH", "AWS_SIGV4", "INSECURE_TLS", "SERVER_CERT_PATH")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away what the environment of whoever runs the tests says."""
    for name in _VARIABLES:
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def asked(url: str, **selection: Any) -> str:  # noqa: ANN401 - any option
    """Return what is said of a server."""
    with pytest.raises((SourceError, SettingsError)) as failed:
        Mlflow().runs(f"mlflow:{url}", Selection(**selection))
    said = str(failed.value)
    assert "\n" not in said
    return said.replace(url, "URL")


def test_a_closed_port_is_said() -> None:
    """MLflow's own client keeps trying for minutes."""
    said = asked(f"http://127.0.0.1:{free_port()}")
    assert said == "URL: cannot be reached: connection refused; check the address, and that the server runs"


@pytest.mark.slow
def test_a_server_that_says_nothing_is_left_in_time() -> None:
    """MLflow's own client waits about twenty minutes."""
    with listening(lambda _: None) as url:
        said = asked(url)
    assert said == "URL: cannot be reached: no answer in 10 s; check the address, and that the server runs"


def _drip(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)


def test_a_server_that_drips_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then resets the time limit of a socket, but not that of a request."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "0.5")
    with listening(_drip) as url:
        said = asked(url)
    assert "no answer in 0.5 s" in said


def test_a_host_that_does_not_exist_is_said() -> None:
    """Names that end so never exist."""
    said = asked("http://gpureport.invalid")
    assert re.search(r"cannot be reached: no such host", said)


def test_https_to_a_server_that_speaks_http_is_said() -> None:
    """With the address that would have worked."""
    with answering(lambda *_: Reply()) as url:
        said = asked(url.replace("http:", "https:"))
    assert "it does not speak TLS" in said
    assert said.endswith(f"try {url}")


def test_a_server_that_hangs_up_is_said() -> None:
    """It accepts, and closes."""
    with listening(lambda connection: connection.close()) as url:
        said = asked(url)
    assert "closes the connection without an answer" in said


def test_something_that_is_no_http_is_said() -> None:
    """Such as a mail server."""
    with listening(lambda connection: connection.sendall(b"220 mail ready\r\n\r\n")) as url:
        said = asked(url)
    assert "is not an MLflow server (no HTTP" in said


@contextmanager
def _files(folder: Path) -> Iterator[str]:
    """Give the URL of Python's own file server."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *given: http.server.SimpleHTTPRequestHandler(*given, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_of_files_is_none_of_mlflow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It answers with pages in HTML, which nobody wants to read here."""
    with _files(tmp_path) as url:
        said = asked(url)
    assert said.startswith("URL: it answers but is not an MLflow server (501 on /api/2.0/mlflow")
    assert "<" not in said
    capfd.readouterr()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(404, "<html>gone</html>"), "not an MLflow server (404 on /api/2.0/mlflow/experiments/search)"),
        (Reply(200, "<html>hello</html>"), "not an MLflow server (no JSON on /api/2.0/mlflow/experiments/search)"),
        (Reply(200, "[]"), "not an MLflow server (no JSON"),
        (
            Reply(302, "", {"Location": "https://other.example/api/2.0/x"}),
            "another address (302); give https://other.example",
        ),
        (Reply(500, "oops"), "the server fails (500)"),
        (Reply(500, {"error_code": "INTERNAL_ERROR", "message": "no\nspace"}), "(500, INTERNAL_ERROR: no space)"),
        (Reply(400, {"error_code": "BAD_REQUEST", "message": "no"}), "BAD_REQUEST: no"),
    ],
)
def test_an_answer_that_is_none_is_said(reply: Reply, expected: str) -> None:
    """In a sentence, without the page that came."""
    with answering(lambda *_: reply) as url:
        said = asked(url)
    assert expected in said
    assert "<" not in said


@pytest.mark.parametrize("status", [401, 403])
def test_refused_access_names_what_is_set_and_no_value(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither password nor token is printed."""
    with answering(lambda *_: Reply(status, "You are not authenticated")) as url:
        assert "none of MLFLOW_TRACKING_USERNAME/_PASSWORD/_TOKEN is set" in asked(url)
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "somebody")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hunter2")
        said = asked(url.replace("://", "://me:secret@"))
    assert f"access refused ({status}; set are MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD)" in said
    assert not any(value in said for value in ("somebody", "hunter2", "secret"))


def _experiments(answer: Answering, first: list[Reply]) -> Answering:
    """Return a function that answers some replies first."""
    return lambda *request: first.pop(0) if first else answer(*request)


def test_an_overloaded_server_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """After as long as it asks to be left alone; then it is said."""
    pauses: list[float] = []
    monkeypatch.setattr("gpureport.importers.trackers.mlflow.server.transport.time.sleep", pauses.append)
    busy = Reply(503, "busy", {"Retry-After": "0.3"})
    with answering(_experiments(lambda *_: Reply(200, {}), [busy])) as url:
        said = asked(url)
    assert said == "URL: no run; --list shows the runs; --run reads one whatever it holds"
    assert pauses == [0.3]
    with answering(lambda *_: Reply(429, "busy", {"Retry-After": "0"})) as url:
        said = asked(url)
    assert "429" in said


def test_credentials_go_out_as_mlflow_sends_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A name and a password win over a token; both may stand in a file or in the address."""
    seen: list[str | None] = []

    def answer(_: str, __: str, headers: dict[str, str]) -> Reply:
        seen.append(headers.get("Authorization"))
        return Reply(200, {"workspace": headers.get("X-MLFLOW-WORKSPACE")})

    with answering(answer) as url:
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "abc")
        monkeypatch.setenv("MLFLOW_WORKSPACE", "lab")
        assert Transport(url, server_settings.read_server_settings()).get("/x") == {"workspace": "lab"}
        (tmp_path / ".mlflow").mkdir()
        content = "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = p%%w\n"
        (tmp_path / ".mlflow" / "credentials").write_text(content, encoding="utf-8")
        settings = server_settings.read_server_settings(home=tmp_path)
        assert settings.given == ("MLFLOW_TRACKING_TOKEN", "~/.mlflow/credentials")
        Transport(url, settings).get("/x")
        named = Transport(url.replace("://", "://a:b%40c@"), settings)
        named.get("/x")
        assert named.where == url
    assert seen == ["Bearer abc", "Basic bWU6cCUldw==", "Basic YTpiQGM="]
    assert "p%%w" not in repr(settings)


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_time_limit_that_is_no_number_is_a_setting_that_is_wrong(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what stands in it."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", value)
    with pytest.raises(SettingsError, match=r"MLFLOW_HTTP_REQUEST_TIMEOUT: .* is not a number"):
        open_store("mlflow:http://127.0.0.1:1")


def test_a_connection_that_was_kept_may_be_closed_by_the_server() -> None:
    """The request is made again on a new one."""
    requests: list[int] = []

    def speak(connection: socket.socket) -> None:
        with suppress(OSError):
            for _ in range(2):
                if connection.recv(65536):
                    requests.append(1)
                if len(requests) == 2:
                    connection.close()
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with listening(speak) as url:
        transport = Transport(url, server_settings.read_server_settings())
        assert [transport.get("/x"), transport.get("/x")] == [{}, {}]
        transport.close()
    assert len(requests) == 3


@pytest.mark.parametrize(
    ("locator", "expected"),
    [
        ("postgresql+psycopg2://user:pass@db/mlflow", "a database server is not opened directly"),
        ("mysql://db/mlflow", "run `mlflow server --backend-store-uri"),
        ("mssql+pyodbc://db/mlflow", "a database server is not opened directly"),
        ("s3://bucket/mlruns", "no store of MLflow begins with s3:"),
        ("http://", "not a URL"),
        ("http://host:port", "not a URL"),
    ],
)
def test_what_cannot_be_read_is_refused(locator: str, expected: str) -> None:
    """Opening a team's database server with a newer client could change its schema for all of them."""
    with pytest.raises(SourceError) as failed:
        Mlflow().runs(f"mlflow:{locator}", Selection())
    assert expected in str(failed.value)
    assert "pass@" not in str(failed.value)


@pytest.mark.parametrize("how", ["databricks", "databricks://profile", "AUTH", "AWS_SIGV4"])
def test_what_needs_the_extra_says_so(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without MLflow installed, in one line."""
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    locator = how
    if how.isupper():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{how}", "true")
        locator = "http://127.0.0.1:1"
    with pytest.raises(SourceError, match=r"it needs MLflow's own client; pip install 'gpureport\[mlflow\]'"):
        Mlflow().runs(f"mlflow:{locator}", Selection())
