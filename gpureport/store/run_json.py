"""`run.json`: a run and its quality as JSON a person can read, and back.

A flipped bit often gives another valid number, so the file carries the sha256 of its content. The hash covers the
values and not the bytes: other white space is not damage.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, TypeVar

from gpureport.data_quality import AbsentCells, ClockStep, LogEvent, LogGap, Quality, Rejected, RejectedLine
from gpureport.limits import LAST_MICROSECOND
from gpureport.recording import Device, Run, Source, Stage, Work

_FIRST_KEYS = {"importer_version", "columns", "run"}
Pairs = tuple[tuple[str, str], ...]
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as stored.

    Attributes:
        run: the run.
        columns: columns of its series, in order.
        importer_version: version of the importers that read it.
        series_sha256: sha256 of the file of its series; None in what was stored before there was one.
        training_sha256: sha256 of the file of its training metrics; None without training metrics.
    """

    run: Run
    columns: tuple[str, ...]
    importer_version: str
    series_sha256: str | None = None
    training_sha256: str | None = None


def dump_run(stored: StoredRun) -> str:
    """Return the JSON text; params and tags as objects."""
    run = asdict(stored.run)
    run["params"], run["tags"] = dict(stored.run.params), dict(stored.run.tags)
    if run["work"] is not None and not run["work"]["is_common"]:
        # as it was written before there was common work
        del run["work"]["is_common"]
    content: dict[str, Any] = {"importer_version": stored.importer_version, "columns": stored.columns, "run": run}
    for name in ("series_sha256", "training_sha256"):
        if getattr(stored, name) is not None:
            content[name] = getattr(stored, name)
    return json.dumps({**content, "sha256": _hash_content(content)}, indent=1) + "\n"


def load_run(text: str) -> StoredRun:
    """Return the run a JSON text holds.

    Raises:
        ValueError: when it is not such a text, or was changed since it was written. `KeyError` and `TypeError` when
            keys are missing or unknown.
    """
    content = json.loads(text)
    written = content.pop("sha256", None)
    # a run stored before there was a checksum has these three keys alone
    if written != _hash_content(content) and (written is not None or content.keys() != _FIRST_KEYS):
        msg = "its content is not what was written"
        raise ValueError(msg)
    return _check_kinds(
        StoredRun(
            run=_load_run_entry(content["run"]),
            columns=tuple(content["columns"]),
            importer_version=content["importer_version"],
            series_sha256=content.get("series_sha256"),
            training_sha256=content.get("training_sha256"),
        )
    )


def _check_kinds(stored: StoredRun) -> StoredRun:
    """Return a run whose name, times and columns are what lists and look-ups take them for.

    Raises:
        ValueError: when one is not.
    """
    run = stored.run
    texts: tuple[object, ...] = (run.id, run.name, stored.importer_version, *stored.columns)
    others: tuple[object, ...] = (run.step, run.timezone, stored.series_sha256, stored.training_sha256)
    times: tuple[object, ...] = (run.started, run.ended)
    if not (
        all(isinstance(each, str) for each in texts)
        and all(each is None or isinstance(each, str) for each in others)
        and all(isinstance(each, int) and abs(each) < LAST_MICROSECOND for each in times)
    ):
        msg = "a value is of another kind than the store writes"
        raise ValueError(msg)
    return stored


def _hash_content(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()


def _load_run_entry(entry: Mapping[str, Any]) -> Run:
    nested = {
        "sources": _load_each(Source, entry["sources"]),
        "devices": _load_each(Device, entry["devices"]),
        "stages": _load_each(Stage, entry["stages"]),
        "quality": _load_quality(entry["quality"]),
        "params": _load_pairs(entry["params"]),
        "tags": _load_pairs(entry["tags"]),
        "work": None if entry["work"] is None else Work(**entry["work"]),
    }
    return Run(**{**entry, **nested})


def _load_quality(entry: Mapping[str, Any]) -> Quality:
    nested = {
        "rejected": tuple(map(_load_rejected, entry["rejected"])),
        "absent_cells": _load_each(AbsentCells, entry["absent_cells"]),
        "gaps": _load_each(LogGap, entry["gaps"]),
        "clock_steps": _load_each(ClockStep, entry["clock_steps"]),
        "log_events": _load_each(LogEvent, entry.get("log_events", ())),
        "notes": tuple(entry["notes"]),
    }
    return Quality(**{**entry, **nested})


def _load_rejected(entry: Mapping[str, Any]) -> Rejected:
    return Rejected(**{**entry, "examples": _load_each(RejectedLine, entry.get("examples", ()))})


def _load_each(kind: type[Part], entries: Iterable[Mapping[str, Any]]) -> tuple[Part, ...]:
    return tuple(kind(**entry) for entry in entries)


def _load_pairs(entry: Mapping[str, str]) -> Pairs:
    return tuple(entry.items())
