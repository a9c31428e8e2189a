"""The policy: the limits a person set, where each applies, and the findings that are acknowledged.

It is read from `[[policy]]` and `[[acknowledge]]` of the settings, with the line of every mistake.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from gpureport.checks.finding_counts import FAMILIES, list_kinds
from gpureport.checks.grammar import LimitError, parse_limit
from gpureport.checks.limit import Limit, Subject
from gpureport.errors import SettingsError
from gpureport.findings import Confidence
from gpureport.settings import Section, Settings

OPTION = "--fail-on"
_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_LABEL = re.compile(r"(param|tag)\s+([^=\s]+)\s*=\s*(.+)")
_SCOPE_KEYS = {"gpu", "step", "source"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitScope:
    """What a limit applies to: GPUs, and patterns of steps and of names of runs or files; None is everything."""

    gpus: tuple[int, ...] | None = None
    step: str | None = None
    source: str | None = None

    @property
    def words(self) -> str:
        """The same in words, empty for everything."""
        gpus = None if self.gpus is None else ", ".join(map(str, self.gpus))
        named = {"GPU": gpus, "step": self.step, "source": self.source}
        return ", ".join(f"{word} {value}" for word, value in named.items() if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """When a limit does not apply: another is kept, a bare kind is found, or a run has a param or tag."""

    limit: Limit | None = None
    label: tuple[str, str, str] | None = None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """One limit of a policy, what it applies to and when not, how sure findings must be, and where it is stated."""

    limit: Limit
    scope: LimitScope = LimitScope()
    unless: Exemption | None = None
    confidence: Confidence = Confidence.MEDIUM
    origin: str = OPTION

    @property
    def words(self) -> str:
        """The limit with where it applies and when it does not."""
        place = f" for {self.scope.words}" if self.scope.words else ""
        return f"{self.limit.words}{place}" + (f" unless {self.unless.words}" if self.unless else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A known finding or broken limit that does not fail the gate up to a given day, and why.

    It is of kinds, of one finding by its fingerprint, or of a limit in its words.
    """

    kinds: frozenset[str] = frozenset()
    fingerprint: str = ""
    limit: str = ""
    reason: str
    until: date
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits in the order stated, and acknowledgements."""

    entries: tuple[PolicyEntry, ...] = ()
    acknowledged: tuple[Acknowledgement, ...] = ()

    @property
    def needs_baseline(self) -> bool:
        """Whether any limit needs a baseline."""
        return any(entry.limit.needs_baseline for entry in self.entries)

    def with_limits(self, limits: Sequence[str]) -> "Policy":
        """Return this policy and limits of `--fail-on`."""
        try:
            added = [PolicyEntry(limit=parse_limit(text)) for text in limits]
        except LimitError as error:
            raise SettingsError(OPTION, error.what, error.hint, code=error.code) from error
        return replace(self, entries=(*self.entries, *added))


def read_policy(settings: Settings) -> Policy:
    """Return what `[[policy]]` and `[[acknowledge]]` of the settings say; an error has the line of the mistake."""
    return Policy(
        entries=tuple(_read_entry(section) for section in settings.sections("policy")),
        acknowledged=tuple(_read_acknowledgement(section) for section in settings.sections("acknowledge")),
    )


def read_baseline_name(settings: Settings) -> str | None:
    """Return the baseline that `[baseline]` of the settings names; None where it names none."""
    section = settings.section("baseline")
    section.only({"name"})
    return section.text("name") or None


def _read_entry(section: Section) -> PolicyEntry:
    section.only({"limit", "for", "unless", "confidence"})
    text, confidence = section.text("limit"), section.text("confidence") or Confidence.MEDIUM.value
    if not text:
        first, hint = next(iter(section.values), "limit"), "write limit = 'idle_ratio <= 5%'"
        raise section.wrong(first, "a policy without limit", hint, code="missing_key")
    limit = _read_limit(section, "limit", text)
    scope, unless = _read_scope(section), _read_exemption(section)
    if confidence not in tuple(Confidence):
        hint = f"write one of {', '.join(Confidence)}"
        raise section.wrong("confidence", f"no confidence {confidence!r}", hint, code="wrong_value")
    return PolicyEntry(
        limit=limit, scope=scope, unless=unless, confidence=Confidence(confidence), origin=section.at("limit")
    )


def _read_limit(section: Section, key: str, text: str) -> Limit:
    try:
        return parse_limit(text)
    except LimitError as error:
        raise section.wrong(key, error.what, error.hint, code=error.code) from error


def _read_scope(section: Section) -> LimitScope:
    given: Any = section.values.get("for", {})
    if not isinstance(given, dict) or given.keys() - _SCOPE_KEYS:
        hint = "write for = { gpu = 0, step = 'night-*', source = 'node1*' } with one or more of them"
        what = f"for must be a table of {', '.join(sorted(_SCOPE_KEYS))}"
        raise section.wrong("for", what, hint, code="wrong_value")
    for key in given.keys() & {"step", "source"}:
        if not isinstance(given[key], str) or not given[key].strip():
            what = f"{key} must be a text, not {given[key]!r}"
            raise section.wrong("for", what, "write it between quotes", code="wrong_type")
    gpus = given.get("gpu", [])
    listed = gpus if isinstance(gpus, list) else [gpus]
    are_indices = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in listed)
    if "gpu" in given and not (listed and are_indices):
        what = f"gpu must be an index or several, not {gpus!r}"
        raise section.wrong("for", what, "write gpu = 0 or gpu = [0, 2]", code="wrong_type")
    chosen = tuple(sorted(set(listed))) if "gpu" in given else None
    return LimitScope(gpus=chosen, step=given.get("step"), source=given.get("source"))


def _read_exemption(section: Section) -> Exemption | None:
    text = section.text("unless")
    if not text:
        return None
    label = _LABEL.fullmatch(text.strip())
    if label:
        return Exemption(label=(label[1], label[2], label[3].strip()), words=text)
    limit = _read_limit(section, "unless", text)
    if limit.needs_baseline:
        hint = "name a kind, a figure, a param or a tag"
        raise section.wrong("unless", "an exception cannot be a change", hint, code="not_an_exception")
    return Exemption(limit=limit, words=limit.words.removeprefix("no "))


def _read_acknowledgement(section: Section) -> Acknowledgement:
    section.only({"finding", "limit", "reason", "until"})
    for key in ("reason", "until"):
        if key not in section.values:
            hint = "say why it is known and until which day, such as until = 2026-12-31"
            first = next(iter(section.values), key)
            raise section.wrong(first, f"an acknowledgement without {key}", hint, code="missing_key")
    finding, limit = section.text("finding"), section.text("limit")
    if bool(finding) == bool(limit):
        first, what = next(iter(section.values)), "an acknowledgement is of a finding or of a limit"
        raise section.wrong(first, what, "write one of the two", code="missing_key")
    is_fingerprint = _FINGERPRINT.fullmatch(finding)
    return Acknowledgement(
        kinds=_read_kinds(section, finding) if finding and not is_fingerprint else frozenset(),
        fingerprint=finding if is_fingerprint else "",
        limit=_read_limit(section, "limit", limit).words if limit else "",
        reason=section.text("reason"),
        until=_read_day(section),
        origin=section.at("finding" if finding else "limit"),
    )


def _read_kinds(section: Section, name: str) -> frozenset[str]:
    if name not in FAMILIES:
        close = get_close_matches(name, list_kinds("problem"), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "write a kind, or the fingerprint that the JSON shows"
        raise section.wrong("finding", f"no kind {name!r}", hint, code="unknown_kind")
    return list_kinds(name)


def _read_day(section: Section) -> date:
    value: Any = section.values["until"]
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        what = f"until must be a day, not {value!r}"
        raise section.wrong("until", what, "write it as 2026-12-31", code="not_a_date") from error


def list_demanding_rules(limits: Iterable[Limit]) -> Iterator[str]:
    """Yield a note per limit on a change that a run equal to the baseline breaks."""
    for limit in limits:
        if limit.subject is Subject.CHANGE and limit.demands_change:
            demanded, allowed, sign = ("rise", "fall", "-") if limit.threshold.value > 0 else ("fall", "rise", "")
            size = limit.size
            other = limit.words.replace(f"{limit.relation} {limit.threshold.text}", f"{limit.relation} {sign}{size}")
            yield f"{limit.words} fails without a {demanded} of {size}; to allow a {allowed} of {size}: {other}"
