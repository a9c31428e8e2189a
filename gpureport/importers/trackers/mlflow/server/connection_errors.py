"""Errors of a connection to a server, in words a person can act on."""

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.server.server_settings import CONNECT
from gpureport.redaction import redact_start

CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
"""Raised when a server closes a connection."""


def unreachable_error(where: str, why: str) -> SourceError:
    """Return an error: the server cannot be reached."""
    return SourceError(
        where, f"cannot be reached: {why}", "check the address, and that the server runs", code="no_connection"
    )


def not_mlflow_error(where: str, why: str) -> SourceError:
    """Return an error: something answers that is not MLflow."""
    hint = "check the address, and the prefix it is served under"
    why = redact_start(" ".join(why.split()))
    return SourceError(where, f"it answers but is not an MLflow server ({why})", hint, code="not_an_mlflow_server")


@contextmanager
def explain_connection_errors(where: str) -> Iterator[None]:
    """Turn errors of a connection into one sentence; a closed connection is left to the caller.

    Raises:
        SourceError: saying what went wrong.
    """
    try:
        yield
    except CLOSED:
        raise
    except TimeoutError as error:
        said = str(error) if str(error).startswith("no answer") else f"no connection in {CONNECT:g} s"
        raise unreachable_error(where, said) from error
    except ConnectionRefusedError as error:
        raise unreachable_error(where, "connection refused") from error
    except socket.gaierror as error:
        raise unreachable_error(where, f"no such host ({error.strerror})") from error
    except ssl.SSLCertVerificationError as error:
        hint = "name a file of certificates with MLFLOW_TRACKING_SERVER_CERT_PATH"
        raise SourceError(
            where, f"its certificate is not trusted ({error.verify_message})", hint, code="untrusted_certificate"
        ) from error
    except ssl.SSLError as error:
        plain = where.replace("https:", "http:", 1)
        raise SourceError(
            where, f"it does not speak TLS ({error.reason or error})", f"try {plain}", code="no_tls"
        ) from error
    except http.client.HTTPException as error:
        raise not_mlflow_error(where, f"no HTTP: {error}") from error
    except OSError as error:
        raise unreachable_error(where, error.strerror or str(error)) from error
