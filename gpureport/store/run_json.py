"""`run.json`: a run and its quality as JSON a person can read, and back.

A flipped bit often gives another valid number, so the file carries the sha256 of its content. The hash covers the
values and not the bytes: other white space is not damage.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from gpureport.limits import LAST_MICROSECOND
from gpureport.recording import Run

_FIRST_KEYS = {"importer_version", "columns", "run"}


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
        ValueError: when it is not such a text, or was changed since it was written. `KeyError`, `TypeError` and
            `AttributeError` where it holds no run at all.
    """
    import msgspec  # noqa: PLC0415 - most commands read no stored run

    content = json.loads(text)
    written = content.pop("sha256", None)
    # a run stored before there was a checksum has these three keys alone
    if written != _hash_content(content) and (written is not None or content.keys() != _FIRST_KEYS):
        msg = "its content is not what was written"
        raise ValueError(msg)
    labels = {name: tuple(content["run"][name].items()) for name in ("params", "tags")}
    try:
        stored = msgspec.convert({**content, "run": {**content["run"], **labels}}, StoredRun)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if max(abs(stored.run.started), abs(stored.run.ended)) >= LAST_MICROSECOND:
        msg = "a time lies beyond all calendars"
        raise ValueError(msg)
    return stored


def _hash_content(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()
