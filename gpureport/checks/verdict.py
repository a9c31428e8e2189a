"""The verdict on the checks of a run or night, as a line, text, Markdown, JSON and JUnit XML.

CI servers identify a JUnit case by its class and name. Cases are named after rules and runs, without dates, so that
names are the same every night.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from xml.etree import ElementTree as ET

from gpureport.checks.changes import format_size
from gpureport.checks.figures import JOB_FAILED
from gpureport.checks.limit import SHARE, Limit, Subject, Why, parse_limit
from gpureport.checks.policy import PolicyEntry
from gpureport.errors import SettingsError
from gpureport.findings import Check, CheckOutcome
from gpureport.names import group_pairs
from gpureport.number_format import MINUS
from gpureport.report.formats import markdown
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import format_percent_change
from gpureport.report.wording.display import GAP
from gpureport.report.wording.terms import OUTCOME_WORDS

# a date, or a number at the end
_DATE = re.compile(r"\d{4}([-_.]?)\d\d\1\d\d(?:[-_.T]\d+)*(?=[\W_]|$)|(?:^|[-_.])\d+$", re.ASCII)
_SCOPE, _WORD = re.compile(r" (?:for|unless) "), re.compile(r"[^\W_]+")
_KIND = re.compile(rf"\b(?:{'|'.join(terms.KINDS)})\b")
_LISTED, _NAMED = 3, 2
_ROWS = 200
"""Maximum number of checks to list, far below CI servers' size limit. The rest are only counted."""
_CELL = 300
OUTCOMES = {
    CheckOutcome.BROKEN: "FAILED",
    CheckOutcome.CANNOT_JUDGE: "NOT ASSESSED",
    CheckOutcome.ACKNOWLEDGED: "Acknowledged",
    CheckOutcome.NOT_APPLIED: "Does not apply",
}
_TAGS = {CheckOutcome.PASSED: "system-out", CheckOutcome.BROKEN: "failure", CheckOutcome.CANNOT_JUDGE: "error"}
FAILED, NOT_ASSESSED, PASSED = 1, 4, 0  # exit codes
WORDS = {FAILED: "FAILED", NOT_ASSESSED: "NOT ASSESSED", PASSED: "PASSED"}
HAS_DATA = "the run has data"
"""The rule that always applies: every source must provide a run that can be assessed."""
_LONGEST = 264
"""Maximum characters in a line for chat, excluding the command before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """1 if a rule is broken, else 4 if a rule could not be assessed or none is set, else 0."""
        outcomes = {check.outcome for check in self.checks}
        if CheckOutcome.BROKEN in outcomes:
            return FAILED
        return NOT_ASSESSED if CheckOutcome.CANNOT_JUDGE in outcomes or not outcomes else PASSED

    @property
    def word(self) -> str:
        return WORDS[self.exit_code]

    @property
    def counts(self) -> str:
        """The number of checks with each outcome, most serious first, or an empty string."""
        counted = Counter(check.outcome for check in sort_by_gravity(self.checks))
        if len(counted) > 1:
            counted.pop(CheckOutcome.NOT_APPLIED, None)
        words = {each: OUTCOME_WORDS[each].replace("does", "do" if counted[each] > 1 else "does") for each in counted}
        return ", ".join(f"{number} {words[each]}" for each, number in counted.items())

    @property
    def line(self) -> str:
        grave = (CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE)
        named = [clause for outcome in grave for clause in describe_checks(self.checks, outcome)]
        more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        said = f": {'; '.join(named[:_NAMED])}{more}" if named else f" ({self.counts or 'no rule is set'})"
        parts = dict.fromkeys(part for check in self.checks for part in check.reason.split("; "))
        said += "".join(f"; {part}" for part in parts if part.startswith(JOB_FAILED) and part not in said)
        return display.shorten(display.clean(f"{self.word}{said}"), _LONGEST).replace(display.GAP, " ")


def build_missing_check(source: str, reason: str, code: str = "") -> Check:
    outcome = CheckOutcome.CANNOT_JUDGE
    return Check(limit=HAS_DATA, run=source, outcome=outcome, reason=reason, reason_code=code or "no_data")


def build_unused_baseline_check(baseline: str | None, missing: Why) -> Check:
    why = missing or Why("baseline_not_used", "no rule needs it; add one, such as --fail-on 'no new warning'")
    limit, outcome = f"comparison with {baseline}", CheckOutcome.NOT_APPLIED
    return Check(limit=limit, run="", outcome=outcome, reason=why.text, reason_code=why.code)


def sort_by_gravity(checks: Sequence[Check]) -> list[Check]:
    return sorted(checks, key=lambda check: [*CheckOutcome].index(check.outcome))


def describe_checks(checks: Iterable[Check], outcome: CheckOutcome) -> Iterator[str]:
    """Yield a clause per rule with this outcome, such as `idle_ratio <= 5% (night-3): 49%`."""
    runs: dict[tuple[str, str], list[str]] = {}
    for check in select_checks(checks, outcome):
        said = check.observed if outcome is CheckOutcome.BROKEN else check.reason or check.observed
        limit = _parse(check.limit) if outcome is CheckOutcome.CANNOT_JUDGE else None
        if limit is not None and limit.subject is Subject.CHANGE:
            # for a change, also its size
            said = "; ".join(filter(None, (check.observed, check.reason)))
        runs.setdefault((check.limit, said), []).append(check.run)
    for (words, said), named in runs.items():
        names = [name for name in dict.fromkeys(named) if name]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        of = f" ({', '.join(names[:_LISTED])}{more})" if names else ""
        sentence = f": {name_findings(said)}" if said else ""
        yield display.clean_sentence(f"{words}{of}{sentence}").rstrip(".")


def name_failure(checks: Iterable[Check]) -> str:
    """Return a short name for the change or finding that broke a rule, or "" if none."""
    broken = [(check, _parse(check.limit)) for check in select_checks(checks, CheckOutcome.BROKEN)]
    for check, limit in broken:
        if limit is not None and limit.subject is Subject.CHANGE and check.value is not None:
            size = f"{MINUS if check.value < 0 else '+'}{format_size(limit, check.value)}"
            if limit.threshold.unit == SHARE:
                size = format_percent_change(1 + check.value)
            return f"{display.raise_first(terms.name_for_one(terms.column_title(limit.name)))} {size}"
    return next((terms.kind_title(limit.name) for _, limit in broken if limit and limit.name in terms.KINDS), "")


def _parse(words: str) -> Limit | None:
    try:
        return parse_limit(_SCOPE.split(words, maxsplit=1)[0], words)
    except SettingsError:
        return None


def select_checks(checks: Iterable[Check], outcome: CheckOutcome) -> list[Check]:
    return [check for check in checks if check.outcome is outcome]


def name_findings(text: str) -> str:
    return _KIND.sub(lambda match: terms.kind_title(match.group()), text)


def render_json(verdict: Verdict) -> str:
    checks = [
        {key: value.replace(GAP, " ") if isinstance(value, str) else value for key, value in asdict(check).items()}
        for check in verdict.checks
    ]
    document = {
        "schema": "gpureport.check/1",
        "exit_code": verdict.exit_code,
        "line": f"gpureport check {verdict.line}",
        "counts": {each.value: len(select_checks(verdict.checks, each)) for each in CheckOutcome},
        "checks": checks,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def render_text(checks: Sequence[Check]) -> str:
    lines = [] if checks else [f"{OUTCOMES[CheckOutcome.CANNOT_JUDGE]}: no rule is set."]
    for outcome, word in OUTCOMES.items():
        for clause in describe_checks(checks, outcome):
            lines.append(f"{word}: {clause}{'' if clause.endswith('?') else '.'}")
    settled = [check for check in checks if check.outcome in {CheckOutcome.BROKEN, CheckOutcome.PASSED}]
    passed = group_pairs((check.limit, check.observed) for check in select_checks(checks, CheckOutcome.PASSED))
    told = {words: seen[0] if len(seen) == 1 else f"{len(seen)} runs" for words, seen in passed.items()}
    listed = (words if text in {"", words} else f"{words} ({text})" for words, text in told.items())
    lines += [f"Passed: {display.clean('; '.join(listed))}."] if passed else []
    for reason, words in group_pairs((check.reason, check.limit) for check in settled if check.reason).items():
        rules = ", ".join(dict.fromkeys(words))
        lines.append(f"Note: {display.clean(f'{name_findings(reason)} ({rules})')}.")
    return "\n".join(map(display.plain, lines)) + "\n"


def render_markdown(checks: Sequence[Check], heading: str, state: Sequence[str] = ()) -> str:
    lines = [f"## {markdown.escape(display.plain(heading))}", ""]
    for line in state:
        lines += [markdown.escape(display.plain(line)), ""]
    if checks:
        lines += ["| Outcome | Run | Rule | Observed | |", "|---|---|---|---|---|"]
    for check in sort_by_gravity(checks)[:_ROWS]:
        bold = "**" if check.outcome in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE} else ""
        texts = (check.run, check.limit, check.observed, check.reason)
        cells = [markdown.escape(display.shorten(display.clean(text), _CELL)) for text in texts]
        lines.append(f"| {bold}{OUTCOME_WORDS[check.outcome]}{bold} | {' | '.join(cells)} |")
    if len(checks) > _ROWS:
        lines += ["", f"{len(checks) - _ROWS} more checks are not listed."]
    return "\n".join(lines) + "\n"


def render_junit(checks: Sequence[Check], command: str = "check", rules: Sequence[PolicyEntry] = ()) -> str:
    """Return the checks as a JUnit suite, without times so that the same input yields the same bytes.

    Each check is a test case: a failure if its limit is broken, an error if it is not assessed. A rule without a check
    is an error. Servers reject a suite without cases, so one case reports that no rule is set.
    """
    held, gone = {check.limit for check in checks}, [check.run for check in checks if check.limit == HAS_DATA]
    absent = build_missing_check(next(iter(gone), ""), "there is no run to assess")
    lacking = [replace(absent, limit=each.words, origin=each.origin) for each in rules if each.words not in held]
    suites = ET.Element("testsuites", name="gpureport")
    suite = ET.SubElement(suites, "testsuite", name=f"gpureport {command}")
    classes: Counter[tuple[str, str]] = Counter()
    for check in (*checks, *lacking):
        key = _name_class(display.plain(check.run)), check.limit
        classes[key] += 1
        _add_case(suite, check, f"{key[0]}.{classes[key]}" if classes[key] > 1 else key[0])
    if not len(suite):
        case = ET.SubElement(suite, "testcase", classname="gpureport", name="rules")
        ET.SubElement(case, "skipped", message="no rule is set")
    for each in (suites, suite):
        each.set("tests", str(len(suite)))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            each.set(count, str(len(suite.findall(f"testcase/{tag}"))))
    ET.indent(suites, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _name_class(run: str) -> str:
    """Return a run's name without dates, such as `gpureport.train`, or `gpureport.w8.2` for `w8/2`."""
    path = PurePath(run)
    names = [_DATE.sub("", path.stem)]
    if re.fullmatch(r"\d\d?", path.stem):
        names = [_DATE.sub("", str(path.parent)), path.stem]
    return ".".join(filter(None, ("gpureport", *("-".join(_WORD.findall(name)) for name in names))))


def _add_case(suite: ET.Element, check: Check, class_name: str) -> None:
    name, run, word = display.plain(check.limit), display.plain(check.run), OUTCOME_WORDS[check.outcome]
    case = ET.SubElement(suite, "testcase", classname=class_name, name=name)
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    detail = [said, f"run: {run}" if run else ""]
    tag = _TAGS.get(check.outcome, "skipped")
    message = f"{word}: {name_findings(said)}"
    if tag == "skipped":
        ET.SubElement(case, tag, message=message)
        return
    if tag != "system-out":
        detail = [f"{name} ({word})", *detail, f"set in {display.plain(check.origin)}" if check.origin else ""]
    if any(detail):
        kind = {} if tag == "system-out" else {"message": message, "type": check.outcome.value.replace(" ", "_")}
        ET.SubElement(case, tag, kind).text = "\n".join(filter(None, detail))
