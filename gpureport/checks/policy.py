"""The policy: the user's limits, where each one applies, and acknowledged findings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from gpureport.checks.limit import EVERY_KIND, FAMILIES, Limit, Subject, parse_limit
from gpureport.findings import Confidence
from gpureport.settings import Section, Settings

OPTION = "--fail-on"
_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_LABEL = re.compile(r"(param|tag)\s+([^=\s]+)\s*=\s*(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """When a limit does not apply: another limit, a kind of finding, or a param or tag."""

    limit: Limit | None = None
    label: tuple[str, str, str] | None = None
    words: str


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A limit with its scope (None means all), exemption, minimum confidence, and where it was set."""

    limit: Limit
    gpus: tuple[int, ...] | None = None
    step: str | None = None
    source: str | None = None
    unless: Exemption | None = None
    confidence: Confidence = Confidence.MEDIUM
    origin: str = OPTION

    @property
    def scope(self) -> str:
        gpus = None if self.gpus is None else ", ".join(map(str, self.gpus))
        named = {"GPU": gpus, "step": self.step, "source": self.source}
        return ", ".join(f"{word} {value}" for word, value in named.items() if value)

    @property
    def words(self) -> str:
        scope = f" for {self.scope}" if self.scope else ""
        return f"{self.limit.words}{scope}" + (f" unless {self.unless.words}" if self.unless else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A kind, family or fingerprint of findings, or a limit, accepted until a day."""

    finding: str
    limit: str
    reason: str
    until: date
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    entries: tuple[PolicyEntry, ...] = ()
    acknowledged: tuple[Acknowledgement, ...] = ()

    @property
    def needs_baseline(self) -> bool:
        return any(entry.limit.needs_baseline for entry in self.entries)

    def with_limits(self, limits: Sequence[str]) -> "Policy":
        added = tuple(PolicyEntry(parse_limit(text, OPTION, is_rule=True)) for text in limits)
        return replace(self, entries=self.entries + added)


def read_policy(settings: Settings) -> Policy:
    return Policy(
        entries=tuple(_read_entry(section) for section in settings.sections("policy")),
        acknowledged=tuple(_read_acknowledgement(section) for section in settings.sections("acknowledge")),
    )


def read_baseline_name(settings: Settings) -> str | None:
    section = settings.section("baseline")
    section.only({"name"})
    return section.text("name") or None


def _read_entry(section: Section) -> PolicyEntry:
    section.only({"limit", "for", "unless", "confidence"})
    text, confidence = section.text("limit"), section.text("confidence") or Confidence.MEDIUM.value
    if not text:
        first, hint = next(iter(section.values), "limit"), "write limit = 'idle_ratio <= 5%'"
        raise section.wrong(first, "a policy without a limit", hint, code="missing_key")
    limit = parse_limit(text, section.at("limit"), is_rule=True)
    scope, unless = _read_scope(section), _read_exemption(section)
    if confidence not in tuple(Confidence):
        what, hint = f"{confidence!r} is not a confidence", f"write one of {', '.join(Confidence)}"
        raise section.wrong("confidence", what, hint, code="wrong_value")
    return PolicyEntry(limit, *scope, unless, Confidence(confidence), section.at("limit"))


def _read_scope(section: Section) -> tuple[tuple[int, ...] | None, str | None, str | None]:
    given: Any = section.values.get("for", {})
    is_table = isinstance(given, dict) and given.keys() <= {"gpu", "step", "source"}
    gpus, named = (given.get("gpu"), [given[key] for key in given.keys() & {"step", "source"}]) if is_table else (0, [])
    listed = gpus if isinstance(gpus, list) else [0 if gpus is None else gpus]
    are_indices = listed and all(type(each) is int and each >= 0 for each in listed)
    if not (is_table and are_indices and all(isinstance(each, str) and each.strip() for each in named)):
        hint = "write for = { gpu = [0, 2], step = 'night-*', source = 'node1*' } with one or more of these keys"
        raise section.wrong("for", "not a table with GPUs, a step or a source", hint, code="wrong_value")
    chosen = None if gpus is None else tuple(sorted(set(listed)))
    return chosen, given.get("step"), given.get("source")


def _read_exemption(section: Section) -> Exemption | None:
    text = section.text("unless")
    if not text:
        return None
    if label := _LABEL.fullmatch(text.strip()):
        return Exemption(label=(label[1], label[2], label[3].strip()), words=text)
    limit = parse_limit(text, section.at("unless"))
    if limit.needs_baseline:
        hint = "use a kind, a figure, a param or a tag"
        raise section.wrong("unless", "an exception cannot be a change", hint, code="not_an_exception")
    return Exemption(limit=limit, words=limit.words.removeprefix("no "))


def _read_acknowledgement(section: Section) -> Acknowledgement:
    section.only({"finding", "limit", "reason", "until"})
    finding, limit, reason = section.text("finding"), section.text("limit"), section.text("reason")
    until: Any = section.values.get("until")
    if bool(finding) == bool(limit) or not reason or until is None:
        hint = "give a finding or limit, a reason, and an end date, such as until = 2026-12-31"
        first = next(iter(section.values), "until")
        raise section.wrong(first, "not a complete acknowledgement", hint, code="missing_key")
    try:
        day = date.fromisoformat(str(until))
    except ValueError as error:
        what = f"until must be a date, not {until!r}"
        raise section.wrong("until", what, "write it like 2026-12-31", code="not_a_date") from error
    if finding and finding not in FAMILIES and not _FINGERPRINT.fullmatch(finding):
        close = get_close_matches(finding, EVERY_KIND, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "write a kind, or a fingerprint from the JSON"
        raise section.wrong("finding", f"unknown kind {finding!r}", hint, code="unknown_kind")
    return Acknowledgement(
        finding=finding,
        limit=parse_limit(limit, section.at("limit")).words if limit else "",
        reason=reason,
        until=day,
        origin=section.at("finding" if finding else "limit"),
    )


def list_doubtful_rules(policy: Policy) -> Iterator[str]:
    """Note limits that the baseline itself would break, and unused acknowledgements."""
    limits = [entry.limit for entry in policy.entries]
    for each in policy.acknowledged:
        if each.limit and each.limit not in {limit.words for limit in limits}:
            yield f"{each.origin}: no rule says {each.limit}, so this acknowledges nothing"
    for limit in limits:
        if limit.subject is Subject.CHANGE and limit.demands_change:
            demanded, allowed, sign = ("rise", "fall", "-") if limit.threshold.value > 0 else ("fall", "rise", "")
            size = limit.size
            other = limit.words.replace(f"{limit.relation} {limit.threshold.text}", f"{limit.relation} {sign}{size}")
            yield f"{limit.words} fails without a {demanded} of {size}; to allow a {allowed} of {size}, write {other}"
