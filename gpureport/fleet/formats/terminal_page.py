"""The page on many runs as text for a terminal or a pipe: one screen, or everything."""

from gpureport.fleet.formats.page_blocks import list_blocks
from gpureport.fleet.page.page_model import FleetPage
from gpureport.report.formats.text.terminal import write_blocks
from gpureport.report.wording.terminal_lines import PIPE, Page


def render(page: FleetPage, place: Page = PIPE, *, full: bool = False) -> str:
    """Return the page as text for a place: everything, or (not `full`) one screen of it."""
    return write_blocks(list_blocks(page), place, full=full)
