"""How the report came about: limits and their origin, terms, the command, versions and inputs."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.rulebook import Rule
from gpureport.report.model.report_content import SCHEMA, Method
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun
from gpureport.report.wording import display, terms

_LOCATOR = 200


def method(runs: Sequence[ReportRun], rules: Sequence[Rule], command: str, version: str) -> Method:
    """Return the method section."""
    return Method(
        thresholds=_table(("Kind", "Limit", "Value", "Origin", "Source"), list(_thresholds(rules))),
        definitions=tuple(Fact(name=name, text=display.clean_sentence(text)) for name, text in terms.DEFINITIONS),
        command=display.clean(command),
        versions=tuple(_versions(runs, version)),
        inputs=_input_table(runs),
        kinds=tuple(_kinds(rules)),
    )


def _kinds(rules: Sequence[Rule]) -> Iterator[Fact]:
    """Yield when each kind is found, in short."""
    for rule in rules:
        for kind, condition in rule.conditions.items():
            yield Fact(name=terms.kind_title(kind), text=display.clean_sentence(condition))


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    return Table(
        columns=columns,
        numeric=(False,) * (len(columns) - 1),
        rows=tuple(Row(head=Cell(text=head), cells=tuple(Cell(text=text) for text in rest)) for head, *rest in rows),
    )


def _thresholds(rules: Sequence[Rule]) -> Iterator[tuple[str, ...]]:
    """Yield every limit the rules judge by: they are the fields of the rules."""
    for rule in rules:
        kinds = ", ".join(terms.kind_title(kind) for kind in rule.kinds)
        for name, limit in rule.limits.items():
            value = display.quantity(limit.value, limit.unit)
            yield kinds, name.replace("_", " "), value, limit.provenance.value, display.clean(limit.source)


def _versions(runs: Sequence[ReportRun], version: str) -> Iterator[Fact]:
    yield Fact(name="gpureport", text=display.clean(version))
    yield Fact(name="Content schema", text=SCHEMA)
    drivers = {
        display.shorten(display.clean(gpu.driver), LABEL_LENGTH) for run in runs for gpu in run.run.gpus if gpu.driver
    }
    yield Fact(name="NVIDIA driver", text=", ".join(sorted(drivers)) or display.NOT_RECORDED)


def _input_table(runs: Sequence[ReportRun]) -> Table:
    rows = tuple(
        Row(
            head=Cell(text=run.label),
            cells=(
                Cell(text=display.clean(source.kind)),
                Cell(
                    text=display.shorten_middle(display.clean(source.locator), _LOCATOR),
                    small=f"sha256 {display.clean(source.sha256)}",
                ),
            ),
        )
        for run in runs
        for source in run.run.sources
    )
    return Table(columns=("Run", "Kind", "Input"), numeric=(False, False), rows=rows)
