"""A server that is not there, or is none, is said so in one line."""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gpureport.errors import GpureportError
from tests.importers.trackers.mlflow.servers import Reply, answering, free_port, listening
from tests.importers.trackers.tracked import refused
from tests.support.tables import read_table

_VARIABLES = ("URI", "USERNAME", "PASSWORD", "TOKEN", "AUTH", "AWS_SIGV4", "INSECURE_TLS", "SERVER_CERT_PATH")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def asked(url: str) -> GpureportError:
    return refused(f"mlflow:{url}")


@pytest.mark.slow
def test_a_server_that_says_nothing_is_left_in_time() -> None:
    with listening(lambda _: None) as url:
        error = asked(url)
    assert (error.code, "no answer in 10 s" in error.what) == ("no_connection", True)


def test_what_does_not_answer_is_said() -> None:
    assert asked(f"http://127.0.0.1:{free_port()}").code == "no_connection"
    assert asked("http://gpureport.invalid").code == "no_connection"
    with listening(lambda connection: connection.close()) as url:
        assert asked(url).code == "no_connection"
    with listening(lambda connection: connection.sendall(b"220 mail ready\r\n\r\n")) as url:
        assert asked(url).code == "no_connection"
    with answering(lambda *_: Reply()) as url:
        assert asked(url.replace("http:", "https:")).code == "no_connection"


def test_answers_that_are_none_of_mlflow() -> None:
    for reply, code in (
        (Reply(501, "<html>Unsupported method ('POST')</html>"), "not_an_mlflow_server"),
        (Reply(404, "<html>gone</html>"), "not_an_mlflow_server"),
        (Reply(200, "<html>hello</html>"), "not_an_mlflow_server"),
        (Reply(200, "[]"), "not_an_mlflow_server"),
        (Reply(302, "", {"Location": "https://other.example/api/2.0/x"}), "not_an_mlflow_server"),
        (Reply(500, "oops"), "not_an_mlflow_server"),
        (Reply(500, {"error_code": "INTERNAL_ERROR", "message": "no\nspace"}), "server_failed"),
        (Reply(400, {"error_code": "BAD_REQUEST", "message": "no"}), "bad_request"),
    ):
        with answering(lambda *_, reply=reply: reply) as url:
            error = asked(url)
        assert (error.code, "<" in str(error)) == (code, False), reply
        assert reply.status != 302 or "https://other.example" in error.what


def test_refused_access_names_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda *_: Reply(403, "You are not authenticated")) as url:
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "somebody")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hunter2")
        error = asked(url.replace("://", "://me:secret@"))
    assert error.code == "access_denied"
    assert not any(value in str(error) for value in ("somebody", "hunter2", "secret"))


def test_an_overloaded_server_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    first = [Reply(503, "busy")]
    with answering(lambda *_: first.pop() if first else Reply(200, {})) as url:
        error = asked(url)
    assert (error.code, pauses) == ("no_finished_run", [1.0])
    with answering(lambda *_: Reply(429, "busy")) as url:
        assert "429" in asked(url).what


def test_credentials_go_out_as_mlflow_sends_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[str | None, str | None]] = []

    def answer(_: str, __: str, headers: dict[str, str]) -> Reply:
        seen.append((headers.get("Authorization"), headers.get("X-MLFLOW-WORKSPACE")))
        return Reply(200, {})

    with answering(answer) as url:
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "abc")
        monkeypatch.setenv("MLFLOW_WORKSPACE", "lab")
        asked(url)
        (tmp_path / ".mlflow").mkdir()
        content = "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = p%%w\n"
        (tmp_path / ".mlflow" / "credentials").write_text(content, encoding="utf-8")
        asked(url)
        assert asked(url.replace("://", "://a:b%40c@")).where == url
    sent = dict.fromkeys(seen)
    assert list(sent) == [("Bearer abc", "lab"), ("Basic bWU6cCUldw==", "lab"), ("Basic YTpiQGM=", "lab")]


def test_a_connection_that_was_kept_may_be_closed_by_the_server() -> None:
    requests: list[int] = []
    body = b'{"experiments": [{"experiment_id": "1", "name": "x"}]}'

    def speak(connection: socket.socket) -> None:
        with suppress(OSError):
            for _ in range(2):
                if connection.recv(65536):
                    requests.append(1)
                if len(requests) == 2:
                    connection.close()
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    with listening(speak) as url:
        assert asked(url).code == "no_finished_run"
    assert len(requests) >= 3


def test_settings_and_locators_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("soon", "-1", "nan"):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", value)
        error = asked("http://127.0.0.1:1")
        assert (error.code, error.where) == ("not_a_number", "MLFLOW_HTTP_REQUEST_TIMEOUT"), value
    for locator, code in read_table(Path(__file__).with_name("locators.tsv")):
        error = asked(locator)
        assert (error.code, "pass@" in str(error)) == (code, False), locator


def test_what_needs_the_extra_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    for how in ("databricks", "databricks://profile", "AUTH", "AWS_SIGV4"):
        locator = how
        if how.isupper():
            monkeypatch.setenv(f"MLFLOW_TRACKING_{how}", "true")
            locator = "http://127.0.0.1:1"
        error = asked(locator)
        assert (error.code, "gpureport[mlflow]" in error.hint) == ("not_installed", True), how


_CALL = """
import gpureport
from gpureport.errors import SourceError
try:
    gpureport.read("mlflow:databricks")
except SourceError as error:
    assert error.code == "request_failed", error
from mlflow.telemetry import get_telemetry_client
assert get_telemetry_client() is None
"""


@pytest.mark.slow
def test_nothing_is_sent_about_the_use_of_mlflow_s_own_client() -> None:
    known = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    subprocess.run([sys.executable, "-c", _CALL], check=True, env={"PATH": ""} | known, timeout=120)
