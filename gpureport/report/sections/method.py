"""How the report came about: limits and their origin, terms, the command, versions and inputs; rules a person set."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gpureport.analysis.rulebook import Rule
from gpureport.findings import Check, CheckOutcome
from gpureport.report.model.report_content import SCHEMA, Method
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun
from gpureport.report.wording import display, terms
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_LOCATOR = 200
_NOTE = "A rule that is not assessed is neither kept nor broken: the reason stands with it."


def method(runs: Sequence[ReportRun], rules: Sequence[Rule], command: str, version: str) -> Method:
    """Return the method section."""
    gpus = [gpu for run in runs for gpu in run.run.gpus]
    drivers = {display.shorten(display.clean(gpu.driver), LABEL_LENGTH) for gpu in gpus if gpu.driver}
    versions = {
        "gpureport": display.clean(version),
        "Content schema": SCHEMA,
        "NVIDIA driver": ", ".join(sorted(drivers)) or display.NOT_RECORDED,
    }
    kinds = [(terms.kind_title(kind), text) for rule in rules for kind, text in rule.conditions.items()]
    thresholds = tuple(_list_limits(rules))
    inputs = tuple(_list_inputs(runs))
    return Method(
        thresholds=Table(columns=("Kind", "Limit", "Value", "Origin", "Source"), numeric=(False,) * 4, rows=thresholds),
        definitions=tuple(Fact(name=name, text=display.clean_sentence(text)) for name, text in terms.DEFINITIONS),
        command=display.clean(command),
        versions=tuple(Fact(name=name, text=text) for name, text in versions.items()),
        inputs=Table(columns=("Run", "Kind", "Input"), numeric=(False, False), rows=inputs),
        kinds=tuple(Fact(name=name, text=display.clean_sentence(text)) for name, text in kinds),
    )


def _list_limits(rules: Sequence[Rule]) -> Iterator[Row]:
    """Yield every limit the rules judge by: they are the fields of the rules."""
    for rule in rules:
        kinds = ", ".join(terms.kind_title(kind) for kind in rule.kinds)
        for name, limit in rule.limits.items():
            value = display.quantity(limit.value, limit.unit)
            texts = (name.replace("_", " "), value, limit.provenance.value, display.clean(limit.source))
            yield Row(head=Cell(text=kinds), cells=tuple(Cell(text=text) for text in texts))


def _list_inputs(runs: Sequence[ReportRun]) -> Iterator[Row]:
    for run in runs:
        for source in run.run.sources:
            locator = display.shorten_middle(display.clean(source.locator), _LOCATOR)
            read = Cell(text=locator, small=f"sha256 {display.clean(source.sha256)}")
            yield Row(head=Cell(text=run.label), cells=(Cell(text=display.clean(source.kind)), read))


def build_policy_table(checks: Sequence[Check]) -> Table | None:
    """Return the limits that a person set, in the order stated, and what became of each; None where none is."""
    if not checks:
        return None
    rows = []
    for check in checks:
        is_grave = check.outcome in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}
        observed, reason = map(display.clean_sentence, (check.observed, check.reason))
        cells = (
            Cell(text=OUTCOME_WORDS[check.outcome], flagged=is_grave),
            Cell(text=observed, small=reason, value=check.value),
            Cell(text=display.clean(check.run)),
        )
        origin = PurePath(display.clean(check.origin)).name
        rows.append(Row(head=Cell(text=display.clean(check.limit), small=origin), cells=cells))
    return Table(
        columns=("Rule", "Outcome", "Observed", "Run"),
        numeric=(False, False, False),
        rows=tuple(rows),
        notes=(_NOTE,) if any(check.outcome is CheckOutcome.CANNOT_JUDGE for check in checks) else (),
    )
