"""What of a limit is acknowledged on a day."""

from dataclasses import dataclass
from datetime import date

from gpureport.analysis.results import Analysis
from gpureport.checks.limit_targets import TargetKind
from gpureport.checks.policy import Acknowledgement, Policy, PolicyEntry
from gpureport.findings import Finding
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """What is acknowledged of a limit: findings that do not count, all of it, in words, and what no longer holds."""

    holding: tuple[Finding, ...]
    whole: bool
    words: str
    expired: str


def find_acknowledged(entry: PolicyEntry, analysis: Analysis, policy: Policy, today: date) -> Acknowledged:
    """Return what is acknowledged of a limit today."""
    holding: list[Finding] = []
    words, expired, whole = [], [], False
    counts = entry.limit.subject in {TargetKind.FINDING, TargetKind.NEW}
    for each in policy.acknowledged:
        meant = [finding for finding in analysis.findings if counts and _acknowledges(each, finding)]
        if not meant and each.limit != entry.limit.words:
            continue
        if each.until < today:
            expired.append(f"acknowledged until {each.until} ({_clean_reason(each)}), which is over ({each.origin})")
            continue
        holding += meant
        whole = whole or each.limit == entry.limit.words
        words.append(f"acknowledged until {each.until}: {_clean_reason(each)}")
    return Acknowledged(holding=tuple(holding), whole=whole, words="; ".join(words), expired="; ".join(expired))


def _clean_reason(known: Acknowledgement) -> str:
    return display.clean(known.reason)


def _acknowledges(known: Acknowledgement, finding: Finding) -> bool:
    return finding.kind in known.finding or finding.fingerprint == known.fingerprint
