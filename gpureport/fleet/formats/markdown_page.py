"""The page on many runs as Markdown for a merge request or a job summary, of at most 20 kB."""

from gpureport.fleet.formats.page_blocks import list_blocks
from gpureport.fleet.page.page_model import FleetPage
from gpureport.report.formats.text import markdown


def render(page: FleetPage) -> str:
    """Return the page, the most important first; other formats hold what is too long."""
    return markdown.write_blocks(list_blocks(page), page.version, page.command)
