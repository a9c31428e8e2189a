"""The policy in the settings: `[[policy]]` and `[[acknowledge]]`, with the line of every mistake."""

import re
from datetime import date
from difflib import get_close_matches
from typing import Any

from gpureport.checks import subjects
from gpureport.checks.limit import Limit, LimitError, parse
from gpureport.checks.policy import Acknowledgement, Entry, Policy, Unless, Where
from gpureport.checks.subjects import Subject
from gpureport.findings import Confidence
from gpureport.settings import Section, Settings

_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_LABELLED = re.compile(r"(param|tag)\s+([^=\s]+)\s*=\s*(.+)")
_WHERE = {"gpu", "step", "source"}


def stated(settings: Settings) -> Policy:
    """Return what `[[policy]]` and `[[acknowledge]]` of the settings say.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    return Policy(
        entries=tuple(_entry(section) for section in settings.sections("policy")),
        acknowledged=tuple(_acknowledgement(section) for section in settings.sections("acknowledge")),
    )


def _entry(section: Section) -> Entry:
    section.only({"limit", "for", "unless", "confidence"})
    return Entry(
        limit=_limit(section, "limit"),
        where=_where(section),
        unless=_unless(section),
        confidence=_confidence(section),
        origin=section.at("limit"),
    )


def _limit(section: Section, key: str) -> Limit:
    text = section.text(key)
    if not text:
        first = next(iter(section.values), key)
        raise section.wrong(first, f"a policy without {key}", f"write {key} = 'idle_ratio <= 5 %'")
    return _parsed(section, key, text)


def _parsed(section: Section, key: str, text: str) -> Limit:
    try:
        return parse(text)
    except LimitError as error:
        raise section.wrong(key, error.what, error.hint) from error


def _where(section: Section) -> Where:
    given: Any = section.values.get("for", {})
    if not isinstance(given, dict) or given.keys() - _WHERE:
        hint = "write for = { gpu = 0, step = 'night-*', source = 'node1*' } with one or more of them"
        raise section.wrong("for", f"for must be a table of {', '.join(sorted(_WHERE))}", hint)
    for key in given.keys() & {"step", "source"}:
        if not isinstance(given[key], str) or not given[key].strip():
            raise section.wrong("for", f"{key} must be a text, not {given[key]!r}", "write it between quotes")
    return Where(gpus=_gpus(section, given.get("gpu")), step=given.get("step"), source=given.get("source"))


def _gpus(section: Section, given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in listed):
        raise section.wrong("for", f"gpu must be an index or several, not {given!r}", "write gpu = 0 or gpu = [0, 2]")
    return tuple(sorted(set(listed)))


def _unless(section: Section) -> Unless | None:
    text = section.text("unless")
    if not text:
        return None
    label = _LABELLED.fullmatch(text.strip())
    if label:
        return Unless(label=(label[1], label[2], label[3].strip()), words=text)
    limit = _parsed(section, "unless", text)
    if limit.subject in {Subject.CHANGE, Subject.NEW}:
        raise section.wrong("unless", "an exception cannot be a change", "name a kind, a figure, a param or a tag")
    return Unless(limit=limit, words=limit.words.removeprefix("no "))


def _confidence(section: Section) -> Confidence:
    text = section.text("confidence") or Confidence.MEDIUM.value
    if text not in tuple(Confidence):
        raise section.wrong("confidence", f"no confidence {text!r}", f"write one of {', '.join(Confidence)}")
    return Confidence(text)


def _acknowledgement(section: Section) -> Acknowledgement:
    section.only({"finding", "limit", "reason", "until"})
    for key in ("reason", "until"):
        if key not in section.values:
            first = next(iter(section.values), key)
            hint = "say why it is known and until which day, such as until = 2026-12-31"
            raise section.wrong(first, f"an acknowledgement without {key}", hint)
    finding, limit = section.text("finding"), section.text("limit")
    if bool(finding) == bool(limit):
        first = next(iter(section.values))
        raise section.wrong(first, "an acknowledgement is of a finding or of a limit", "write one of the two")
    return Acknowledgement(
        finding=_named(section, finding) if finding and not _FINGERPRINT.fullmatch(finding) else frozenset(),
        fingerprint=finding if _FINGERPRINT.fullmatch(finding) else "",
        limit=_parsed(section, "limit", limit).words if limit else "",
        reason=section.text("reason"),
        until=_day(section),
        origin=section.at("finding" if finding else "limit"),
    )


def _named(section: Section, kind: str) -> frozenset[str]:
    known = subjects.known(kind)
    every = subjects.kinds("problem")
    if known is None or known.subject is not Subject.FINDING or kind in {"info", "warning", "problem"}:
        close = get_close_matches(kind, every, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "write a kind, or the fingerprint that the JSON shows"
        raise section.wrong("finding", f"no kind {kind!r}", hint)
    return subjects.kinds(kind)


def _day(section: Section) -> date:
    value: Any = section.values["until"]
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise section.wrong("until", f"until must be a day, not {value!r}", "write it as 2026-12-31") from error
