"""The page on many runs as Markdown for a merge request or a job summary, of at most 20 kB."""

from collections.abc import Iterator

from gpureport.fleet.page.page_model import FleetPage, PagePart
from gpureport.fleet.page.parts.savings import HEADING
from gpureport.report.formats.text.markdown_parts import (
    LONGEST_TEXT,
    fit_lines,
    format_action,
    format_table,
    head_lines,
    spent_lines,
    write_sentence,
)
from gpureport.report.formats.text.markdown_syntax import inline_code
from gpureport.report.wording import display


def render(page: FleetPage) -> str:
    """Return the page, the most important first; other formats hold what is too long."""
    return fit_lines(_list_lines(page), _list_closing(page))


def _list_lines(page: FleetPage) -> Iterator[str]:
    yield from head_lines(page)
    if page.spent:
        yield from spent_lines(page.spent)
    if page.actions:
        yield from (f"## {HEADING}", "")
        yield from (f"{place}. {format_action(each)}" for place, each in enumerate(page.actions, 1))
        yield ""
    for part in page.parts:
        yield from _list_part(part)


def _list_part(part: PagePart) -> Iterator[str]:
    """Yield a part; one that is folded on a page is folded here too."""
    if part.is_open:
        yield from (f"## {write_sentence(part.title)}", "", f"{write_sentence(display.raise_first(part.line))}.", "")
    else:
        yield f"<details><summary>{write_sentence(part.title)}: {write_sentence(part.line)}</summary>"
        yield ""
    if part.table:
        yield from (*format_table(part.table), "")
    yield from (f"- {write_sentence(f'{fact.name}: {fact.text}')}" for fact in part.facts)
    yield from (["", " ".join(map(write_sentence, part.notes)), ""] if part.notes else [])
    yield from ([] if part.is_open else ["", "</details>", ""])


def _list_closing(page: FleetPage) -> Iterator[str]:
    command = f" · {inline_code(display.shorten(page.command, LONGEST_TEXT))}" if page.command else ""
    yield f"gpureport {write_sentence(page.version)}{command}"
