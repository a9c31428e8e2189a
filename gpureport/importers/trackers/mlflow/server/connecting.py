"""Connecting to a server within a time."""

import http.client
import ssl

from gpureport.importers.trackers.mlflow.server.server_settings import CONNECT, ServerSettings


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
