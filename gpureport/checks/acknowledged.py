"""What of a limit is acknowledged on a day."""

from dataclasses import dataclass
from datetime import date

from gpureport.analysis.results import Analysis
from gpureport.checks.policy import Acknowledgement, Entry, Policy
from gpureport.checks.subjects import Subject
from gpureport.findings import Finding
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is acknowledged of a limit: findings that do not count, all of it, in words, and what no longer holds."""

    holding: tuple[Finding, ...]
    whole: bool
    words: str
    expired: str


def known(entry: Entry, analysis: Analysis, policy: Policy, today: date) -> Known:
    """Return what is acknowledged of a limit today."""
    holding: list[Finding] = []
    words, expired, whole = [], [], False
    counts = entry.limit.subject in {Subject.FINDING, Subject.NEW}
    for each in policy.acknowledged:
        meant = [finding for finding in analysis.findings if counts and _means(each, finding)]
        if not meant and each.limit != entry.limit.words:
            continue
        if each.until < today:
            expired.append(f"acknowledged until {each.until} ({_clean(each)}), which is over ({each.origin})")
            continue
        holding += meant
        whole = whole or each.limit == entry.limit.words
        words.append(f"acknowledged until {each.until}: {_clean(each)}")
    return Known(holding=tuple(holding), whole=whole, words="; ".join(words), expired="; ".join(expired))


def _clean(known: Acknowledgement) -> str:
    return display.clean(known.reason)


def _means(known: Acknowledgement, finding: Finding) -> bool:
    return finding.kind in known.finding or finding.fingerprint == known.fingerprint
