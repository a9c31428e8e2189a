"""The report on many runs as JSON, and without the names of people, projects, machines, jobs, runs and GPUs."""

import re
from hashlib import sha256
from typing import Any

from gpureport.fleet.cards import Facts
from gpureport.report.formats.analysis_json import iso_time
from gpureport.report.formats.report_json import dump

SCHEMA = "gpureport.fleet/1"
_DIGITS = 6
_KEPT = frozenset(("model", "partition", "job_state"))
"""Labels whose values name nobody."""
_FILE = re.compile(r"[^\s:;,'\"()]*(?:[\\/@]|\.(?=[A-Za-z]))[^\s:;,'\"()]*")
"""A path, an address, or the name of a file."""
_SHOWN = 8


def write_json(report: Facts) -> str:
    """Return the report as JSON: null for what is not known; times as ISO 8601."""
    zone = "UTC" if report["is_zoned"] else None
    times = {name: report[name] and iso_time(report[name], zone) for name in ("started", "ended")}
    return dump(_round({"schema": SCHEMA, **report, **times}))


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_round(entry) for entry in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def anonymise_fleet_report(report: Facts) -> Facts:
    """Return the report with numbers or short hashes for names; times, amounts and models stay.

    Names cannot be looked for in a text, so what may hold one is replaced as a whole.
    """
    numbers: dict[tuple[str, str], str] = {}

    def number(label: str, name: str | None) -> str | None:
        if name is None or label in _KEPT:
            return name
        count = sum(known == label for known, _ in numbers)
        return numbers.setdefault((label, name), f"{label}_{count + 1}")

    def hide(value: Any) -> Any:
        if isinstance(value, list):
            return [hide(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"id": str(identity)}:
                return {"id": _hash(identity), "name": f"run-{_hash(identity)}", "source": None}
            case {"label": label, "groups": groups}:
                value = value | {"groups": [each | {"name": number(label, each["name"])} for each in groups]}
            case {"user": user}:
                value = value | {"user": number("user", user)}
            case {"uuid": uuid, "node": node, "device": _}:
                value = value | {"uuid": uuid and f"GPU-{_hash(uuid)}", "node": number("node", node)}
            case {"error": error}:
                value = value | {"error": _FILE.sub("<file>", error)}
            case {"card": card}:
                value = value | {"card": f"GPU-{_hash(card)}"}
            case {"selection": selection}:
                value = value | {"selection": selection and "a selection of runs"}
            case _:
                pass
        return {key: hide(entry) for key, entry in value.items()}

    # groupings first, so that numbers follow the order of losses
    hide(report["groupings"])
    hidden: Facts = hide(report)
    return hidden


def _hash(identity: str) -> str:
    return sha256(identity.encode()).hexdigest()[:_SHOWN]
