"""Folders as Neptune's client up to 1.x leaves them, written here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.importers.trackers.neptune.schedule import Points, Schedule

RUN = "34d8aa7f-eb52-4187-b43c-3cb0bae4f42f"
Operation = dict[str, Any]


def operation(kind: str, path: str, **said: object) -> Operation:
    return {"type": kind, "path": path.split("/"), **said}


def floats(path: str, values: Points) -> list[Operation]:
    return [
        operation("LogFloats", path, values=[{"value": value, "step": None, "ts": at / 1e6}]) for at, value in values
    ]


def operations(schedule: Schedule, *, hostname: str = "node-a", name: str = "baseline") -> list[Operation]:
    space = schedule.namespace
    found = [
        operation("AssignString", "sys/name", value=name),
        operation("AssignString", f"{space}/hostname", value=hostname),
        operation("AssignString", f"{space}/pid", value="1404"),
        operation("AddStrings", "sys/tags", values=["sample"]),
        operation("ClearStringLog", f"{space}/stdout"),
        operation("UploadFileSet", "source_code/files", file_globs=[], reset="False"),
    ]
    for path, values in schedule.series().items():
        leaf = path.rpartition("/")[2]
        highest = {"gpu_memory": 24.0, "gpu_power": 300.0}.get(leaf.rstrip("_0123456789"), 100.0)
        found.append(operation("ConfigFloatSeries", path, min=0.0, max=highest, unit="%"))
        found.append(operation("ClearFloatLog", path))
        found += floats(path, values)
    found.append(operation("AssignInt", "parameters/batch_size", value=64))
    return found


def write(  # noqa: PLR0913 - what a test varies
    folder: Path,
    given: list[Operation],
    *,
    mode: str = "offline",
    run: str = RUN,
    first: int = 1,
    put: int | None = None,
    container: str = "run",
    about: Mapping[str, object] | None = None,
    at: float = 1_773_480_413.0,
) -> Path:
    place = folder / mode / f"{container}__{run}__1404__oda9vxk6"
    place.mkdir(parents=True)
    usual = {
        "mode": mode,
        "containerId": run,
        "containerType": container,
        "structureVersion": 3,
        "neptuneClientVersion": "1.14.0.post2",
        "createdAt": "2026-03-14T09:26:53.100000+00:00",
    }
    if about != {}:
        (place / "metadata.json").write_text(json.dumps(usual if about is None else about))
    lines = [json.dumps({"obj": each, "version": number, "at": at}) for number, each in enumerate(given, first)]
    (place / f"data-{first}.log").write_text("".join(f"{line}\n" for line in lines))
    (place / "last_put_version").write_text(str(first + len(given) - 1 if put is None else put))
    (place / "last_ack_version").write_text("")
    return place
