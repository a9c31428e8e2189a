"""The JSON of `gpureport check` (schema `gpureport.check/1`): it grows, it never renames."""

import json
from dataclasses import asdict

from gpureport.checks.gate_verdict import Verdict
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording.display import GAP

SCHEMA = "gpureport.check/1"


def render(verdict: Verdict) -> str:
    """Return the checks as JSON text; null is what is not known."""
    document = {
        "schema": SCHEMA,
        "exit_code": verdict.exit_code,
        "line": f"gpureport check {verdict.line}",
        "counts": {outcome.value: verdict.count(outcome) for outcome in CheckOutcome},
        "checks": [_check(check) for check in verdict.checks],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _check(check: Check) -> dict[str, object]:
    plain = {
        name: value.replace(GAP, " ") if isinstance(value, str) else value for name, value in asdict(check).items()
    }
    return plain | {"outcome": check.outcome.value}
