"""Which files of a folder belong to a site: a marker says that the folder is one, exact names say which files.

A site made before there was a marker is known by the generator that its first page names.
"""

from collections.abc import Iterable
from pathlib import Path

from gpureport.errors import RenderError
from gpureport.places import Place
from gpureport.store import atomic_writes

INDEX = "index.html"
_NIGHTS = "nights.html"
"""A page of all nights, which sites of earlier versions hold."""
REPORTS, FIGURES = "nights", "figures"
"""Folders of the reports, and of the pages of figures."""
MARKER = "gpureport-site"
"""File that makes a folder a site; not hidden, since what carries artifacts between jobs leaves out hidden files."""
_MARKER_TEXT = f"gpureport nightly writes {INDEX}, {REPORTS}/ and {FIGURES}/ here.\n"
_GENERATOR = b'<meta name="generator" content="gpureport '
_HEAD = 4096
_WRITTEN = rf".+\.html|{MARKER}"
"""Names of the files that are written."""


def check_site(site: Place) -> None:
    """Refuse a folder whose pages somebody else made, before any work is done.

    Raises:
        RenderError: naming the page.
    """
    if not (site / MARKER).is_file():
        _refuse_foreign_page(site / INDEX)
    elif isinstance(site, Path):
        # in a marked folder too: somebody may have put a page of theirs there since
        _refuse_foreign_page(site / INDEX)


def claim_site(site: Place, folder: Path, pages: Iterable[str]) -> None:
    """Mark a folder as a site, and remove what killed writers left in it.

    Args:
        site: the folder.
        folder: where its files are written to: the folder itself, or what is sent to the bucket of the site.
        pages: names of the pages that are to be written or are taken for those of the site.

    Raises:
        RenderError: naming a page that somebody else made; nothing is changed then.
    """
    is_marked = (site / MARKER).is_file()
    if not is_marked and not _names_generator(site / INDEX):
        for name in pages:
            _refuse_foreign_page(site / name)
    elif isinstance(site, Path):
        _refuse_foreign_page(site / INDEX)
    for part in (folder, folder / REPORTS, folder / FIGURES):
        part.mkdir(parents=True, exist_ok=True)
    atomic_writes.remove_stale_files(folder, _WRITTEN)
    if isinstance(site, Path) and _names_generator(site / _NIGHTS):
        (site / _NIGHTS).unlink()
    if not is_marked:
        atomic_writes.write_bytes(folder / MARKER, _MARKER_TEXT.encode(), folder)


def _refuse_foreign_page(page: Place) -> None:
    """Refuse to replace what gpureport did not make.

    Raises:
        RenderError: naming it.
    """
    if page.exists() and not _names_generator(page):
        hint = "choose another folder with --site, or move it away if nobody needs it"
        raise RenderError(str(page), "is no page of gpureport, and stays as it is", hint, code="foreign_page")


def _names_generator(page: Place) -> bool:
    """Return whether a page says that gpureport made it."""
    if not page.is_file():
        return False
    return _GENERATOR in page.read_bytes()[:_HEAD]
