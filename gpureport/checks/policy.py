"""The policy: the limits a person set, where each applies, and the findings that are acknowledged.

It is read from `[[policy]]` and `[[acknowledge]]` of the settings, with the line of every mistake.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from gpureport.checks.limit import Limit, LimitError, TargetKind, find_target, finding_kinds, parse_limit
from gpureport.errors import SettingsError
from gpureport.findings import Confidence
from gpureport.settings import Section, Settings

OPTION = "--fail-on"
_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_LABEL = re.compile(r"(param|tag)\s+([^=\s]+)\s*=\s*(.+)")
_SCOPE_KEYS = {"gpu", "step", "source"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitScope:
    """What a limit applies to; None is everything.

    Attributes:
        gpus: indices of GPUs.
        step: pattern of a step's label, such as `night-*`.
        source: pattern of a run's name or of one of its files.
    """

    gpus: tuple[int, ...] | None = None
    step: str | None = None
    source: str | None = None

    @property
    def words(self) -> str:
        """The same in words, empty for everything."""
        parts = [f"GPU {', '.join(map(str, self.gpus))}"] if self.gpus is not None else []
        parts += [f"step {self.step}"] if self.step else []
        parts += [f"source {self.source}"] if self.source else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """When a limit does not apply: while another limit is kept, a kind is found, or the run has a label.

    Attributes:
        limit: the limit that must be kept; a bare kind must be found instead.
        label: `param` or `tag`, its key and its value.
        words: the exception as written.
    """

    limit: Limit | None = None
    label: tuple[str, str, str] | None = None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """One limit of a policy.

    Attributes:
        limit: the limit.
        scope: what it applies to.
        unless: when it does not.
        confidence: findings less sure than this do not count.
        origin: where it is stated.
    """

    limit: Limit
    scope: LimitScope = LimitScope()
    unless: Exemption | None = None
    confidence: Confidence = Confidence.MEDIUM
    origin: str = OPTION

    @property
    def needs_baseline(self) -> bool:
        """Whether it needs a baseline."""
        return self.limit.subject in {TargetKind.CHANGE, TargetKind.NEW}

    @property
    def words(self) -> str:
        """The limit with where it applies and when it does not."""
        place = f" for {self.scope.words}" if self.scope.words else ""
        return f"{self.limit.words}{place}" + (f" unless {self.unless.words}" if self.unless else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A known finding or broken limit that does not fail the gate up to a given day, and why.

    It is of kinds, of one finding by its fingerprint, or of a limit in its words; the others are empty.
    """

    finding: frozenset[str] = frozenset()
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
        return any(entry.needs_baseline for entry in self.entries)

    def with_limits(self, limits: Sequence[str]) -> "Policy":
        """Return this policy and limits of the command line.

        Raises:
            SettingsError: when a text states no limit.
        """
        return replace(self, entries=(*self.entries, *(PolicyEntry(limit=parse_option_limit(text)) for text in limits)))


def parse_option_limit(text: str) -> Limit:
    """Return the limit of `--fail-on`.

    Raises:
        SettingsError: when the text states none.
    """
    try:
        return parse_limit(text)
    except LimitError as error:
        raise SettingsError(OPTION, error.what, error.hint, code=error.code) from error


def read_policy(settings: Settings) -> Policy:
    """Return what `[[policy]]` and `[[acknowledge]]` of the settings say.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    return Policy(
        entries=tuple(_read_entry(section) for section in settings.sections("policy")),
        acknowledged=tuple(_read_acknowledgement(section) for section in settings.sections("acknowledge")),
    )


def read_baseline_name(settings: Settings) -> str | None:
    """Return the baseline that `[baseline]` of the settings names; None where it names none.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    section = settings.section("baseline")
    section.only({"name"})
    name = section.text("name")
    return name or None


def _read_entry(section: Section) -> PolicyEntry:
    section.only({"limit", "for", "unless", "confidence"})
    return PolicyEntry(
        limit=_read_limit(section, "limit"),
        scope=_read_scope(section),
        unless=_read_exemption(section),
        confidence=_read_confidence(section),
        origin=section.at("limit"),
    )


def _read_limit(section: Section, key: str) -> Limit:
    text = section.text(key)
    if not text:
        first = next(iter(section.values), key)
        hint = f"write {key} = 'idle_ratio <= 5%'"
        raise section.wrong(first, f"a policy without {key}", hint, code="missing_key")
    return _parse_limit_text(section, key, text)


def _parse_limit_text(section: Section, key: str, text: str) -> Limit:
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
    return LimitScope(gpus=_read_gpus(section, given.get("gpu")), step=given.get("step"), source=given.get("source"))


def _read_gpus(section: Section, given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in listed):
        what = f"gpu must be an index or several, not {given!r}"
        raise section.wrong("for", what, "write gpu = 0 or gpu = [0, 2]", code="wrong_type")
    return tuple(sorted(set(listed)))


def _read_exemption(section: Section) -> Exemption | None:
    text = section.text("unless")
    if not text:
        return None
    label = _LABEL.fullmatch(text.strip())
    if label:
        return Exemption(label=(label[1], label[2], label[3].strip()), words=text)
    limit = _parse_limit_text(section, "unless", text)
    if limit.subject in {TargetKind.CHANGE, TargetKind.NEW}:
        hint = "name a kind, a figure, a param or a tag"
        raise section.wrong("unless", "an exception cannot be a change", hint, code="not_an_exception")
    return Exemption(limit=limit, words=limit.words.removeprefix("no "))


def _read_confidence(section: Section) -> Confidence:
    text = section.text("confidence") or Confidence.MEDIUM.value
    if text not in tuple(Confidence):
        hint = f"write one of {', '.join(Confidence)}"
        raise section.wrong("confidence", f"no confidence {text!r}", hint, code="wrong_value")
    return Confidence(text)


def _read_acknowledgement(section: Section) -> Acknowledgement:
    section.only({"finding", "limit", "reason", "until"})
    for key in ("reason", "until"):
        if key not in section.values:
            first = next(iter(section.values), key)
            hint = "say why it is known and until which day, such as until = 2026-12-31"
            raise section.wrong(first, f"an acknowledgement without {key}", hint, code="missing_key")
    finding, limit = section.text("finding"), section.text("limit")
    if bool(finding) == bool(limit):
        first = next(iter(section.values))
        what = "an acknowledgement is of a finding or of a limit"
        raise section.wrong(first, what, "write one of the two", code="missing_key")
    return Acknowledgement(
        finding=_find_kinds(section, finding) if finding and not _FINGERPRINT.fullmatch(finding) else frozenset(),
        fingerprint=finding if _FINGERPRINT.fullmatch(finding) else "",
        limit=_parse_limit_text(section, "limit", limit).words if limit else "",
        reason=section.text("reason"),
        until=_read_day(section),
        origin=section.at("finding" if finding else "limit"),
    )


def _find_kinds(section: Section, kind: str) -> frozenset[str]:
    known = find_target(kind)
    every = finding_kinds("problem")
    if known is None or known.subject is not TargetKind.FINDING or kind in {"info", "warning", "problem"}:
        close = get_close_matches(kind, every, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "write a kind, or the fingerprint that the JSON shows"
        raise section.wrong("finding", f"no kind {kind!r}", hint, code="unknown_kind")
    return finding_kinds(kind)


def _read_day(section: Section) -> date:
    value: Any = section.values["until"]
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        what = f"until must be a day, not {value!r}"
        raise section.wrong("until", what, "write it as 2026-12-31", code="not_a_date") from error
