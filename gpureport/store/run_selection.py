"""Selects stored runs by name, by id, or by conditions such as `gpus>=8`, all of which must be met.

Dates are compared at the given precision, in each run's time zone or, with a final `Z`, in UTC. A run that lacks the
compared value never matches. One of a run's models, hosts or sources must match. With `!=`, none of them may be equal.
Commands that need no series import this module without Arrow.
"""

import operator as compare
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zoneinfo import ZoneInfo

from gpureport.errors import SettingsError, StoreError, UnknownRunError
from gpureport.parsing import parse_duration
from gpureport.places import Place

if TYPE_CHECKING:
    from gpureport.recording import Run
    from gpureport.store.run_records import RunIndex, StoredRun
    from gpureport.store.store import Entry, Store

FOLDER = ".gpureport"
BASELINES = "baselines"
_ID = re.compile(r"[0-9a-f]{16}")
_SHORTEST_PREFIX = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISON = re.compile(r"((?:tag|param):[^=!<>~]+|[^=!<>~:]+)(!=|<=|>=|==?|<|>|~)(.*)", re.DOTALL)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?Z?")
_EQUALS: dict[str, Callable[[Any, Any], bool]] = {"=": compare.eq, "!=": compare.ne}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": compare.lt, "<=": compare.le, ">": compare.gt, ">=": compare.ge}
_COMPARE = _EQUALS | _ORDERS
_TEXTS: "dict[str, Callable[[Run], Iterable[str | None]]]" = {
    "name": lambda run: [run.name],
    "id": lambda run: [run.id],
    "step": lambda run: [run.step],
    "model": lambda run: (gpu.model for gpu in run.gpus),
    "host": lambda run: (device.node for device in run.devices),
    "uuid": lambda run: (gpu.uuid for gpu in run.gpus),
    "source": lambda run: (source.kind for source in run.sources),
}
_NUMBERS: "dict[str, Callable[[Run], float]]" = {
    "gpus": lambda run: len(run.gpus),
    "duration": lambda run: (run.ended - run.started) / 1e6,
}
TIMES = ("started", "ended")
KEYS = (*_TEXTS, *_NUMBERS, *TIMES)
"""The keys that select runs, in addition to `tag:KEY` and `param:KEY`."""
_HINT = f"write KEY=VALUE; keys are {', '.join(KEYS)}, tag:KEY and param:KEY; operators are =, !=, <, <=, >, >= and ~"
_VALUES = (
    "give a number for gpus, a time such as 1h30m for duration, and a date such as 2026-10-14 for started and ended; "
    "use =, !=, <, <=, > or >= for these and for numbers in tags and params, and =, != or ~ for text"
)


def find_store_folder(start: Path) -> Path:
    above = next((each for each in (start, *start.parents) if (each / FOLDER).is_dir()), start)
    return above / FOLDER


def list_baseline_names(store: Place) -> list[str]:
    return sorted(path.name for path in (store / BASELINES).glob("[!.]*/"))


