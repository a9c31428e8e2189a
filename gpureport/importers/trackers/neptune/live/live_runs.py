"""Runs on a self-hosted Neptune server, read by a process with a time limit."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.trackers.neptune.exports import exported_runs
from gpureport.importers.trackers.neptune.run_content import NeptuneRun, RunContent, RunOutline
from gpureport.json_text import parse_json

_MODULE = "gpureport.importers.trackers.neptune.live.client_process"
_RETRIES = "5"
"""Seconds the client tries to reach a server."""
_LOADING = 60.0
"""Seconds the client may take to be imported; about 16 on a busy machine."""
_SILENT = 30.0
"""Seconds without an answer after which a server is given up."""
_SERVICE = "Neptune's hosted service was closed on 2026-03-05: read an export or a .neptune folder"
_HINTS: dict[str, CodedProblem] = {
    "NeptuneMissingApiTokenException": (
        "no API token",
        "set NEPTUNE_API_TOKEN to that of your server",
        "not_logged_in",
    ),
    "NeptuneInvalidApiTokenException": (
        "the API token is not valid",
        "copy it again from your server",
        "not_logged_in",
    ),
    "CannotResolveHostname": ("the server's name cannot be resolved", _SERVICE, "no_connection"),
    "NeptuneConnectionLostException": (
        "the server does not answer",
        "check that it runs, and its address",
        "no_answer",
    ),
    "ConnectionTimeoutException": ("the server does not answer", "check that it runs, and its address", "no_answer"),
    "RunNotFound": ("no such run", "--list shows what the project holds", "unknown_run"),
    "ProjectNotFound": ("no such project", "give neptune://workspace/project", "no_such_project"),
    "ProjectNotFoundWithSuggestions": ("no such project", "give neptune://workspace/project", "no_such_project"),
    "Unauthorized": ("the server refuses the API token", "copy it again from your server", "access_denied"),
    "Forbidden": ("the API token has no access to the project", "ask for it, or use another token", "access_denied"),
}


def find_live_runs(store: str, run: str, selection: Selection) -> list[NeptuneRun]:
    """Return a run of a project, or all of them.

    Args:
        store: `neptune://workspace/project`, with the run behind it where one is meant.
        run: the run, where the locator names it behind a `#`.
        selection: which runs are meant; its `filter` is a query in Neptune's language.

    Raises:
        SourceError: when the server does not answer in time, or has no such project.
    """
    parts = store.removeprefix("neptune://").strip("/").split("/")
    wanted = run or (parts[2] if len(parts) == 3 else "")  # noqa: PLR2004 - workspace, project, run
    if len(parts) not in {2, 3} or not all(parts):
        raise SourceError(
            store, "not the locator of a project", "give neptune://workspace/project/RUN-ID", code="not_a_locator"
        )
    project = "/".join(parts[:2])
    if find_spec("neptune") is None:
        what = "reading from a server needs the package neptune"
        raise SourceError(store, what, "pip install 'gpureport[neptune]'", code="not_installed")
    if wanted:
        return [LiveRun(store=store, project=project, id=wanted, known=None)]
    with tempfile.TemporaryDirectory(prefix="gpureport-") as folder:
        read_in_process(store, project, "", selection.filter, Path(folder, "runs.parquet"))
        found = [held.outline() for held in exported_runs.find_exported_runs(Path(folder, "runs.parquet"))]
    return [LiveRun(store=store, project=project, id=outline.id, known=outline) for outline in found]


@dataclass(frozen=True, kw_only=True)
class LiveRun:
    """One run of a server; `known` is its outline in a listing, None without a listing."""

    store: str
    project: str
    id: str
    known: RunOutline | None
    fault: SourceError | None = None

    @property
    def key(self) -> str:
        """Project and id."""
        return f"{self.project} {self.id}"

    def outline(self) -> RunOutline:
        """Return what a listing says, of which the series are no part."""
        if self.known is None:
            return self._read.outline
        return replace(self.known, surveyed=False)

    def contents(self) -> list[RunContent]:
        """Read it.

        Raises:
            SourceError: when the server does not answer in time, or has no such run.
        """
        return [self._read]

    @cached_property
    def _read(self) -> RunContent:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as folder:
            out = Path(folder, "run.parquet")
            read_in_process(self.store, self.project, self.id, None, out)
            held = exported_runs.find_exported_runs(out)
            if not held:
                raise SourceError(
                    self.store, f"run {self.id} holds nothing", "--list shows what the project holds", code="empty_run"
                )
            (content,) = held[0].contents()
        points = sum(content.outline.points.values())
        # the process that reads runs in UTC, so times are
        return replace(content, maybe_local=False, state=f"{points}", size=None)


def read_in_process(store: str, project: str, run: str, query: str | None, out: Path) -> None:
    """Read a run or a listing into a file, in a process that is ended when the server is silent.

    Raises:
        SourceError: when it could not be read.
    """
    environment = {"NEPTUNE_RETRIES_TIMEOUT": _RETRIES, **os.environ, "TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    request = json.dumps({"project": project, "run": run, "query": query, "out": str(out)})
    command = [sys.executable, "-m", _MODULE, request]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            said = _follow_progress(process, store)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if "error" in said:
        raise _client_error(store, said["error"], said.get("what", ""))
    if not out.exists():
        raise SourceError(store, "the reading process ended early", "try it again with --debug", code="no_answer")


def _follow_progress(process: "subprocess.Popen[bytes]", store: str) -> dict[str, str]:
    """Return the last message of a process; end it after too long a silence."""
    pipe: IO[bytes] | Any = process.stdout
    said: dict[str, str] = {}
    held, limit = b"", _LOADING
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        until = time.monotonic() + limit
        while True:
            if not selector.select(max(until - time.monotonic(), 0.0)):
                raise SourceError(
                    store,
                    f"no answer within {limit:.0f} s",
                    "check that the server runs, and its address",
                    code="no_answer",
                )
            data = os.read(pipe.fileno(), 65536)
            if not data:
                process.wait(_SILENT)
                return said
            *lines, held = (held + data).split(b"\n")
            said = parse_json(lines[-1]) if lines else said
            limit = _SILENT
            until = time.monotonic() + limit


def _client_error(store: str, name: str, what: str) -> SourceError:
    if name in _HINTS:
        problem, hint, code = _HINTS[name]
        return SourceError(store, problem, hint, code=code)
    return SourceError(store, f"the server could not be read ({name}: {what})", _SERVICE, code="request_failed")
