"""Measured values with their limits as JSON, the same in every document."""

from typing import Any

from gpureport.findings import Evidence


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    """Return one measured value with its limit."""
    limit = evidence.threshold
    return {
        "metric": evidence.metric,
        "statistic": evidence.statistic,
        "observed": evidence.observed,
        "unit": evidence.unit,
        "relation": evidence.relation,
        "threshold": None if limit is None else limit.value,
        "provenance": None if limit is None else {"kind": limit.provenance, "source": limit.source},
    }
