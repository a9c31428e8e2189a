"""Writes the site's llms.txt for programs: one line per page, in the order of the navigation."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

DOCS = Path(__file__).parents[3] / "docs"
_SITE = DOCS / "site" / "mkdocs.yml"
_HEAD = """# gpureport

> Reads the GPU logs that a training run left behind and says where the GPU time went, and why. An offline command line
> and Python package: no GPU, no server, no network and no change to the training code.
"""


def llms_index() -> str:
    """Return the text of llms.txt."""
    parts = [_HEAD]
    for title, entries in _read_sections():
        parts += [f"## {title}\n", "\n".join(_page_line(page) for page in list_pages(entries)) + "\n"]
    return "\n".join(parts)


def list_pages(entries: Sequence[Any]) -> Iterator[str]:
    """Yield the pages in a part of the navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            yield from (page for below in entry.values() for page in list_pages(below))


def _read_sections() -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the sections of the navigation, without the first page, the README, which the head replaces."""
    # what stands above names Python functions, which a safe loader refuses
    navigation = yaml.safe_load(_SITE.read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\nnot_in_nav")[0])
    yield from (section for entry in navigation[1:] for section in entry.items())


def _page_line(page: str) -> str:
    """Return the line of a page: its title and its first sentence, except the one on how it is generated."""
    title, *paragraphs = (DOCS / page).read_text(encoding="utf-8").split("\n\n")
    text = next(each for each in paragraphs if not each.startswith(("This page is made", "#", "```")))
    sentence = re.split(r"(?<=[.:])\s(?=[A-Z`])", " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).split()))[0]
    return f"- [{title.removeprefix('# ')}]({page}): {sentence.rstrip(':')}"
