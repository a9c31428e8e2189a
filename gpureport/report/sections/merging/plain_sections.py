"""Sections that consist of tables or named statements alone, in the shape that every text format shows."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from gpureport.report.model.comparison_parts import ComparisonPart, StepPairView
from gpureport.report.model.report_content import Report, RunFacts, RunTable
from gpureport.report.model.shapes import EMPTY, HEADING, Fact, ReportSection, Table
from gpureport.report.sections.merging.joined_tables import join_single_row_tables
from gpureport.report.sections.merging.shared_facts import list_facts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def list_comparison_sections(part: ComparisonPart) -> Iterator[ReportSection]:
    """Yield the charts of steps in words, then every other field that has a heading."""
    for chart in part.charts:
        facts = tuple(Fact(name=row.label, text=row.sentence) for row in chart.rows)
        yield ReportSection(heading=chart.title, facts=facts)
    yield from _titled_sections(part, "")


def list_pair_sections(pair: StepPairView) -> Iterator[ReportSection]:
    """Yield every field of a pair of steps that has a heading."""
    yield from _titled_sections(pair, pair.label)


def _titled_sections(part: "DataclassInstance", label: str) -> Iterator[ReportSection]:
    """Yield every field that has a heading and holds a table or statements."""
    for each in fields(part):
        heading, value = each.metadata.get(HEADING), getattr(part, each.name) or each.metadata.get(EMPTY)
        if not heading or not value:
            continue
        if isinstance(value, tuple) and isinstance(value[0], ReportSection):
            yield from value
        elif isinstance(value, Table):
            yield ReportSection(heading=heading, label=label, table=value)
        else:
            said = (value,) if isinstance(value, str) else value
            facts = (Fact(name="", text=entry) if isinstance(entry, str) else entry for entry in said)
            yield ReportSection(heading=heading, label=label, facts=tuple(facts))


def list_plain_sections(report: Report) -> Iterator[ReportSection]:
    """Yield the sections of every field of the report that has a heading, in the order of the fields."""
    for part in fields(report):
        if part.metadata.get(HEADING):
            yield from _sections(part.metadata[HEADING], getattr(report, part.name), runs=len(report.quality))


def _sections(heading: str, parts: Sequence[RunTable | RunFacts], *, runs: int) -> Iterator[ReportSection]:
    statements = [part for part in parts if isinstance(part, RunFacts)]
    if statements:
        yield ReportSection(heading=heading, facts=list_facts(statements))
    tables = [part for part in parts if isinstance(part, RunTable)]
    joined = join_single_row_tables(tables) if tables else ()
    # one table for all runs names them in its rows
    labelled = runs > 1 and len(joined) == len(tables)
    for part in joined:
        yield ReportSection(heading=heading, label=part.label if labelled else "", table=part.table)