class RunLookup:
    """Finds a store's runs by what the user types, reading the store once, on first use."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    @cached_property
    def _index(self) -> "RunIndex":
        return self._store.index()

    @property
    def names(self) -> list[str]:
        return [*dict.fromkeys(stored.run.name for stored in self._index.runs)]

    def find(self, name: str) -> "Entry":
        """Return the run with this name, id, or start of an id."""
        # a complete id is the name of a folder, which is read without reading other runs
        if _ID.fullmatch(name) and (entry := self._store.get(name)):
            return entry
        runs = [stored.run for stored in self._index.runs]
        ids = {run.id for run in runs if run.name == name}
        if len(name) >= _SHORTEST_PREFIX:
            ids |= {each for each in (*(run.id for run in runs), *self._index.damaged) if each.startswith(name)}
        if len(ids) > 1:
            hint = f"give one of these ids: {', '.join(sorted(ids))}"
            raise StoreError(name, f'{len(ids)} runs are named "{name}"', hint, code="several_runs")
        if ids and (entry := self._store.get(*ids)):
            return entry
        what = f'no file or stored run named "{name}"'
        raise UnknownRunError(name, what, "list runs: gpureport runs list", code="unknown_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    key: str
    operator: str
    value: str

    @property
    def text(self) -> str:
        return self.key + self.operator + self.value

    @property
    def label(self) -> tuple[str, str] | None:
        kind, colon, key = self.key.partition(":")
        return (kind, key) if colon else None

    def matches(self, run: "Run") -> bool:
        if self.key in _NUMBERS:
            wanted = parse_duration(self.value) if self.key == "duration" else float(self.value)
            return _COMPARE[self.operator](_NUMBERS[self.key](run), wanted)
        if self.key in TIMES:
            return not run.quality.synthetic_time and self._matches_date(getattr(run, self.key), run.timezone)
        if self.label:
            kind, name = self.label
            texts = [value for key, value in getattr(run, f"{kind}s") if key == name]
        else:
            texts = [text for text in _TEXTS[self.key](run) if text]
        return bool(texts) and any(map(self._matches_text, texts)) is not (self.operator == "!=")

    def _matches_text(self, text: str) -> bool:
        if self.operator == "~":
            return fnmatchcase(text.lower(), self.value.lower())
        one, other = (_parse_number(text), _parse_number(self.value)) if self.label else (None, None)
        if self.operator in _ORDERS:
            return one is not None and other is not None and _ORDERS[self.operator](one, other)
        return text == self.value or (one is not None and one == other)

    def _matches_date(self, microseconds: int, timezone: str | None) -> bool:
        time = _format_time(microseconds, None if self.value.endswith("Z") else timezone)
        wanted = self.value.removesuffix("Z")
        if self.operator == "~":
            return fnmatchcase(time, wanted)
        return _COMPARE[self.operator](time[: len(wanted)], wanted)


RunSelection: TypeAlias = tuple[Condition, ...]
"""The conditions that a run must meet; an empty tuple selects all runs."""


def parse_condition(text: str) -> Condition:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise SettingsError("--where", f"{text!r} is not a comparison", _HINT, code="not_a_comparison")
    key, operator, value = match[1].strip(), match[2].replace("==", "="), match[3].strip()
    if not key.startswith(("tag:", "param:")) and key not in KEYS:
        named = f"{key.removeprefix('params.')}{operator}{value}"
        hint = f"write param:{named} for a parameter or tag:{named} for a tag; other keys are {', '.join(KEYS)}"
        raise SettingsError("--where", f"unknown key {key!r}", hint, code="unknown_key")
    value = value.replace(" ", "T") if key in TIMES else value
    if not _fits(key, operator, value):
        raise SettingsError("--where", f"{text!r} cannot be compared", _VALUES, code="not_a_comparison")
    return Condition(key=key, operator=operator, value=value)


def _fits(key: str, operator: str, value: str) -> bool:
    if key in _TEXTS:
        return operator not in _ORDERS
    if key in TIMES:
        return operator == "~" or _DATE.fullmatch(value) is not None
    if key in _NUMBERS:
        return operator != "~" and (parse_duration if key == "duration" else _parse_number)(value) is not None
    return operator not in _ORDERS or _parse_number(value) is not None


def parse_since(text: str, now: int) -> Condition:
    """Return the condition that a run ended on or after a date, or within a time such as `30d` before `now`."""
    seconds, date = parse_duration(text), text.strip().replace(" ", "T")
    if seconds is not None:
        date = f"{_format_time(now - round(min(seconds * 1e6, now)), None)}Z"
    elif not _DATE.fullmatch(date):
        raise SettingsError("--since", f"{text!r} is not a time", "write 30d, 12h or 2026-10-14", code="not_a_time")
    return Condition(key="ended", operator=">=", value=date)


def select_runs(runs: "Sequence[StoredRun]", selection: RunSelection) -> "list[StoredRun]":
    for kind, key in filter(None, (condition.label for condition in selection)):
        known = dict.fromkeys(name for stored in runs for name, _ in getattr(stored.run, f"{kind}s"))
        if runs and key not in known:
            hint = f"existing {kind}s are {', '.join(list(known)[:8]) or 'none'}"
            raise SettingsError("--where", f"no stored run has the {kind} {key!r}", hint, code="unknown_label")
    return [stored for stored in runs if all(condition.matches(stored.run) for condition in selection)]


def _format_time(microseconds: int, timezone: str | None) -> str:
    time = _EPOCH + timedelta(microseconds=microseconds)
    return f"{time.astimezone(ZoneInfo(timezone)) if timezone else time:%Y-%m-%dT%H:%M:%S}"


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
