"""Reads runs from a self-hosted Neptune server through Neptune's client; Neptune's public service has closed.

The client reads its time limit from the environment, returns times in its process's time zone, and
writes to standard output. So it runs in a separate process, which is terminated if it does not respond.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from faulthandler import dump_traceback_later
from functools import partial
from typing import Any

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.neptune.stored import Stored
from gpureport.parsing import parse_json

_SILENT = 60.0
"""Seconds to wait for a server, including up to 16 seconds to import the client."""
_SERVICE = "read an export or a .neptune folder, since Neptune's hosted service closed on 2026-03-05"
_PROBLEMS: dict[str, CodedProblem] = {
    "ModuleNotFound": ("the neptune package is not installed", "pip install 'gpureport[neptune]'", "not_installed"),
    "ApiToken": (
        "the API token is missing or invalid",
        "set NEPTUNE_API_TOKEN to your server's token",
        "not_logged_in",
    ),
    "Connection": ("the server does not respond", "check its address, and that it is running", "no_answer"),
}


def find_live_runs(place: str, run: str | None, query: str | None) -> list[Stored]:
    store, parts = f"neptune:{place}", place.strip("/").split("/")
    if len(parts) not in {2, 3} or not all(parts):
        raise SourceError(store, "it names no project", "give neptune://workspace/project/RUN-ID", code="not_a_locator")
    project = "/".join(parts[:2])
    if run := run or "".join(parts[2:]):
        return [_read_run(store, project, run)]
    found = []
    for said in _ask(store, project=project, query=query)["runs"]:
        run = said["scalars"]["sys/id"]
        load = partial(_read_run, store, project, run)
        found.append(Stored(key=f"{project} {run}", id=run, paths=None, project=project, load=load, **said))
    return found


def _read_run(store: str, project: str, run: str) -> Stored:
    said = _ask(store, project=project, run=run)
    points = said.pop("points")
    return Stored(key=f"{project} {run}", id=run, project=project, **said).with_points(points)


def _ask(store: str, **asked: str | None) -> dict[str, Any]:
    environment = {"NEPTUNE_RETRIES_TIMEOUT": "5", **os.environ, "TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", __name__, json.dumps({"silent": _SILENT, **asked})]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - our own
    said: dict[str, Any] = parse_json(done.stdout or b'{"error": "Connection", "what": ""}')
    if error := said.get("error"):
        problem = (f"reading from the server failed ({error}: {said['what']})", _SERVICE, "request_failed")
        what, hint, code = next((each for word, each in _PROBLEMS.items() if word in error), problem)
        raise SourceError(store, what, hint, code=code)
    return said


def _answer(project: str, silent: float, run: str | None = None, query: str | None = None) -> dict[str, Any]:
    dump_traceback_later(silent, exit=True)
    import neptune

    if run is None:
        names = ["sys/id", "sys/name", "sys/state", "sys/creation_time", "sys/trashed"]
        with neptune.init_project(project=project, mode="read-only") as container:
            table = container.fetch_runs_table(query=query, columns=names, progress_bar=False).to_pandas()
        return {"runs": [_part(values) for values in table.to_dict("records")]}
    with neptune.init_run(project=project, with_id=run, mode="read-only") as held:
        values, points = dict(_flatten(held.fetch())), {}
        for path, attribute in _flatten(held.get_structure()):
            dump_traceback_later(silent, exit=True)
            if type(attribute).__name__ == "FloatSeries":
                rows = attribute.fetch_values(progress_bar=False).to_dict("records")
                points[path] = [(_time(row["timestamp"]), row["value"], row["step"]) for row in rows]
    return {"points": points, "tags": sorted(values.get("sys/tags", ())), **_part(values)}


def _flatten(structure: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in structure.items():
        yield from _flatten(value, f"{above}{name}/") if isinstance(value, Mapping) else [(f"{above}{name}", value)]


def _part(values: Mapping[str, Any]) -> dict[str, Any]:
    scalars = {path: each for path, each in values.items() if isinstance(each, str | int | float) and each == each}  # noqa: PLR0124 - no NaN
    made = values.get("sys/creation_time")
    return {"scalars": scalars, "started": _time(made) if isinstance(made, datetime) else None}


def _time(moment: datetime) -> int:
    # a time without a zone is in UTC, which is the zone of this process
    return round(moment.timestamp() * 1000) * 1000


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        try:
            said = _answer(**json.loads(sys.argv[1]))
        except Exception as error:
            said = {"error": type(error).__name__, "what": str(error).strip().partition("\n")[0][:200]}
        json.dump(said, answer)
