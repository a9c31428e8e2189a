"""Which stored runs are wanted: comparisons such as `gpus>=8`, all of which a run must meet.

A comparison is `KEY OPERATOR VALUE`:

- `name`, `id`, `step`, `model`, `host`, `uuid`, `source`, `tag:KEY`, `param:KEY` are text: `=`, `!=`, and `~` for a
  pattern with `*` and `?` that ignores case;
- `gpus` is a number, `duration` a time such as `90s`, `30m`, `2h` or `1h30m`: `=`, `!=`, `<`, `<=`, `>`, `>=`;
- values of `tag:KEY` and `param:KEY` are compared as numbers by `<`, `<=`, `>`, `>=`, and by `=` where both are such;
- `started` and `ended` are dates as far as they are written: `started=2026-10` is a run of that October. A date is in
  the time zone of each run, or in UTC with a `Z` at its end.

A run that lacks what is compared does not match, whatever the operator. Of several models, hosts or sources of a run
one must match, and with `!=` none may be equal.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain
from typing import TypeVar
from zoneinfo import ZoneInfo

from gpureport.errors import SettingsError
from gpureport.store.indexed_run import IndexedRun

Ordered = TypeVar("Ordered", str, float)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISON = re.compile(r"((?:tag|param):[^=!<>~]+|[^=!<>~:]+)(!=|<=|>=|==?|<|>|~)(.*)", re.DOTALL)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?Z?")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:w|d|h|min|m|s))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(w|d|h|min|m|s)")
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}

_TEXTS: dict[str, Callable[[IndexedRun], Sequence[str | None]]] = {
    "name": lambda run: (run.name,),
    "id": lambda run: (run.id,),
    "step": lambda run: (run.step,),
    "model": lambda run: run.models,
    "host": lambda run: run.hosts,
    "uuid": lambda run: run.uuids,
    "source": lambda run: run.source_kinds,
}
_NUMBERS: dict[str, Callable[[IndexedRun], float]] = {
    "gpus": lambda run: run.gpus,
    "duration": lambda run: run.seconds,
}
_TIMES: dict[str, Callable[[IndexedRun], int]] = {
    "started": lambda run: run.started,
    "ended": lambda run: run.ended,
}
_LABELS: dict[str, Callable[[IndexedRun], Sequence[tuple[str, str]]]] = {
    "tag": lambda run: run.tags,
    "param": lambda run: run.params,
}
KEYS = (*_TEXTS, *_NUMBERS, *_TIMES)
"""What runs are selected by, besides `tag:KEY` and `param:KEY`."""
_ORDERS = {"<", "<=", ">", ">="}
_HINT = f"write KEY=VALUE with one of {', '.join(KEYS)}, tag:KEY, param:KEY, and =, !=, <, <=, >, >= or ~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison; made by `parse_condition`, which checks that it makes sense.

    Attributes:
        key: what is compared, such as `gpus` or `tag:user`.
        operator: `=`, `!=`, `<`, `<=`, `>`, `>=` or `~`.
        value: what it is compared with, as typed.
    """

    key: str
    operator: str
    value: str

    @property
    def text(self) -> str:
        """The comparison as `--where` takes it."""
        return f"{self.key}{self.operator}{self.value}"

    @property
    def label(self) -> tuple[str, str] | None:
        """`tag` or `param` and the key of it; None of any other condition."""
        kind, colon, key = self.key.partition(":")
        return (kind, key) if colon else None

    def matches(self, run: IndexedRun) -> bool:
        """Return whether a run meets the condition."""
        if self.key in _NUMBERS:
            wanted = _parse_seconds(self.value) if self.key == "duration" else float(self.value)
            return wanted is not None and _compare(_NUMBERS[self.key](run), self.operator, wanted)
        if self.key in _TIMES:
            return not run.synthetic_time and _matches_date(_TIMES[self.key](run), run, self.operator, self.value)
        if self.label:
            kind, key = self.label
            texts = [value for known, value in _LABELS[kind](run) if known == key]
        else:
            texts = [text for text in _TEXTS[self.key](run) if text is not None]
        negated = self.operator == "!="
        return bool(texts) and any(self._matches_text(text) for text in texts) is not negated

    def _matches_text(self, text: str) -> bool:
        """Return whether a text matches; of `!=` whether it is equal."""
        if self.operator == "~":
            return fnmatchcase(text.lower(), self.value.lower())
        one, other = (_parse_number(text), _parse_number(self.value)) if self.label else (None, None)
        if self.operator in _ORDERS:
            return one is not None and other is not None and _compare(one, self.operator, other)
        return text == self.value or (one is not None and one == other)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSelection:
    """Which stored runs are wanted: those that meet every condition; all without one."""

    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        """Return whether it selects at all."""
        return bool(self.conditions)

    @property
    def needs_time(self) -> bool:
        """Whether it asks when a run was, which a log without time stamps does not say."""
        return any(condition.key in _TIMES for condition in self.conditions)


