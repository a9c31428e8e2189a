"""Checks as Markdown for the summary of a job, and as text for a log."""

from collections.abc import Iterator, Sequence

from gpureport.checks import check_results
from gpureport.findings import Check, CheckOutcome
from gpureport.report.formats.text.markdown_syntax import escape
from gpureport.report.wording import display

_ROWS = 200
"""Checks that are listed; the rest is counted, so that the summary stays far below the limit of a job."""

_CELL = 300
_WIDEST = max(len(outcome) for outcome in CheckOutcome)


def render_markdown(checks: Sequence[Check]) -> str:
    """Return the checks as Markdown: the line for a chat as heading, then a table, the gravest first."""
    return "\n".join(_lines(checks)) + "\n"


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    yield from (
        f"## {escape(check_results.format_result_line(checks))}",
        "",
        "| Outcome | Run | Limit | Observed | |",
        "|---|---|---|---|---|",
    )
    ordered = check_results.sort_by_gravity(checks)
    for check in ordered[:_ROWS]:
        bold = "**" if check.outcome in check_results.GRAVE else ""
        cells = (check.run, check.limit, check.observed, check.reason)
        yield f"| {bold}{check.outcome}{bold} | {' | '.join(map(_cell, cells))} |"
    if len(ordered) > _ROWS:
        yield from ("", f"{len(ordered) - _ROWS} more checks are not listed.")


def _cell(text: str) -> str:
    return escape(display.shorten(display.clean(text), _CELL))


def render_text(checks: Sequence[Check]) -> str:
    """Return the checks for people: the line for a chat, then each check, the gravest first."""
    lines = [check_results.format_result_line(checks)]
    for check in check_results.sort_by_gravity(checks):
        run = f"{display.plain(check.run)}: " if check.run else ""
        lines.append(f"  {check.outcome.value:{_WIDEST}}  {run}{display.plain(check.limit)}")
        lines += [f"{'':{_WIDEST + 4}}{display.plain(said)}" for said in (check.observed, check.reason) if said]
    return "\n".join(lines) + "\n"
