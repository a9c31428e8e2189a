"""Answers of a server of MLflow, and what an error among them means."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.server.connection_errors import not_mlflow_error
from gpureport.importers.trackers.mlflow.server.server_settings import ServerSettings
from gpureport.redaction import redact_start

OVERLOADED = {429, 502, 503, 504}
"""Statuses of a server that is overloaded and may answer later."""
_LONGEST_WAIT = 30.0
_OK, _REDIRECTS, _REFUSED, _MISSING, _FAILS, _NO_SUCH_METHOD = 200, range(300, 400), (401, 403), 404, 500, 501


class MissingError(SourceError):
    """A server answered that there is no such thing."""


class InvalidRequestError(SourceError):
    """A server answered that a request is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def pause(self) -> float:
        """Seconds that an overloaded server asks to wait; 1 if it does not say."""
        try:
            return min(max(float(self.headers.get("Retry-After", "1")), 0.0), _LONGEST_WAIT)
        except ValueError:
            return 1.0

    @property
    def error_message(self) -> str | None:
        """The message of an error of MLflow; None if it is no error of MLflow."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or "error_code" not in found:
            return None
        return redact_start(" ".join(f"{found['error_code']}: {found.get('message', '')}".split()))


def check_answer(answer: Answer, where: str, path: str, settings: ServerSettings) -> Answer:
    """Return a successful answer.

    Raises:
        SourceError: saying what any other answer means.
    """
    if answer.status == _OK:
        return answer
    message = answer.error_message
    if answer.status in _REFUSED:
        what = f"access refused ({answer.status}; {settings.credentials})"
        raise SourceError(where, what, "set MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN", code="access_denied")
    if answer.status >= _FAILS and answer.status != _NO_SUCH_METHOD:
        raise SourceError(
            where,
            f"the server fails ({answer.status}{f', {message}' if message else ''})",
            "try again later",
            code="server_failed",
        )
    if message is not None:
        hint = "--list shows the runs"
        if answer.status == _MISSING:
            raise MissingError(where, message, hint, code="unknown_run")
        raise InvalidRequestError(where, message, hint, code="bad_request")
    if answer.status in _REDIRECTS and answer.headers.get("Location"):
        target = answer.headers["Location"].partition("/api/")[0]
        raise SourceError(where, f"it sends to another address ({answer.status})", f"give {target}", code="redirected")
    raise not_mlflow_error(where, f"{answer.status} on {path.partition('?')[0]}")