def parse_condition(text: str) -> Condition:
    """Return a comparison such as `tag:user=ann`.

    Raises:
        SettingsError: when it is none, its key is not known, or key, operator and value do not fit.
    """
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise SettingsError("--where", f"{text!r} is no comparison", _HINT, code="not_a_comparison")
    key, operator, value = match[1].strip(), match[2].replace("==", "="), match[3].strip()
    if not key.startswith(("tag:", "param:")) and key not in KEYS:
        close = get_close_matches(key.lower(), KEYS, n=1)
        label = f"write tag:{key}{operator}{value} for a tag; other keys are {', '.join(KEYS)} and param:KEY"
        hint = f"did you mean {close[0]!r}?" if close else label
        raise SettingsError("--where", f"no key {key!r}", hint, code="unknown_key")
    found = Condition(key=key, operator=operator, value=value.replace(" ", "T") if key in _TIMES else value)
    if problem := _find_problem(found):
        code, what, hint = problem
        raise SettingsError("--where", f"{text!r}: {what}", hint, code=code)
    return found


def _find_problem(condition: Condition) -> tuple[str, str, str] | None:
    """Return the code of what is wrong with a condition, what it is and what to write instead; None when nothing is."""
    key, operator, value = condition.key, condition.operator, condition.value
    if key in _TEXTS and operator in _ORDERS:
        return "operator_of_numbers", f"{key} is text", "compare it by =, != or ~"
    if key in _NUMBERS and operator == "~":
        return "operator_of_texts", f"{key} is a number", "compare it by =, !=, <, <=, > or >="
    if key == "duration" and _parse_seconds(value) is None:
        return "not_a_duration", f"{value!r} is no duration", "write it as 90s, 30m, 2h or 1h30m"
    if (key == "gpus" or (condition.label and operator in _ORDERS)) and _parse_number(value) is None:
        return "not_a_number", f"{value!r} is no number", f"write it as {key}{operator}8"
    if key in _TIMES and operator != "~" and not _DATE.fullmatch(value):
        return "not_a_time", f"{value!r} is no date", "write it as 2026-10, 2026-10-14 or 2026-10-14T09:30"
    return None


def parse_since(text: str, now: int) -> Condition:
    """Return the condition that a run ended within some time before now, or on a date or later.

    Args:
        text: `30d`, `12h`, or a date as `ended` takes it.
        now: the time, in microseconds since 1970.

    Raises:
        SettingsError: when it is neither.
    """
    seconds = _parse_seconds(text)
    if seconds is not None:
        return Condition(
            key="ended", operator=">=", value=_format_time(now - round(min(seconds * 1e6, now)), None) + "Z"
        )
    date = text.strip().replace(" ", "T")
    if not _DATE.fullmatch(date):
        hint = "write it as 30d, 12h, 2026-10-14 or 2026-10-14T09:30"
        raise SettingsError("--since", f"{text!r} is no time", hint, code="not_a_time")
    return Condition(key="ended", operator=">=", value=date)


def select_runs(runs: Sequence[IndexedRun], selection: RunSelection) -> list[IndexedRun]:
    """Return the runs that meet every condition, in their order.

    Raises:
        SettingsError: when no run at all has a tag or param that is asked for.
    """
    for condition in selection.conditions:
        if runs and condition.label:
            _require_label(runs, *condition.label)
    return [run for run in runs if all(condition.matches(run) for condition in selection.conditions)]


def _require_label(runs: Sequence[IndexedRun], kind: str, key: str) -> None:
    known = dict.fromkeys(name for name, _ in chain.from_iterable(map(_LABELS[kind], runs)))
    if key in known:
        return
    close = get_close_matches(key, known, n=1)
    listed = ", ".join(list(known)[:8]) or "none"
    hint = f"did you mean {kind}:{close[0]}?" if close else f"{kind}s of the runs are: {listed}"
    raise SettingsError("--where", f"no stored run has the {kind} {key!r}", hint, code="unknown_label")


def _matches_date(microseconds: int, run: IndexedRun, operator: str, value: str) -> bool:
    """Return whether a time of a run matches a date, compared as far as the date is written."""
    time = _format_time(microseconds, None if value.endswith("Z") else run.timezone)
    wanted = value.removesuffix("Z")
    return fnmatchcase(time, wanted) if operator == "~" else _compare(time[: len(wanted)], operator, wanted)


def _format_time(microseconds: int, timezone: str | None) -> str:
    """Return a time as `2026-10-14T09:30:00` in a zone; as it is without one."""
    time = _EPOCH + timedelta(microseconds=microseconds)
    return f"{time.astimezone(ZoneInfo(timezone)) if timezone else time:%Y-%m-%dT%H:%M:%S}"


def _compare(one: Ordered, operator: str, other: Ordered) -> bool:
    return {
        "=": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_seconds(text: str) -> float | None:
    """Return a duration in seconds, None when a text is none."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
