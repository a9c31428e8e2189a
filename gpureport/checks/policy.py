"""The policy: the limits a person set, where each applies, and the findings that are acknowledged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from gpureport.checks.limit import Limit, LimitError, parse_limit
from gpureport.checks.limit_targets import TargetKind
from gpureport.errors import SettingsError
from gpureport.findings import Confidence

OPTION = "--fail-on"


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
    """A known finding or broken limit that does not fail the gate up to a given day, with why it is accepted.

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
