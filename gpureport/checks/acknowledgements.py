"""Which findings or limits are acknowledged on a given day."""

from dataclasses import dataclass, replace
from datetime import date

from gpureport.analysis.results import Analysis
from gpureport.checks.limit import TargetKind
from gpureport.checks.observed_value import Why
from gpureport.checks.policy import Acknowledgement, Policy, PolicyEntry
from gpureport.findings import Finding
from gpureport.report.wording import display

_FORMER: dict[tuple[str, str | None], tuple[str, str | None]] = {
    ("idle_gap", "data"): ("idle_gap", "io"),
    ("idle_gap", "unknown"): ("idle_gap", "io"),
    ("power_limited", "capped below its limit"): ("power_cap", None),
}
"""Kind and cause of findings that had others in the release before: what names them by these holds for one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """What is acknowledged of a limit: the limit itself, or findings.

    The acknowledgements that apply and those that no longer do are in words; false without any.
    """

    findings: tuple[Finding, ...]
    whole_limit: bool
    words: Why
    expired: Why


def find_acknowledged(entry: PolicyEntry, analysis: Analysis, policy: Policy, today: date) -> Acknowledged:
    """Return what is acknowledged of a limit today."""
    findings: list[Finding] = []
    words, expired, whole = [], [], False
    counts = entry.limit.subject in {TargetKind.FINDING, TargetKind.NEW}
    for each in policy.acknowledged:
        meant = [finding for finding in analysis.findings if counts and _acknowledges(each, finding)]
        if not meant and each.limit != entry.limit.words:
            continue
        if each.until < today:
            expired.append(f"acknowledged until {each.until} ({_clean_reason(each)}), which is over ({each.origin})")
            continue
        findings += meant
        whole = whole or each.limit == entry.limit.words
        words.append(f"acknowledged until {each.until}: {_clean_reason(each)}")
    return Acknowledged(
        findings=tuple(findings),
        whole_limit=whole,
        words=Why("acknowledged", "; ".join(words)),
        expired=Why("acknowledgement_expired", "; ".join(expired)),
    )


def _clean_reason(known: Acknowledgement) -> str:
    return display.clean(known.reason)


def _acknowledges(known: Acknowledgement, finding: Finding) -> bool:
    kind, cause = _FORMER.get((finding.kind, finding.cause), (finding.kind, finding.cause))
    prints = {finding.fingerprint, replace(finding, kind=kind, cause=cause).fingerprint}
    return not known.finding.isdisjoint({finding.kind, kind}) or known.fingerprint in prints
