"""Runs on a Neptune server of one's own, read through its client; Neptune's public service is closed.

The client takes its time limit from the environment when it is imported, gives times in the zone of its process, and
writes to standard output. So it runs in a process of its own, `python -m` this module, that ends when it is silent.
"""

import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.neptune.hardware import STEP_NOT_RECORDED, STEP_UNITS, make_series
from gpureport.importers.neptune.stored import Content, StoredRun, merge_contents
from gpureport.json_text import parse_json

_LOADING, _SILENT = 60.0, 30.0
"""Seconds the client may take to be imported (about 16 on a busy machine), and a server to answer."""
_SERVICE = "Neptune's hosted service was closed on 2026-03-05: read an export or a .neptune folder"
_PROBLEMS: dict[str, CodedProblem] = {
    "ApiToken": ("no valid API token", "set NEPTUNE_API_TOKEN to that of your server", "not_logged_in"),
    "CannotResolve": ("the server's name cannot be resolved", _SERVICE, "no_connection"),
    "Connection": ("the server does not answer", "check that it runs, and its address", "no_answer"),
    "RunNotFound": ("no such run", "--list shows what the project holds", "unknown_run"),
    "ProjectNotFound": ("no such project", "give neptune://workspace/project", "no_such_project"),
    "Unauthorized": ("the server refuses the API token", "copy it again from your server", "access_denied"),
    "Forbidden": ("the API token has no access to the project", "ask for it, or use another token", "access_denied"),
}
"""Words of the names of the client's exceptions to what is wrong."""


def find_live_runs(locator: str, query: str | None) -> list[StoredRun]:
    """Return the run that a locator names, or those of a project that a query in Neptune's language selects, or all.

    Raises:
        SourceError: when the server does not answer in time, or has no such project.
    """
    store, _, run = locator.partition("#")
    parts = store.removeprefix("neptune://").strip("/").split("/")
    if len(parts) not in {2, 3} or not all(parts):
        hint = "give neptune://workspace/project/RUN-ID"
        raise SourceError(store, "not the locator of a project", hint, code="not_a_locator")
    if find_spec("neptune") is None:
        what, hint = "reading from a server needs the package neptune", "pip install 'gpureport[neptune]'"
        raise SourceError(store, what, hint, code="not_installed")
    project, run = "/".join(parts[:2]), run or "".join(parts[2:])
    if run:
        return [merge_contents(_read_run(store, project, run), f"{project} {run}", run)]
    found = []
    for values in _ask(store, project=project, query=query)["runs"]:
        run_id = values["scalars"]["sys/id"]
        read = partial(_read_run, store, project, run_id)
        found.append(StoredRun(key=f"{project} {run_id}", id=run_id, points=None, project=project, read=read, **values))
    return found


def _read_run(store: str, project: str, run: str) -> list[Content]:
    said = _ask(store, project=project, run=run)
    series = {path: make_series(points) for path, points in said.pop("series").items() if points}
    if not series and not said["scalars"]:
        hint = "--list shows what the project holds"
        raise SourceError(store, f"run {run} holds nothing", hint, code="empty_run")
    return [
        Content(state=f"{sum(len(each.times) for each in series.values())}", series=series, project=project, **said)
    ]


def _ask(store: str, **asked: str | None) -> dict[str, Any]:
    """Return what a process reads of a project or run.

    Raises:
        SourceError: when it could not read it.
    """
    # the client tries for 5 s to reach a server
    environment = {"NEPTUNE_RETRIES_TIMEOUT": "5", **os.environ, "TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", __name__, json.dumps({"silent": _SILENT, **asked})]
    silent = subprocess.DEVNULL
    done = subprocess.run(command, env=environment, stdin=silent, stdout=-1, stderr=silent, check=False)  # noqa: S603 - our own module
    said: dict[str, Any] = parse_json(done.stdout or b'{"error": "Connection"}')
    if error := said.get("error"):
        other = (f"the server could not be read ({error}: {said['what']})", _SERVICE, "request_failed")
        what, hint, code = next((known for word, known in _PROBLEMS.items() if word in error), other)
        raise SourceError(store, what, hint, code=code)
    return said


def _answer(project: str, silent: float, run: str | None = None, query: str | None = None) -> dict[str, Any]:
    """Return single values of a run and its points as time, value and step; or single values of runs."""
    faulthandler.dump_traceback_later(_LOADING, exit=True)
    import neptune  # noqa: PLC0415 - an extra, and slow to load

    faulthandler.dump_traceback_later(silent, exit=True)
    if run is None:
        names = ["sys/id", "sys/name", "sys/state", "sys/creation_time", "sys/trashed"]
        with neptune.init_project(project=project, mode="read-only") as container:
            table = container.fetch_runs_table(query=query, columns=names, progress_bar=False).to_pandas()
        return {"runs": [_part(values) for values in table.to_dict("records")]}
    with neptune.init_run(project=project, with_id=run, mode="read-only") as held:
        values, series = dict(_flatten(held.fetch())), {}
        for path, attribute in _flatten(held.get_structure()):
            faulthandler.dump_traceback_later(silent, exit=True)
            if type(attribute).__name__ == "FloatSeries":
                points = attribute.fetch_values(progress_bar=False).to_dict("records")
                series[path] = [(_time(each["timestamp"]), float(each["value"]), _step(each)) for each in points]
    return {"series": series, "tags": sorted(values.get("sys/tags", ())), **_part(values)}


def _flatten(structure: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in structure.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


def _part(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Part single values from times; pandas has NaN, which differs from itself, where a listing has nothing."""
    known = {path: each for path, each in values.items() if each == each}  # noqa: PLR0124
    return {
        "scalars": {path: each for path, each in known.items() if isinstance(each, str | int | float)},
        "moments": {path: _time(each) for path, each in known.items() if isinstance(each, datetime)},
    }


def _time(moment: datetime) -> int:
    """Return a time to the millisecond; one without a zone is in that of the process, which is UTC."""
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000) * 1000


def _step(point: Mapping[str, Any]) -> int:
    return STEP_NOT_RECORDED if point.get("step") is None else round(float(point["step"]) * STEP_UNITS)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        try:
            said = _answer(**json.loads(sys.argv[1]))
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = {"error": type(error).__name__, "what": "".join(lines[:1])[:200]}
        json.dump(said, answer)
