"""Settings of a server of MLflow from the environment: the variables that its own client honours."""

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpureport.errors import SettingsError

CONNECT, FIRST, LATER = 5.0, 10.0, 30.0
"""Seconds to connect, until the first answer, and until each later one."""
_CREDENTIALS = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How to talk to a server.

    Attributes:
        username: name for basic authentication; None without.
        password: password that goes with it.
        token: bearer token; a name and a password win over it.
        insecure: whether certificates are not verified.
        authority: file with the certificates that are trusted, None for those of the system.
        certificate: file with the client's own certificate, None without.
        workspace: workspace of the server, None for the default one.
        first: seconds until the first answer.
        later: seconds until each later one.
        retries: how often a request is made again when the server is overloaded.
        given: names of the variables with credentials that are set, without their values.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    insecure: bool = False
    authority: str | None = None
    certificate: str | None = None
    workspace: str | None = None
    first: float = FIRST
    later: float = LATER
    retries: int = 1
    given: tuple[str, ...] = ()

    @property
    def credentials(self) -> str:
        """Which credentials are set, in words, without their values."""
        return (
            f"set are {', '.join(self.given)}"
            if self.given
            else "none of MLFLOW_TRACKING_USERNAME/_PASSWORD/_TOKEN is set"
        )


def read_server_settings(environment: Mapping[str, str] | None = None, home: Path | None = None) -> ServerSettings:
    """Return the settings of the environment and of MLflow's file of credentials.

    Args:
        environment: variables, those of the process when None.
        home: home folder, that of the user when None.

    Raises:
        SettingsError: when a variable should be a number and is not.
    """
    known = os.environ if environment is None else environment
    filed = _read_credentials((Path.home() if home is None else home) / ".mlflow" / "credentials")
    own = {name: known.get(name) or filed.get(name.lower()) for name in _CREDENTIALS[:2]}
    waits = _read_number(known, "MLFLOW_HTTP_REQUEST_TIMEOUT")
    retries = _read_number(known, "MLFLOW_HTTP_REQUEST_MAX_RETRIES")
    given = [name for name in _CREDENTIALS if known.get(name)]
    given += ["~/.mlflow/credentials"] if any(not known.get(name) and filed.get(name.lower()) for name in own) else []
    return ServerSettings(
        username=own[_CREDENTIALS[0]],
        password=own[_CREDENTIALS[1]],
        token=known.get("MLFLOW_TRACKING_TOKEN") or None,
        insecure=known.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in {"true", "1"},
        authority=known.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or None,
        certificate=known.get("MLFLOW_TRACKING_CLIENT_CERT_PATH") or None,
        workspace=known.get("MLFLOW_WORKSPACE") or None,
        first=waits or FIRST,
        later=waits or LATER,
        retries=1 if retries is None else int(retries),
        given=tuple(given),
    )


def _read_credentials(path: Path) -> dict[str, str]:
    """Return what MLflow's file of credentials holds; nothing where there is none, or it cannot be read."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    return dict(parser["mlflow"]) if parser.has_section("mlflow") else {}


def _read_number(known: Mapping[str, str], name: str) -> float | None:
    text = known.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SettingsError(name, f"{text!r} is not a number", "give a number, or unset it", code="not_a_number")
    return value
