"""Where to find more: the commands that show the whole text and write the page."""

import shlex
from collections.abc import Iterator

from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page

_PAGE = "report.html"
_ONLY_THERE = {"--calibrate", "-q", "--quiet", "-v", "--verbose", "--debug"}
_ONLY_THERE_WITH_VALUE = {"--format", "--detail"}
"""Options of a command that `gpureport report` does not have, that mean something else there, or of one call alone."""


def follow_up_lines(command: str, page: Page) -> Iterator[Line]:
    """Yield how to see the whole text and how to write the page.

    Args:
        command: the command as typed; where it names no source, only the whole text is told of.
        page: where the lines have to fit; a longer command goes on after a backslash, so that it can be copied.
    """
    yield Line("Details: --detail full", "soft")
    yield from _page_lines(command, page)


def report_lines(command: str, page: Page) -> Iterator[Line]:
    """Yield how to write the page, where the command names a source."""
    lines = list(_page_lines(command, page))
    if lines:
        yield Line()
        yield from lines


def _page_lines(command: str, page: Page) -> Iterator[Line]:
    words = build_report_command(command)
    if words:
        yield from (Line(line, "soft") for line in _continued(["Full report:", *words], page.width))


def build_report_command(command: str) -> list[str]:
    """Return the words of the command that writes the page of what a command read; none where it names no source."""
    try:
        program, verb, *arguments = (word for word in shlex.split(command) if word not in _ONLY_THERE)
    except ValueError:
        return []
    kept = [] if verb == "demo" else [_quote(each) for each in _keep_arguments(arguments)]
    if program != "gpureport" or not (kept or verb == "demo"):
        return []
    return [program, "demo" if verb == "demo" else "report", *kept, "-o", _PAGE]


def _quote(argument: str) -> str:
    """Return an argument as a shell takes it; the ellipsis in the place of names left out stays as it is."""
    return argument if argument == "…" else shlex.quote(argument)


def _keep_arguments(arguments: list[str]) -> Iterator[str]:
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, _ = argument.partition("=")
        if name in _ONLY_THERE_WITH_VALUE:
            if not equals:
                next(waiting, None)
        else:
            yield argument


def _continued(words: list[str], width: int) -> Iterator[str]:
    """Yield a command in lines that a shell reads as one."""
    line = ""
    for word in words:
        if line and display.terminal_width(f"{line} {word}") > width - 2:
            yield f"{line} \\"
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line
