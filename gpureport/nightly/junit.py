"""Checks as JUnit XML: one test case a check, a failure where a limit is broken, an error where none can be judged."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from gpureport.findings import Check, CheckOutcome
from gpureport.nightly import result
from gpureport.report import display

_ELEMENTS = {
    CheckOutcome.BROKEN: "failure",
    CheckOutcome.CANNOT_JUDGE: "error",
    CheckOutcome.ACKNOWLEDGED: "skipped",
    CheckOutcome.NOT_APPLIED: "skipped",
}


def render(checks: Sequence[Check]) -> str:
    """Return the checks as one suite."""
    skipped = sum(_ELEMENTS.get(check.outcome) == "skipped" for check in checks)
    counts = {
        "tests": str(len(checks)),
        "failures": str(result.count(checks, CheckOutcome.BROKEN)),
        "errors": str(result.count(checks, CheckOutcome.CANNOT_JUDGE)),
        "skipped": str(skipped),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "gpureport check", **counts})
    for check in checks:
        _case(suite, check)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, check: Check) -> None:
    name = _plain(check.limit)
    case = ET.SubElement(suite, "testcase", {"classname": f"gpureport.{_plain(check.run) or 'check'}", "name": name})
    said = "; ".join(filter(None, (_plain(check.observed), _plain(check.reason))))
    element = _ELEMENTS.get(check.outcome)
    if element is None:
        ET.SubElement(case, "system-out").text = said
        return
    told = ET.SubElement(case, element, {"message": f"{check.outcome}: {said}"})
    if element != "skipped":
        told.set("type", check.outcome.value.replace(" ", "_"))
        told.text = "\n".join(filter(None, (f"{name} ({check.outcome})", said, f"stated at {_plain(check.origin)}")))


def _plain(text: str) -> str:
    """Return text that XML can hold, without control characters and no-break spaces."""
    return display.clean(text).replace(display.GAP, " ")
