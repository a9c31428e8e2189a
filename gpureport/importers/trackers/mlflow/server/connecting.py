"""Connecting to a server within a time."""

import http.client
import socket
import ssl
import threading

from gpureport.importers.trackers.mlflow.server.server_settings import CONNECT, ServerSettings


def connected(host: str, port: int, settings: ServerSettings, *, secure: bool) -> http.client.HTTPConnection:
    """Return a connection to a server.

    Raises:
        OSError: when it cannot be reached, or not in time.
    """
    _resolved(host, port)
    if secure:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=CONNECT, context=_context(settings)
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=CONNECT)
    connection.connect()
    if connection.sock is not None:
        connection.sock.settimeout(max(settings.first, settings.later))
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _context(settings: ServerSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.authority)
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate:
        context.load_cert_chain(settings.certificate)
    return context


def _resolved(host: str, port: int) -> None:
    """Look a host up, which knows no time limit of its own.

    Raises:
        OSError: when there is no such host, or nobody answers in time.
    """
    failed: list[OSError | None] = []

    def look_up() -> None:
        try:
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            failed.append(None)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(CONNECT)
    if not failed:
        raise OSError(0, f"nobody says in {CONNECT:g} s which address {host} has")
    if failed[0] is not None:
        raise failed[0]
