"""Sections that consist of tables or named statements alone, in the shape that every text format shows."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from gpureport.report.model.report_content import HEADING, Report, RunFacts, RunTable
from gpureport.report.model.shapes import ReportSection
from gpureport.report.sections.merging.joined_tables import join_single_row_tables
from gpureport.report.sections.merging.shared_facts import list_facts


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
